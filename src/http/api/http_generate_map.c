#include "http/api/http_generate_map.h"

#include "http/api/http_infer.h"
#include "http/api/http_infer_input.h"
#include "http/api/http_infer_json.h"
#include "http/api/http_json.h"
#include "http/http_exchange.h"
#include "http/http_shard.h"
#include "infer/request.h"
#include "model/config.h"
#include "model/shape.h"
#include "server/server.h"

#include <string.h>

/* What its inputs and parameters may lie in, apart from the object itself. */
#define NESTED "parameters"

/* A request that is being filled. */
struct filling {
    struct request *r;
    size_t left;     /* bytes that its tensors may still take */
    uint32_t params; /* so far */
};

/* The shape as the model's metadata show it. */
static bool shown_shape(const struct model_config *c, const struct model_io *io,
                        struct http_infer_input *d)
{
    d->rank = 0;
    if (io->rank >= HTTP_INFER_INPUT_RANK)
        return false;
    if (c->max_batch_size > 0 && !io->shape_tensor)
        d->dims[d->rank++] = SHAPE_ANY;
    for (uint32_t i = 0; i < io->rank; i++)
        d->dims[d->rank++] = io->dims[i];
    return true;
}

/* Spreads so many elements over a shape: dimensions of fixed size get theirs, the last one of any
 * size what is left, others of any size 1. */
static bool spread_elements(struct http_infer_input *d, uint64_t elements)
{
    for (uint32_t i = d->rank; i--;) {
        if (d->dims[i] == SHAPE_ANY)
            continue;
        if (d->dims[i] <= 0 || elements % (uint64_t)d->dims[i])
            return false;
        elements /= (uint64_t)d->dims[i];
    }
    for (uint32_t i = d->rank; i--;) {
        if (d->dims[i] != SHAPE_ANY)
            continue;
        d->dims[i] = (int64_t)elements;
        elements = 1;
    }
    return elements == 1;
}

bool http_generate_map_shape(const struct model_config *c, const struct model_io *io,
                             uint64_t elements, struct http_infer_input *d)
{
    d->name = io->name;
    d->name_len = io->name_len;
    d->datatype = io->datatype;
    return shown_shape(c, io, d) && spread_elements(d, elements);
}

static struct err *map_input(struct filling *f, const struct model_io *io, yyjson_val *v)
{
    struct http_infer_input d;
    for (uint32_t i = 0; i < f->r->input_count; i++)
        if (strcmp(f->r->inputs[i].name, io->name) == 0)
            return request_error(f->r, "input '%s' already exists in request", io->name);
    uint64_t elements = yyjson_is_arr(v) ? unsafe_yyjson_get_len(v) : 1;
    if (!http_generate_map_shape(f->r->config, io, elements, &d))
        return err_new(STATUS_INVALID_ARG,
                       "The schema can not convert input '%s' to tensor with proper shape",
                       io->name);
    return http_infer_input_json(f->r, &d, v, elements, &f->left);
}

static struct err *map_member(struct filling *f, yyjson_val *key, yyjson_val *v)
{
    const struct model_config *c = f->r->config;
    const char *name = unsafe_yyjson_get_str(key);
    size_t len = unsafe_yyjson_get_len(key);
    struct err *e = http_json_whole("parameter", name, len);
    if (e)
        return e;
    int32_t input = config_input(c, name, len);
    if (input >= 0)
        return map_input(f, &c->inputs[input], v);
    if (f->params++ == HTTP_INFER_JSON_PARAMS)
        return err_new(STATUS_INVALID_ARG, "a request may have at most %u parameters",
                       HTTP_INFER_JSON_PARAMS);
    return http_infer_json_param(f->r, name, len, v);
}

static struct err *map_nested(struct filling *f, yyjson_val *v)
{
    if (config_input(f->r->config, NESTED, strlen(NESTED)) >= 0)
        return err_new(STATUS_INVALID_ARG,
                       "Keyword '" NESTED "' for nested schema also given as input tensor name");
    if (!yyjson_is_obj(v))
        return err_new(STATUS_INTERNAL, "Expected JSON object for keyword: '" NESTED
                                        "': attempt to access JSON non-object as object");
    size_t i, n;
    yyjson_val *key, *member;
    yyjson_obj_foreach(v, i, n, key, member)
    {
        struct err *e = map_member(f, key, member);
        if (e)
            return err_wrap(e, "Converting keyword: '" NESTED "'");
    }
    return NULL;
}

static struct err *map_object(struct filling *f, yyjson_val *root)
{
    struct err *e = http_infer_json_id(f->r, root);
    if (e)
        return e;
    if (!yyjson_is_obj(root))
        return err_new(STATUS_INTERNAL, "attempt to get members for non-object");
    size_t i, n;
    yyjson_val *key, *v;
    yyjson_obj_foreach(root, i, n, key, v)
    {
        e = yyjson_equals_strn(key, NESTED, strlen(NESTED)) ? map_nested(f, v)
                                                            : map_member(f, key, v);
        if (e)
            return e;
    }
    return NULL;
}

struct err *http_generate_map(struct http_exchange *x, struct request *r, struct http_message *m)
{
    uint64_t max = x->shard->front->server->options->http_max_input_bytes;
    if (m->body_len > max)
        return http_infer_too_large(m->body_len, max);
    struct http_json json;
    struct err *e = http_json_parse_body(x->shard, m, &json);
    if (e)
        return e;
    struct filling f = {.r = r, .left = (size_t)max};
    e = map_object(&f, yyjson_doc_get_root(json.doc));
    http_json_end(&json);
    return e;
}
