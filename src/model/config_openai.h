#pragma once
/* How a model serves requests in OpenAI's form: which inputs take what such a request says, and
 * which outputs hold what the answer tells. The configuration says it in the parameter "openai", a
 * JSON object. docs/user/openai.md. Pure. */
#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>
#include <yyjson.h>

struct model_config;
struct model_io;

/* What an input takes. Strings each, but for the last. */
enum config_openai_input {
    CONFIG_OPENAI_PROMPT,     /* the text to go on from, or the messages rendered as one */
    CONFIG_OPENAI_MESSAGES,   /* the JSON of the messages of a chat */
    CONFIG_OPENAI_INPUT,      /* the text to embed */
    CONFIG_OPENAI_REQUEST,    /* the JSON of the whole request */
    CONFIG_OPENAI_PARAMETERS, /* the JSON of what the request says about sampling */
    CONFIG_OPENAI_STREAM,     /* a boolean: whether the answer is streamed */
    CONFIG_OPENAI_INPUTS,
};

/* What an output holds. */
enum config_openai_output {
    CONFIG_OPENAI_TEXT,
    CONFIG_OPENAI_EMBEDDING,
    CONFIG_OPENAI_FINISH_REASON,
    CONFIG_OPENAI_PROMPT_TOKENS,
    CONFIG_OPENAI_COMPLETION_TOKENS,
    CONFIG_OPENAI_OUTPUTS,
};

/* A member of requests with an input of its own. */
struct config_openai_member {
    const char *name;
    const struct model_io *input;
    yyjson_val *standard; /* where a request lacks it; NULL = the input is left out */
};

/* What kinds of requests a model serves. */
enum config_openai_task {
    CONFIG_OPENAI_COMPLETIONS,
    CONFIG_OPENAI_CHAT,
    CONFIG_OPENAI_EMBEDDINGS,
};

/* Immutable; its inputs and outputs are those of the configuration, which owns it. */
struct config_openai {
    const struct model_io *inputs[CONFIG_OPENAI_INPUTS]; /* NULL = there is none */
    const struct model_io *outputs[CONFIG_OPENAI_OUTPUTS];
    struct config_openai_member *members;
    uint32_t member_count;
    yyjson_doc *doc; /* names and values lie in it */
};

/* config_openai_read - read the parameter of a configuration whose inputs and outputs are there.
 * ret     NULL if there is no such parameter; the caller frees it
 * errors  INVALID_ARG that names the model, the member, what was expected and what was found */
struct err *config_openai_read(const struct model_config *cfg, struct config_openai **ret);

/* config_openai_free - NULL is fine. */
void config_openai_free(struct config_openai *o);

/* config_openai_serves - whether a model serves such requests; o may be NULL. */
bool config_openai_serves(const struct config_openai *o, enum config_openai_task task);
