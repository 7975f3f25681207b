#include "http/api/http_infer_json.h"

#include "codec/json_tensor.h"
#include "http/api/http_infer.h"
#include "http/api/http_infer_input.h"
#include "http/api/http_json.h"
#include "http/api/http_regions.h"
#include "http/http_exchange.h"
#include "http/http_shard.h"
#include "infer/request.h"
#include "infer/request_text.h"
#include "serve/version.h"
#include "server/server.h"

#include <inttypes.h>
#include <string.h>

static struct err *http_infer_json_wrong_type(const char *what, enum json_tensor_result result)
{
    return err_new(STATUS_INTERNAL, "Unable to parse '%s': %s", what, json_tensor_text(result));
}

struct err *http_infer_json_id(struct request *r, yyjson_val *root)
{
    yyjson_val *id = http_json_get(root, "id");
    if (!id)
        return NULL;
    if (!yyjson_is_str(id))
        return http_infer_json_wrong_type("id", JSON_TENSOR_NOT_STRING);
    struct err *e =
        http_json_whole("request id", unsafe_yyjson_get_str(id), unsafe_yyjson_get_len(id));
    return e ? e : request_text_id(r, unsafe_yyjson_get_str(id), unsafe_yyjson_get_len(id));
}

static struct err *http_infer_json_set_flag(struct request *r, const char *name, yyjson_val *v,
                                            uint32_t flag)
{
    if (!yyjson_is_bool(v))
        return http_infer_json_wrong_type(name, JSON_TENSOR_NOT_BOOL);
    if (unsafe_yyjson_get_bool(v))
        r->flags |= flag;
    return NULL;
}

static struct err *set_uint(const char *name, yyjson_val *v, uint64_t *to)
{
    if (!yyjson_is_uint(v))
        return http_infer_json_wrong_type(name, JSON_TENSOR_NOT_UINT);
    *to = unsafe_yyjson_get_uint(v);
    return NULL;
}

static struct err *set_sequence(struct request *r, yyjson_val *v)
{
    if (yyjson_is_uint(v)) {
        r->correlation_id = unsafe_yyjson_get_uint(v);
        return NULL;
    }
    if (!yyjson_is_str(v))
        return http_infer_json_wrong_type("sequence_id", JSON_TENSOR_NOT_STRING);
    size_t len = unsafe_yyjson_get_len(v);
    if (!len)
        return NULL;
    struct err *e = http_json_whole("sequence id", unsafe_yyjson_get_str(v), len);
    return e ? e : request_text_sequence(r, unsafe_yyjson_get_str(v), len);
}

struct err *http_infer_json_param(struct request *r, const char *name, size_t len, yyjson_val *v)
{
    struct param *p;
    struct err *e =
        request_text_room(r, sizeof(*p) + len + (yyjson_is_str(v) ? yyjson_get_len(v) : 0));
    if (e)
        return e;
    if (yyjson_is_str(v)) {
        e = http_json_whole("parameter value", unsafe_yyjson_get_str(v), unsafe_yyjson_get_len(v));
        if (e)
            return e;
        param_add_string(&r->params, &r->arena, name, len, unsafe_yyjson_get_str(v),
                         unsafe_yyjson_get_len(v));
    } else if (yyjson_is_sint(v) || (yyjson_is_uint(v) && unsafe_yyjson_get_uint(v) <= INT64_MAX)) {
        p = param_add(&r->params, &r->arena, name, len, PARAM_INT);
        p->i = unsafe_yyjson_get_sint(v);
    } else if (yyjson_is_bool(v)) {
        p = param_add(&r->params, &r->arena, name, len, PARAM_BOOL);
        p->b = unsafe_yyjson_get_bool(v);
    } else if (yyjson_is_num(v)) {
        p = param_add(&r->params, &r->arena, name, len, PARAM_DOUBLE);
        p->d = yyjson_get_num(v);
    } else {
        return err_new(
            STATUS_INVALID_ARG,
            "parameter '%s' has invalid type. It should be either 'int', 'bool', or 'string'.",
            name);
    }
    return NULL;
}

static struct err *http_infer_json_read_param(struct http_exchange *x, struct request *r,
                                              yyjson_val *key, yyjson_val *v)
{
    const char *name = unsafe_yyjson_get_str(key);
    struct err *e = http_json_whole("parameter", name, unsafe_yyjson_get_len(key));
    if (e)
        return e;
    if (yyjson_equals_str(key, "sequence_id"))
        return set_sequence(r, v);
    if (yyjson_equals_str(key, "sequence_start"))
        return http_infer_json_set_flag(r, name, v, REQUEST_SEQUENCE_START);
    if (yyjson_equals_str(key, "sequence_end"))
        return http_infer_json_set_flag(r, name, v, REQUEST_SEQUENCE_END);
    if (yyjson_equals_str(key, "priority"))
        return set_uint(name, v, &r->priority);
    if (yyjson_equals_str(key, "timeout"))
        return set_uint(name, v, &r->timeout_us);
    if (yyjson_equals_str(key, "binary_data_output")) {
        if (!yyjson_is_bool(v))
            return http_infer_json_wrong_type(name, JSON_TENSOR_NOT_BOOL);
        x->binary_default = unsafe_yyjson_get_bool(v);
        return NULL;
    }
    if (strncmp(name, "triton_", 7) == 0)
        return err_new(
            STATUS_INVALID_ARG,
            "parameter keys starting with 'triton_' are reserved for Triton usage and should "
            "not be specified.");
    return http_infer_json_param(r, name, unsafe_yyjson_get_len(key), v);
}

static struct err *read_params(struct http_exchange *x, struct request *r, yyjson_val *root)
{
    yyjson_val *params = http_json_get(root, "parameters");
    if (!params)
        return NULL;
    if (!yyjson_is_obj(params))
        return err_new(STATUS_INTERNAL,
                       "failed to get request params.: attempt to get members for non-object");
    if (unsafe_yyjson_get_len(params) > HTTP_INFER_JSON_PARAMS)
        return err_new(STATUS_INVALID_ARG, "a request may have at most %u parameters",
                       HTTP_INFER_JSON_PARAMS);
    size_t i, n;
    yyjson_val *key, *v;
    yyjson_obj_foreach(params, i, n, key, v)
    {
        struct err *e = http_infer_json_read_param(x, r, key, v);
        if (e)
            return e;
    }
    return NULL;
}

static struct err *http_infer_json_read_inputs(struct request *r, yyjson_val *root,
                                               struct http_infer_tail *tail)
{
    yyjson_val *inputs = http_json_get(root, "inputs");
    if (!inputs)
        return err_new(
            STATUS_INTERNAL,
            "Unable to parse 'inputs': attempt to access non-existing object member 'inputs'");
    if (!yyjson_is_arr(inputs))
        return http_infer_json_wrong_type("inputs", JSON_TENSOR_NOT_ARRAY);
    size_t i, n;
    yyjson_val *input;
    yyjson_arr_foreach(inputs, i, n, input)
    {
        struct err *e = http_infer_input(r, input, tail);
        if (e)
            return e;
    }
    if (tail->left)
        return err_new(STATUS_INVALID_ARG, "unexpected additional input data for model '%s'",
                       version_of(r)->name);
    return NULL;
}

/* What an output that goes to shared memory cannot be besides. */
static struct err *check_shared_output(yyjson_val *params)
{
    yyjson_val *binary = http_json_get(params, "binary_data");
    if (http_json_get(params, "classification"))
        return err_new(STATUS_INVALID_ARG,
                       "Output can't set both 'shared_memory_region' and 'classification'");
    if (binary && !yyjson_is_bool(binary))
        return err_new(STATUS_INTERNAL, "Unable to set 'binary_data': %s",
                       json_tensor_text(JSON_TENSOR_NOT_BOOL));
    if (yyjson_is_true(binary))
        return err_new(STATUS_INVALID_ARG,
                       "Output can't set both 'shared_memory_region' and 'binary_data'");
    return NULL;
}

static struct err *http_infer_json_name_output(struct request *r, yyjson_val *output)
{
    yyjson_val *name = http_json_get(output, "name");
    if (!name)
        return err_new(
            STATUS_INTERNAL,
            "Unable to parse 'name': attempt to access non-existing object member 'name'");
    if (!yyjson_is_str(name))
        return http_infer_json_wrong_type("name", JSON_TENSOR_NOT_STRING);
    struct err *e =
        http_json_whole("output", unsafe_yyjson_get_str(name), unsafe_yyjson_get_len(name));
    if (e)
        return e;
    if (!request_add_output(r, unsafe_yyjson_get_str(name), unsafe_yyjson_get_len(name)))
        return err_new(STATUS_INVALID_ARG, "a request may name at most %u outputs",
                       REQUEST_MAX_TENSORS);
    return NULL;
}

static struct err *http_infer_json_read_output(struct request *r, yyjson_val *output,
                                               struct regions *regions,
                                               struct http_output_spec *spec)
{
    yyjson_val *params = http_json_get(output, "parameters");
    yyjson_val *classes = http_json_get(params, "classification");
    yyjson_val *binary = http_json_get(params, "binary_data");
    struct regions_part part;
    /* Parameters besides those two: none of shared memory otherwise. */
    bool others = yyjson_obj_size(params) > (size_t) !!classes + !!binary;
    bool shared = others && http_json_get(params, "shared_memory_region");
    struct err *e = shared ? check_shared_output(params) : NULL;
    if (!e)
        e = http_infer_json_name_output(r, output);
    if (e)
        return e;
    if (classes && !yyjson_is_uint(classes))
        return err_new(STATUS_INTERNAL, "Unable to set 'classification': %s",
                       json_tensor_text(JSON_TENSOR_NOT_UINT));
    e = others ? http_regions_part(params, &part, &shared) : NULL;
    if (e)
        return e;
    if (!shared && binary && !yyjson_is_bool(binary))
        return http_infer_json_wrong_type("binary_data", JSON_TENSOR_NOT_BOOL);
    yyjson_val *base64 = others ? http_json_get(params, "b64") : NULL;
    if (base64 && !yyjson_is_bool(base64))
        return http_infer_json_wrong_type("b64", JSON_TENSOR_NOT_BOOL);
    spec->name = r->outputs[r->output_count - 1];
    spec->classes = classes ? unsafe_yyjson_get_uint(classes) : 0;
    spec->binary = yyjson_is_true(binary);
    spec->base64 = yyjson_is_true(base64);
    return shared ? regions_lend_output(regions, r, &part, spec->name) : NULL;
}

static struct err *http_infer_json_read_outputs(struct http_exchange *x, struct request *r,
                                                yyjson_val *root)
{
    yyjson_val *outputs = http_json_get(root, "outputs");
    if (!outputs)
        return NULL;
    if (!yyjson_is_arr(outputs))
        return http_infer_json_wrong_type("outputs", JSON_TENSOR_NOT_ARRAY);
    size_t n = unsafe_yyjson_get_len(outputs);
    if (n > REQUEST_MAX_TENSORS)
        return err_new(STATUS_INVALID_ARG, "a request may name at most %u outputs",
                       REQUEST_MAX_TENSORS);
    struct http_output_spec *specs = arena_zalloc(&r->arena, n * sizeof(*specs));
    yyjson_val *output = unsafe_yyjson_get_first(outputs);
    for (size_t i = 0; i < n; i++, output = unsafe_yyjson_get_next(output)) {
        struct err *e =
            http_infer_json_read_output(r, output, x->shard->front->server->regions, &specs[i]);
        if (e)
            return e;
    }
    x->specs = specs;
    x->spec_count = (uint32_t)n;
    return NULL;
}

struct err *http_infer_json_fill(struct http_exchange *x, struct request *r, struct http_message *m,
                                 size_t json_len)
{
    uint64_t max = x->shard->front->server->options->http_max_input_bytes;
    if (json_len > max)
        return http_infer_too_large(json_len, max);
    struct http_json json;
    struct err *e = http_json_parse(x->shard, m->body, json_len, &json);
    if (e)
        return e;
    struct http_infer_tail tail = {
        .at = m->body + json_len,
        .left = m->body_len - json_len,
        .regions = x->shard->front->server->regions,
        .buf = m->buf,
        .max_bytes = (size_t)max,
    };
    if (m->buf && tail.left)
        r->body = buf_ref(m->buf);
    yyjson_val *root = yyjson_doc_get_root(json.doc);
    e = http_infer_json_id(r, root);
    if (!e)
        e = read_params(x, r, root);
    if (!e)
        e = http_infer_json_read_inputs(r, root, &tail);
    if (!e)
        e = http_infer_json_read_outputs(x, r, root);
    http_json_end(&json);
    return e;
}
