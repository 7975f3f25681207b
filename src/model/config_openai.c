#include "model/config_openai.h"

#include "base/mem.h"
#include "model/config.h"
#include "proto/model_config.pb-c.h"

#include <string.h>

#define PARAMETER "openai"

/* What the input or output of a role may be. */
enum role_type {
    ROLE_STRING,
    ROLE_BOOL,
    ROLE_FP32,
    ROLE_COUNT, /* of tokens */
};

struct role {
    const char *name;
    enum role_type type;
};

static const struct role input_roles[CONFIG_OPENAI_INPUTS] = {
    [CONFIG_OPENAI_PROMPT] = {"prompt", ROLE_STRING},
    [CONFIG_OPENAI_MESSAGES] = {"messages", ROLE_STRING},
    [CONFIG_OPENAI_INPUT] = {"input", ROLE_STRING},
    [CONFIG_OPENAI_REQUEST] = {"request", ROLE_STRING},
    [CONFIG_OPENAI_PARAMETERS] = {"parameters", ROLE_STRING},
    [CONFIG_OPENAI_STREAM] = {"stream", ROLE_BOOL},
};

static const struct role output_roles[CONFIG_OPENAI_OUTPUTS] = {
    [CONFIG_OPENAI_TEXT] = {"text", ROLE_STRING},
    [CONFIG_OPENAI_EMBEDDING] = {"embedding", ROLE_FP32},
    [CONFIG_OPENAI_FINISH_REASON] = {"finish_reason", ROLE_STRING},
    [CONFIG_OPENAI_PROMPT_TOKENS] = {"prompt_tokens", ROLE_COUNT},
    [CONFIG_OPENAI_COMPLETION_TOKENS] = {"completion_tokens", ROLE_COUNT},
};

/* What is being read. */
struct reading {
    const struct model_config *cfg;
    struct config_openai *to;
    yyjson_val *defaults; /* NULL = there are none */
};

#define BAD(r, fmt, ...)                                                                       \
    err_new(STATUS_INVALID_ARG, "model '%s': parameter '" PARAMETER "': " fmt, (r)->cfg->name, \
            __VA_ARGS__)

static const char *allowed_types(enum role_type type)
{
    static const char *const names[] = {
        [ROLE_STRING] = "TYPE_STRING",
        [ROLE_BOOL] = "TYPE_BOOL",
        [ROLE_FP32] = "TYPE_FP32",
        [ROLE_COUNT] = "TYPE_INT32, TYPE_INT64, TYPE_UINT32 or TYPE_UINT64",
    };
    return names[type];
}

static bool is_allowed(enum role_type type, enum datatype t)
{
    switch (type) {
    case ROLE_STRING:
        return t == DATATYPE_BYTES;
    case ROLE_BOOL:
        return t == DATATYPE_BOOL;
    case ROLE_FP32:
        return t == DATATYPE_FP32;
    case ROLE_COUNT:
        return t == DATATYPE_INT32 || t == DATATYPE_INT64 || t == DATATYPE_UINT32 ||
               t == DATATYPE_UINT64;
    }
    return false;
}

/* The input or output that a member names. */
static struct err *find_io(const struct reading *r, const char *member, yyjson_val *v, bool input,
                           const struct model_io **ret)
{
    const char *kind = input ? "an input" : "an output";
    if (!yyjson_is_str(v))
        return BAD(r, "'%s': expected the name of %s, found %s", member, kind,
                   yyjson_get_type_desc(v));
    const char *name = yyjson_get_str(v);
    int32_t at = input ? config_input(r->cfg, name, yyjson_get_len(v))
                       : config_output(r->cfg, name, yyjson_get_len(v));
    if (at < 0)
        return BAD(r, "'%s': expected the name of %s, found '%s', which the model does not have",
                   member, kind, name);
    *ret = input ? &r->cfg->inputs[at] : &r->cfg->outputs[at];
    return NULL;
}

static struct err *read_role(const struct reading *r, const struct role *role, bool input,
                             yyjson_val *v, const struct model_io **ret)
{
    const struct model_io *io;
    struct err *e = find_io(r, role->name, v, input, &io);
    if (!e && !is_allowed(role->type, io->datatype))
        e = BAD(r, "'%s': expected one of %s, found '%s' of %s", role->name,
                allowed_types(role->type), io->name, datatype_config_name(io->datatype));
    if (!e)
        *ret = io;
    return e;
}

static struct err *read_members(struct reading *r, yyjson_val *v)
{
    if (!yyjson_is_obj(v))
        return BAD(r, "'inputs': expected an object, found %s", yyjson_get_type_desc(v));
    r->to->members = mem_zalloc((yyjson_obj_size(v) + 1) * sizeof(*r->to->members));
    size_t i, n;
    yyjson_val *key, *name;
    yyjson_obj_foreach(v, i, n, key, name)
    {
        struct config_openai_member *m = &r->to->members[r->to->member_count++];
        m->name = yyjson_get_str(key);
        m->standard = yyjson_obj_get(r->defaults, m->name);
        struct err *e = find_io(r, m->name, name, true, &m->input);
        if (e)
            return e;
    }
    return NULL;
}

static bool has_member(const struct config_openai *o, const char *name)
{
    for (uint32_t i = 0; i < o->member_count; i++)
        if (strcmp(o->members[i].name, name) == 0)
            return true;
    return false;
}

static struct err *check_defaults(const struct reading *r)
{
    if (!r->defaults)
        return NULL;
    if (!yyjson_is_obj(r->defaults))
        return BAD(r, "'defaults': expected an object, found %s",
                   yyjson_get_type_desc(r->defaults));
    size_t i, n;
    yyjson_val *key, *v;
    yyjson_obj_foreach(
        r->defaults, i, n, key,
        v) if (!has_member(r->to, yyjson_get_str(key))) return BAD(r,
                                                                   "'defaults': expected members "
                                                                   "of 'inputs', found '%s'",
                                                                   yyjson_get_str(key));
    return NULL;
}

static struct err *read_openai_member(struct reading *r, const char *name, yyjson_val *v)
{
    for (int i = 0; i < CONFIG_OPENAI_INPUTS; i++)
        if (strcmp(name, input_roles[i].name) == 0)
            return read_role(r, &input_roles[i], true, v, &r->to->inputs[i]);
    for (int i = 0; i < CONFIG_OPENAI_OUTPUTS; i++)
        if (strcmp(name, output_roles[i].name) == 0)
            return read_role(r, &output_roles[i], false, v, &r->to->outputs[i]);
    if (strcmp(name, "inputs") == 0)
        return r->to->members ? BAD(r, "'%s' is given twice", name) : read_members(r, v);
    if (strcmp(name, "defaults") == 0)
        return NULL;
    return BAD(r,
               "expected prompt, messages, input, request, parameters, stream, inputs, defaults, "
               "text, embedding, finish_reason, prompt_tokens or completion_tokens, found '%s'",
               name);
}

static struct err *read_mapping(struct reading *r)
{
    yyjson_val *root = yyjson_doc_get_root(r->to->doc);
    if (!yyjson_is_obj(root))
        return BAD(r, "expected a JSON object, found %s", yyjson_get_type_desc(root));
    r->defaults = yyjson_obj_get(root, "defaults");
    size_t i, n;
    yyjson_val *key, *v;
    yyjson_obj_foreach(root, i, n, key, v)
    {
        struct err *e = read_openai_member(r, yyjson_get_str(key), v);
        if (e)
            return e;
    }
    for (int task = CONFIG_OPENAI_COMPLETIONS; task <= CONFIG_OPENAI_EMBEDDINGS; task++)
        if (config_openai_serves(r->to, (enum config_openai_task)task))
            return check_defaults(r);
    return BAD(r, "expected %s, found neither",
               "'text' and one of 'prompt', 'messages' and 'request', or 'embedding' and one of "
               "'input' and 'request'");
}

static const char *parameter_text(const Inference__ModelConfig *proto)
{
    for (size_t i = 0; i < proto->n_parameters; i++)
        if (strcmp(proto->parameters[i]->key, PARAMETER) == 0 && proto->parameters[i]->value)
            return proto->parameters[i]->value->string_value;
    return NULL;
}

struct err *config_openai_read(const struct model_config *cfg, struct config_openai **ret)
{
    const char *text = parameter_text(cfg->proto);
    *ret = NULL;
    if (!text)
        return NULL;
    struct reading r = {.cfg = cfg, .to = MEM_NEW(struct config_openai)};
    yyjson_read_err why;
    r.to->doc = yyjson_read_opts((char *)(uintptr_t)text, strlen(text), 0, NULL, &why);
    struct err *e = r.to->doc ? read_mapping(&r)
                              : BAD(&r, "expected a JSON object: %s at %zu", why.msg, why.pos);
    if (e) {
        config_openai_free(r.to);
        return e;
    }
    *ret = r.to;
    return NULL;
}

void config_openai_free(struct config_openai *o)
{
    if (!o)
        return;
    yyjson_doc_free(o->doc);
    mem_free(o->members);
    mem_free(o);
}

bool config_openai_serves(const struct config_openai *o, enum config_openai_task task)
{
    if (!o)
        return false;
    const struct model_io *const *in = o->inputs;
    bool text = o->outputs[CONFIG_OPENAI_TEXT];
    switch (task) {
    case CONFIG_OPENAI_COMPLETIONS:
        return text && (in[CONFIG_OPENAI_PROMPT] || in[CONFIG_OPENAI_REQUEST]);
    case CONFIG_OPENAI_CHAT:
        return text && (in[CONFIG_OPENAI_PROMPT] || in[CONFIG_OPENAI_MESSAGES] ||
                        in[CONFIG_OPENAI_REQUEST]);
    case CONFIG_OPENAI_EMBEDDINGS:
        return o->outputs[CONFIG_OPENAI_EMBEDDING] &&
               (in[CONFIG_OPENAI_INPUT] || in[CONFIG_OPENAI_REQUEST]);
    }
    return false;
}
