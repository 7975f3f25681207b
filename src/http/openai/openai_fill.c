#include "http/openai/openai_fill.h"

#include "base/map.h"
#include "base/strbuf.h"
#include "http/api/http_generate_map.h"
#include "http/api/http_infer_input.h"
#include "http/openai/openai_call.h"
#include "http/openai/openai_json.h"
#include "http/openai/openai_render.h"
#include "infer/request.h"
#include "model/config.h"

#include <string.h>

/* Where the JSON of part of a request is written, beside what the part has as text: numbers may
 * become longer. */
#define WRITE_FACTOR 8u
#define WRITE_MORE   ((size_t)65536)

/* The most parameters, and the most bytes of all together. */
#define PARAMETERS_MOST  1024u
#define PARAMETERS_BYTES ((size_t)1 << 20)

struct openai_filling {
    struct openai_call *call;
    struct request *r;
    yyjson_val *root;
    size_t left;       /* bytes that inputs may still take */
    const char *param; /* the member that is being read */
};

static yyjson_val *member_of(struct openai_filling *f, const char *name)
{
    yyjson_val *v = yyjson_obj_get(f->root, name);
    return yyjson_is_null(v) ? NULL : v;
}

static struct err *wrong_type(struct openai_filling *f, const char *expected, yyjson_val *v)
{
    return err_new(STATUS_INVALID_ARG, "'%s': expected %s, found %s", f->param, expected,
                   v ? yyjson_get_type_desc(v) : "nothing");
}

/* What is wrong with the JSON of a client is no error of the server. */
static struct err *about_member(const struct openai_filling *f, struct err *e)
{
    if (e && err_code(e) == STATUS_INTERNAL)
        e = err_recode(e, STATUS_INVALID_ARG);
    return err_wrap(e, "'%s'", f->param);
}

static struct err *no_shape(const struct openai_filling *f, const struct model_io *io,
                            uint64_t elements)
{
    return err_new(STATUS_INVALID_ARG,
                   "'%s': the input '%s' of the model cannot take %llu elements", f->param,
                   io->name, (unsigned long long)elements);
}

/* What holds for all texts of a batch is repeated for each. */
static struct err *repeat_rows(struct openai_filling *f, struct tensor_input *in)
{
    uint32_t rows = f->call->rows;
    if (rows == 1 || f->r->config->max_batch_size <= 0 || !in->rank || in->shape[0] != 1)
        return NULL;
    if (in->byte_size > f->left / rows)
        return err_new(STATUS_INVALID_ARG, "'%s': too much for %u texts at once", f->param, rows);
    f->left -= (size_t)in->byte_size * rows;
    char *to;
    struct err *e = request_keep(f->r, (size_t)in->byte_size * rows, (void **)&to);
    if (e)
        return e;
    for (uint32_t i = 0; i < rows && in->piece_count; i++)
        memcpy(to + i * in->byte_size, in->pieces[0].data, (size_t)in->byte_size);
    struct tensor_piece *piece = arena_alloc(&f->r->arena, sizeof(*piece));
    int64_t *shape = arena_alloc(&f->r->arena, in->rank * sizeof(*shape));
    memcpy(shape, in->shape, in->rank * sizeof(*shape));
    shape[0] = rows;
    in->byte_size *= rows;
    *piece = (struct tensor_piece){.data = to, .size = in->byte_size, .memory = BUF_MEMORY_CPU};
    in->pieces = piece;
    in->shape = shape;
    return NULL;
}

static struct err *check_new(const struct openai_filling *f, const struct model_io *io)
{
    for (uint32_t i = 0; i < f->r->input_count; i++)
        if (strcmp(f->r->inputs[i].name, io->name) == 0)
            return err_new(STATUS_INVALID_ARG, "'%s': the input '%s' is given already", f->param,
                           io->name);
    return NULL;
}

/* An input whose elements are a value, or those of a list. */
static struct err *fill_values(struct openai_filling *f, const struct model_io *io, yyjson_val *v)
{
    struct http_infer_input d;
    uint64_t elements = yyjson_is_arr(v) ? yyjson_arr_size(v) : 1;
    struct err *e = check_new(f, io);
    if (!e && !http_generate_map_shape(f->r->config, io, elements, &d))
        e = no_shape(f, io, elements);
    if (!e)
        e = about_member(f, http_infer_input_json(f->r, &d, v, elements, &f->left));
    return e ? e : repeat_rows(f, &f->r->inputs[f->r->input_count - 1]);
}

/* An input of one element. */
static struct err *fill_bytes(struct openai_filling *f, const struct model_io *io, const void *data,
                              size_t bytes)
{
    struct http_infer_input d;
    struct err *e = check_new(f, io);
    if (!e && !http_generate_map_shape(f->r->config, io, 1, &d))
        e = no_shape(f, io, 1);
    if (e)
        return e;
    struct tensor_piece piece = {.data = data, .size = bytes, .memory = BUF_MEMORY_CPU};
    struct tensor_input *in =
        request_add_input(f->r, d.name, d.name_len, d.datatype, d.dims, d.rank, &piece, 1);
    return in ? repeat_rows(f, in) : no_shape(f, io, 1);
}

/* An input of one string. */
static struct err *fill_one_text(struct openai_filling *f, const struct model_io *io,
                                 const char *text, size_t len)
{
    uint32_t prefix = (uint32_t)len;
    if (len > f->left || f->left - len < sizeof(prefix) || len > UINT32_MAX)
        return err_new(STATUS_INVALID_ARG,
                       "'%s': %zu bytes exceed the maximum allowed input size. Use "
                       "--http-max-input-size to increase the limit.",
                       f->param, len);
    f->left -= len + sizeof(prefix);
    char *to;
    struct err *e = request_keep(f->r, sizeof(prefix) + len, (void **)&to);
    if (e)
        return e;
    memcpy(to, &prefix, sizeof(prefix));
    memcpy(to + sizeof(prefix), text, len);
    return fill_bytes(f, io, to, sizeof(prefix) + len);
}

/* An input of one string: the JSON of a value. */
static struct err *fill_json(struct openai_filling *f, const struct model_io *io, yyjson_val *v)
{
    struct openai_json json;
    struct err *e =
        about_member(f, openai_json_write(v, f->left * WRITE_FACTOR + WRITE_MORE, &json));
    if (e)
        return e;
    e = fill_one_text(f, io, json.text, json.len);
    openai_json_end(&json);
    return e;
}

/* The text that a model goes on from or embeds, or a list of such. */
static struct err *fill_texts(struct openai_filling *f, const struct model_io *io, const char *name)
{
    f->param = name;
    yyjson_val *v = member_of(f, name);
    size_t count = yyjson_is_arr(v) ? yyjson_arr_size(v) : 1;
    if (!yyjson_is_str(v) && !yyjson_is_arr(v))
        return wrong_type(f, "a string or a list of strings", v);
    if (!count || count > OPENAI_CALL_MOST)
        return err_new(STATUS_INVALID_ARG, "'%s': expected 1 to %u strings, found %zu", name,
                       OPENAI_CALL_MOST, count);
    size_t i, n;
    yyjson_val *each;
    yyjson_arr_foreach(v, i, n, each) if (!yyjson_is_str(each)) return err_new(
        STATUS_INVALID_ARG,
        "'%s[%zu]': expected a string, found %s: this server has no tokens of models", name, i,
        yyjson_get_type_desc(each));
    f->call->rows = (uint32_t)count;
    return io ? fill_values(f, io, v) : NULL;
}

static struct err *fill_messages(struct openai_filling *f)
{
    const struct model_io *const *in = f->call->map->inputs;
    f->param = "messages";
    yyjson_val *messages = member_of(f, f->param);
    struct err *e = openai_render_check(messages);
    if (!e && in[CONFIG_OPENAI_MESSAGES])
        return fill_json(f, in[CONFIG_OPENAI_MESSAGES], messages);
    if (e || !in[CONFIG_OPENAI_PROMPT])
        return e;
    struct strbuf text = STRBUF_INIT;
    e = openai_render(messages, &text);
    if (!e)
        e = fill_one_text(f, in[CONFIG_OPENAI_PROMPT], strbuf_str(&text), text.len);
    strbuf_fini(&text);
    return e;
}

static struct err *fill_task(struct openai_filling *f)
{
    const struct model_io *const *in = f->call->map->inputs;
    switch (f->call->task) {
    case CONFIG_OPENAI_COMPLETIONS:
        return fill_texts(f, in[CONFIG_OPENAI_PROMPT], "prompt");
    case CONFIG_OPENAI_EMBEDDINGS:
        return fill_texts(f, in[CONFIG_OPENAI_INPUT], "input");
    case CONFIG_OPENAI_CHAT:
        return fill_messages(f);
    }
    return NULL;
}

/* Of some members there are two names. */
static yyjson_val *under_either_name(struct openai_filling *f, const char *name)
{
    static const char *const names[] = {"max_completion_tokens", "max_tokens"};
    yyjson_val *v = member_of(f, name);
    for (int i = 0; i < 2 && !v; i++)
        if (strcmp(name, names[i]) == 0)
            v = member_of(f, names[1 - i]);
    return v;
}

/* True for what is no element of a tensor, but may be its JSON. */
static bool is_nested(yyjson_val *v)
{
    size_t i, n;
    yyjson_val *each;
    yyjson_arr_foreach(v, i, n, each) if (yyjson_is_ctn(each)) return true;
    return yyjson_is_obj(v);
}

static struct err *fill_members(struct openai_filling *f)
{
    const struct config_openai *map = f->call->map;
    for (uint32_t i = 0; i < map->member_count; i++) {
        const struct config_openai_member *m = &map->members[i];
        f->param = m->name;
        yyjson_val *v = under_either_name(f, m->name);
        if (!v)
            v = m->standard;
        if (!v)
            continue;
        bool json = m->input->datatype == DATATYPE_BYTES && is_nested(v);
        struct err *e = json ? fill_json(f, m->input, v) : fill_values(f, m->input, v);
        if (e)
            return e;
    }
    return NULL;
}

/* True for a member that says nothing about sampling, or has an input of its own. */
static bool is_apart(const struct config_openai *map, const char *name)
{
    static const char *const apart[] = {
        "model", "messages", "prompt",         "input",
        "user",  "stream",   "stream_options", "encoding_format",
        "store", "metadata", "service_tier",   "safety_identifier",
    };
    for (size_t i = 0; i < sizeof(apart) / sizeof(*apart); i++)
        if (strcmp(name, apart[i]) == 0)
            return true;
    for (uint32_t i = 0; i < map->member_count; i++)
        if (strcmp(name, map->members[i].name) == 0)
            return true;
    return false;
}

static struct err *put_openai_parameter(struct openai_filling *f, const char *name, yyjson_val *v,
                                        struct strbuf *to)
{
    struct openai_json json;
    f->param = name;
    struct err *e = about_member(f, openai_json_write(v, PARAMETERS_BYTES, &json));
    if (e)
        return e;
    strbuf_putc(to, to->len > 1 ? ',' : ' ');
    strbuf_printf(to, "\"%s\":", name);
    strbuf_append(to, json.text, json.len);
    openai_json_end(&json);
    if (to->len > PARAMETERS_BYTES)
        return err_new(STATUS_INVALID_ARG,
                       "expected at most %zu bytes of parameters besides the texts",
                       PARAMETERS_BYTES);
    return NULL;
}

/* A name that stands in JSON as it is. */
static bool is_plain(const char *name, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (name[i] != '_' && (name[i] < 'a' || name[i] > 'z') &&
            (name[i] < 'A' || name[i] > 'Z') && (name[i] < '0' || name[i] > '9'))
            return false;
    return len > 0;
}

/* A name counts once, with its first value, as wherever a member is looked up by its name. */
static struct err *put_once(struct openai_filling *f, const char *name, yyjson_val *v,
                            struct map *seen, struct strbuf *to)
{
    if (map_get(seen, name, strlen(name)))
        return NULL;
    f->param = name;
    if (seen->count == PARAMETERS_MOST)
        return err_new(STATUS_INVALID_ARG, "expected at most %u parameters besides the texts",
                       PARAMETERS_MOST);
    map_put(seen, name, strlen(name), v);
    return put_openai_parameter(f, name, v, to);
}

static struct err *fill_openai_parameters(struct openai_filling *f, const struct model_io *io)
{
    struct strbuf text = STRBUF_INIT;
    struct map seen = MAP_INIT;
    struct err *e = NULL;
    yyjson_val *most = under_either_name(f, "max_completion_tokens");
    size_t i, n;
    yyjson_val *key, *v;
    strbuf_putc(&text, '{');
    yyjson_obj_foreach(f->root, i, n, key, v)
    {
        const char *name = yyjson_get_str(key);
        if (e || yyjson_is_null(v) || !is_plain(name, yyjson_get_len(key)) ||
            is_apart(f->call->map, name))
            continue;
        bool is_most =
            strcmp(name, "max_tokens") == 0 || strcmp(name, "max_completion_tokens") == 0;
        if (!is_most)
            e = put_once(f, name, v, &seen, &text);
        else if (most)
            e = put_once(f, "max_tokens", most, &seen, &text);
    }
    strbuf_putc(&text, '}');
    map_fini(&seen);
    if (!e) {
        f->param = "parameters";
        e = fill_one_text(f, io, strbuf_str(&text), text.len);
    }
    strbuf_fini(&text);
    return e;
}

static struct err *read_openai_flag(struct openai_filling *f, yyjson_val *object, const char *name,
                                    bool *ret)
{
    yyjson_val *v = yyjson_obj_get(object, name);
    f->param = name;
    if (v && !yyjson_is_null(v) && !yyjson_is_bool(v))
        return wrong_type(f, "a boolean", v);
    *ret = yyjson_is_true(v);
    return NULL;
}

static struct err *read_encoding_format(struct openai_filling *f)
{
    f->param = "encoding_format";
    yyjson_val *v = member_of(f, f->param);
    if (!v || yyjson_equals_str(v, "float"))
        return NULL;
    f->call->base64 = yyjson_equals_str(v, "base64");
    return f->call->base64 ? NULL : wrong_type(f, "'float' or 'base64'", v);
}

static struct err *read_openai_flags(struct openai_filling *f)
{
    struct openai_call *c = f->call;
    if (c->task == CONFIG_OPENAI_EMBEDDINGS)
        return read_encoding_format(f);
    struct err *e = read_openai_flag(f, f->root, "stream", &c->streamed);
    if (e)
        return e;
    f->param = "stream_options";
    yyjson_val *options = member_of(f, f->param);
    if (options && (!yyjson_is_obj(options) || !c->streamed))
        return wrong_type(f, c->streamed ? "an object" : "'stream' to be true with it", options);
    return read_openai_flag(f, options, "include_usage", &c->with_usage);
}

/* True if a value asks for more than the plain answer; `plain` is a number that does not. */
static bool asks_for_more(yyjson_val *v, double plain)
{
    return (yyjson_is_num(v) && yyjson_get_num(v) > plain) || yyjson_is_true(v) ||
           yyjson_is_str(v) || (yyjson_is_ctn(v) && unsafe_yyjson_get_len(v));
}

/* What would change the form of the answer must not be passed over. */
static struct err *check_passed_over(struct openai_filling *f)
{
    static const struct {
        const char *name;
        double plain;
    } members[] = {
        {"n", 1},      {"best_of", 1}, {"logprobs", 0},  {"top_logprobs", 0}, {"echo", 0},
        {"suffix", 0}, {"tools", 0},   {"functions", 0}, {"dimensions", 0},   {"audio", 0},
    };
    const struct config_openai *map = f->call->map;
    if (map->inputs[CONFIG_OPENAI_REQUEST] || map->inputs[CONFIG_OPENAI_PARAMETERS])
        return NULL;
    for (size_t i = 0; i < sizeof(members) / sizeof(*members); i++) {
        f->param = members[i].name;
        if (asks_for_more(member_of(f, f->param), members[i].plain) && !is_apart(map, f->param))
            return err_new(STATUS_INVALID_ARG, "'%s': the model does not take it", f->param);
    }
    return NULL;
}

/* What the model gets besides the text. */
static struct err *fill_rest(struct openai_filling *f)
{
    const struct model_io *const *in = f->call->map->inputs;
    struct err *e = fill_members(f);
    if (!e && in[CONFIG_OPENAI_PARAMETERS])
        e = fill_openai_parameters(f, in[CONFIG_OPENAI_PARAMETERS]);
    if (!e && in[CONFIG_OPENAI_STREAM]) {
        f->param = "stream";
        e = fill_bytes(f, in[CONFIG_OPENAI_STREAM], &f->call->streamed, 1);
    }
    if (!e && in[CONFIG_OPENAI_REQUEST]) {
        f->param = "request";
        e = fill_json(f, in[CONFIG_OPENAI_REQUEST], f->root);
    }
    return e;
}

static struct err *fill_all(struct openai_filling *f)
{
    struct err *e = read_openai_flags(f);
    if (!e)
        e = check_passed_over(f);
    if (!e)
        e = fill_task(f);
    return e ? e : fill_rest(f);
}

/* Nothing but what is told is asked of the model. */
static void ask_outputs(const struct openai_call *call, struct request *r)
{
    bool embeds = call->task == CONFIG_OPENAI_EMBEDDINGS;
    for (int i = 0; i < CONFIG_OPENAI_OUTPUTS; i++) {
        const struct model_io *io = call->map->outputs[i];
        if (io && i != (embeds ? CONFIG_OPENAI_TEXT : CONFIG_OPENAI_EMBEDDING))
            request_add_output(r, io->name, io->name_len);
    }
}

struct err *openai_fill(struct openai_call *call, struct request *r, yyjson_val *root, size_t most,
                        const char **ret_param)
{
    struct openai_filling f = {.call = call, .r = r, .root = root, .left = most};
    struct err *e = fill_all(&f);
    *ret_param = f.param;
    if (!e)
        ask_outputs(call, r);
    return e;
}
