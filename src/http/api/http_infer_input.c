#include "http/api/http_infer_input.h"

#include "http/api/http_json.h"
#include "http/api/http_regions.h"
#include "infer/request.h"
#include "model/shape.h"
#include "model/tensor_json.h"
#include "serve/version.h"

#include <inttypes.h>
#include <string.h>

/* The source of an input's data; one of the members after the first is set. */
struct source {
    yyjson_val *params; /* NULL = the input has none */
    yyjson_val *data;
    yyjson_val *binary_size;
    yyjson_val *shared_region;
};

static struct err *http_infer_input_find_source(yyjson_val *input, struct source *s)
{
    s->params = http_json_get(input, "parameters");
    s->data = http_json_get(input, "data");
    s->binary_size = http_json_get(s->params, "binary_data_size");
    s->shared_region = http_json_get(s->params, "shared_memory_region");
    int given = !!s->data + !!s->binary_size + !!s->shared_region;
    if (given == 1)
        return NULL;
    return err_new(STATUS_INVALID_ARG,
                   "Input must set only one of the following fields: 'data', 'binary_data_size' in "
                   "'parameters', "
                   "'shared_memory_region' in 'parameters'. But%s%s%s%s",
                   given ? " set" : " no field is set", s->data ? " 'data'" : "",
                   s->binary_size ? " 'binary_data_size'" : "",
                   s->shared_region ? " 'shared_memory_region'" : "");
}

static struct err *member_string(yyjson_val *v, const char *name, const char **ret, size_t *ret_len)
{
    if (!v)
        return err_new(STATUS_INTERNAL,
                       "Unable to parse '%s': attempt to access non-existing object member '%s'",
                       name, name);
    if (!yyjson_is_str(v))
        return err_new(STATUS_INTERNAL, "Unable to parse '%s': %s", name,
                       json_tensor_text(JSON_TENSOR_NOT_STRING));
    *ret = unsafe_yyjson_get_str(v);
    *ret_len = unsafe_yyjson_get_len(v);
    return NULL;
}

static struct err *http_infer_input_read_shape(yyjson_val *input,
                                               int64_t dims[HTTP_INFER_INPUT_RANK],
                                               uint32_t *ret_rank)
{
    yyjson_val *shape = http_json_get(input, "shape");
    if (!shape)
        return err_new(
            STATUS_INTERNAL,
            "Unable to parse 'shape': attempt to access non-existing object member 'shape'");
    if (!yyjson_is_arr(shape))
        return err_new(STATUS_INTERNAL, "Unable to parse 'shape': %s",
                       json_tensor_text(JSON_TENSOR_NOT_ARRAY));
    size_t rank = unsafe_yyjson_get_len(shape);
    if (rank > HTTP_INFER_INPUT_RANK)
        return err_new(STATUS_INVALID_ARG, "a shape has %zu dimensions, at most %u are supported",
                       rank, HTTP_INFER_INPUT_RANK);
    yyjson_val *v = unsafe_yyjson_get_first(shape);
    for (size_t i = 0; i < rank; i++, v = unsafe_yyjson_get_next(v)) {
        if (!yyjson_is_uint(v))
            return err_new(STATUS_INTERNAL, "Unable to parse 'shape': %s",
                           json_tensor_text(JSON_TENSOR_NOT_UINT));
        if (unsafe_yyjson_get_uint(v) > INT64_MAX)
            return err_new(STATUS_INVALID_ARG,
                           "Unable to parse 'shape': a dimension is over %" PRId64, INT64_MAX);
        dims[i] = (int64_t)unsafe_yyjson_get_uint(v);
    }
    *ret_rank = (uint32_t)rank;
    return NULL;
}

static struct err *http_infer_input_describe(yyjson_val *input, struct http_infer_input *d)
{
    struct err *e = member_string(http_json_get(input, "name"), "name", &d->name, &d->name_len);
    if (!e)
        e = http_json_whole("input", d->name, d->name_len);
    if (e)
        return e;
    const char *datatype;
    size_t datatype_len;
    e = member_string(http_json_get(input, "datatype"), "datatype", &datatype, &datatype_len);
    if (e)
        return e;
    d->datatype = datatype_parse(datatype, datatype_len);
    return http_infer_input_read_shape(input, d->dims, &d->rank);
}

static struct err *http_infer_input_add_piece(struct request *r, const struct http_infer_input *d,
                                              const struct tensor_piece *piece)
{
    if (request_add_input(r, d->name, d->name_len, d->datatype, d->dims, d->rank, piece,
                          piece->size ? 1 : 0))
        return NULL;
    return err_new(STATUS_INVALID_ARG, "a request may have at most %u inputs", REQUEST_MAX_TENSORS);
}

static struct err *http_infer_input_add(struct request *r, const struct http_infer_input *d,
                                        const void *data, uint64_t size)
{
    struct tensor_piece piece = {.data = data, .size = size, .memory = BUF_MEMORY_CPU};
    return http_infer_input_add_piece(r, d, &piece);
}

static struct err *http_infer_input_add_shared(struct request *r, const struct http_infer_input *d,
                                               const struct regions_part *part,
                                               struct regions *regions)
{
    struct tensor_piece piece;
    struct err *e = regions_lend_input(regions, r, part, &piece);
    if (!e)
        e = http_infer_input_add_piece(r, d, &piece);
    if (!e)
        r->inputs[r->input_count - 1].shared = true;
    return e;
}

static struct err *http_infer_input_add_binary(struct request *r, const struct http_infer_input *d,
                                               yyjson_val *size, struct http_infer_tail *tail)
{
    if (!yyjson_is_uint(size))
        return err_new(STATUS_INTERNAL, "Unable to parse 'binary_data_size': %s",
                       json_tensor_text(JSON_TENSOR_NOT_UINT));
    uint64_t n = unsafe_yyjson_get_uint(size);
    if (n > tail->left)
        return err_new(STATUS_INVALID_ARG,
                       "unexpected size for input '%s', expecting %" PRIu64
                       " additional bytes for model '%s'",
                       d->name, n - tail->left, version_of(r)->name);
    const void *data = tail->at;
    tail->at += n;
    tail->left -= (size_t)n;
    if (!n || tail->buf)
        return http_infer_input_add(r, d, data, n);
    void *copy;
    struct err *e = request_keep(r, (size_t)n, &copy);
    if (e)
        return e;
    memcpy(copy, data, (size_t)n);
    return http_infer_input_add(r, d, copy, n);
}

static struct err *bad_data(const char *context, enum json_tensor_result result)
{
    bool ours = result == JSON_TENSOR_RANGE || result == JSON_TENSOR_TOO_DEEP ||
                result == JSON_TENSOR_TOO_LONG || result == JSON_TENSOR_NOT_BASE64;
    return err_new(ours ? STATUS_INVALID_ARG : STATUS_INTERNAL, "Unable to parse %s: %s", context,
                   json_tensor_text(result));
}

static struct err *bad_shape(const struct http_infer_input *d)
{
    struct strbuf sb = STRBUF_INIT;
    shape_print(&sb, d->dims, d->rank);
    struct err *e = err_new(STATUS_INVALID_ARG,
                            "invalid shape for input '%s': shape %s causes total element count to "
                            "exceed maximum size of %" PRId64,
                            d->name, strbuf_str(&sb), INT64_MAX);
    strbuf_fini(&sb);
    return e;
}

static struct err *no_json_type(const struct http_infer_input *d)
{
    if (d->datatype == DATATYPE_INVALID)
        return err_new(STATUS_INVALID_ARG, "invalid datatype for input %s", d->name);
    return err_new(STATUS_INVALID_ARG,
                   "receiving %s data via JSON is not supported. Please use the binary data format "
                   "for input %s",
                   datatype_name(d->datatype), d->name);
}

/* How many bytes the data take as a tensor. */
static struct err *http_infer_input_data_bytes(const struct http_infer_input *d, yyjson_val *data,
                                               struct json_tensor_type type, uint64_t elements,
                                               size_t max_bytes, uint64_t *ret)
{
    if (type.kind == JSON_TENSOR_BYTES) {
        enum json_tensor_result result = json_tensor_bytes(data, ret);
        if (result != JSON_TENSOR_OK)
            return bad_data("JSON bytes array", result);
    } else if (__builtin_mul_overflow(elements, (uint64_t)type.width, ret) || *ret > INT64_MAX) {
        return err_new(STATUS_INVALID_ARG,
                       "byte size overflow for input '%s': element count (%" PRIu64
                       ") * data type size (%u) exceeds maximum "
                       "allowed size (%" PRId64 ")",
                       d->name, elements, type.width, INT64_MAX);
    }
    if (*ret > max_bytes)
        return err_new(STATUS_INVALID_ARG,
                       "JSON input '%s' has a byte_size (%" PRIu64
                       " bytes) that exceeds the maximum allowed value of %zu "
                       "bytes. Use --http-max-input-size to increase the limit.",
                       d->name, *ret, max_bytes);
    return NULL;
}

struct err *http_infer_input_json(struct request *r, const struct http_infer_input *d,
                                  yyjson_val *data, uint64_t elements, size_t *max_bytes)
{
    uint64_t bytes;
    struct json_tensor_type type;
    if (!tensor_json_type(d->datatype, &type))
        return no_json_type(d);
    struct err *e = http_infer_input_data_bytes(d, data, type, elements, *max_bytes, &bytes);
    if (e)
        return e;
    void *to;
    e = request_keep(r, (size_t)bytes, &to);
    if (e)
        return e;
    *max_bytes -= (size_t)bytes;
    enum json_tensor_result result = json_tensor_read(data, type, elements, to);
    return result == JSON_TENSOR_OK ? http_infer_input_add(r, d, to, bytes)
                                    : bad_data("'data'", result);
}

static struct err *http_infer_input_add_json(struct request *r, const struct http_infer_input *d,
                                             yyjson_val *data, size_t max_bytes)
{
    uint64_t elements;
    if (!shape_elements(d->dims, d->rank, &elements))
        return bad_shape(d);
    if (!elements || !d->rank) /* a shape without dimensions is refused with the model's own */
        return http_infer_input_add(r, d, NULL, 0);
    if (!yyjson_is_arr(data))
        return bad_data("'data'", JSON_TENSOR_NOT_ARRAY);
    return http_infer_input_json(r, d, data, elements, &max_bytes);
}

struct err *http_infer_input(struct request *r, yyjson_val *input, struct http_infer_tail *tail)
{
    struct source from;
    struct err *e = http_infer_input_find_source(input, &from);
    if (e)
        return e;
    struct http_infer_input d;
    e = http_infer_input_describe(input, &d);
    if (e)
        return e;
    if (from.binary_size)
        return http_infer_input_add_binary(r, &d, from.binary_size, tail);
    if (!from.params)
        return http_infer_input_add_json(r, &d, from.data, tail->max_bytes);
    struct regions_part part;
    bool shared;
    e = http_regions_part(from.params, &part, &shared);
    if (e)
        return e;
    return shared ? http_infer_input_add_shared(r, &d, &part, tail->regions)
                  : http_infer_input_add_json(r, &d, from.data, tail->max_bytes);
}
