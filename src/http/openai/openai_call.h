#pragma once
/* POST /v1/completions, /v1/chat/completions and /v1/embeddings: makes a request of the model from
 * a message, and the answer, whole or streamed, from its responses. Worker's thread only. */
#include "base/strbuf.h"
#include "model/config_openai.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct budget_account;
struct err;
struct http_exchange;
struct http_message;

/* The most texts that are asked for, or answered, at once. */
#define OPENAI_CALL_MOST 2048u

#define OPENAI_CALL_REASON_BYTES 32u /* of a finish reason, with its NUL */

/* One of the texts that a model gives. */
struct openai_choice {
    struct strbuf text;                    /* so far; of a stream: the beginning of a character */
    char reason[OPENAI_CALL_REASON_BYTES]; /* why it ended; "" = it goes on */
    bool begun;                            /* of a stream: a chunk told of it, */
    bool ended;                            /* and one why it ended */
};

/* A request and what was answered so far; in the memory of the model's request. */
struct openai_call {
    uint32_t magic;
    enum config_openai_task task;
    const struct config_openai *map; /* of the version that serves it */
    struct http_exchange *x;
    const char *model; /* as the client named it */
    char id[64];
    uint64_t created; /* seconds since 1970 */
    uint32_t rows;    /* texts that were asked about */
    bool streamed;
    bool with_usage;                /* a stream tells the numbers of tokens at its end */
    bool base64;                    /* embeddings are wanted so */
    struct err *error;              /* owned: why there is no answer, or no more of it */
    uint32_t responses;             /* that came */
    struct budget_account *account; /* of the connection, charged for what is kept: */
    size_t held;
    struct strbuf answer; /* embeddings */
    struct openai_choice *choices;
    uint32_t choice_count;
    bool prompt_known;
    bool completion_known;
    uint64_t prompt_tokens;
    uint64_t completion_tokens;
};

#define OPENAI_CALL_MAGIC 0x4f504149u

/* openai_call_serve - check the message, build the request, give it to the model; x is answered in
 * any case. */
void openai_call_serve(struct http_exchange *x, struct http_message *m,
                       enum config_openai_task task);
