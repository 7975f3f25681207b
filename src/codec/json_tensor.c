#include "codec/json_tensor.h"

#include "codec/base64.h"
#include "codec/half.h"
#include "codec/json_out.h"
#include "codec/pb_utf8.h"

#include <string.h>

const char *json_tensor_text(enum json_tensor_result r)
{
    switch (r) {
    case JSON_TENSOR_OK:
        return "no error";
    case JSON_TENSOR_NOT_ARRAY:
        return "attempt to access JSON non-array as array";
    case JSON_TENSOR_NOT_BOOL:
        return "attempt to access JSON non-boolean as boolean";
    case JSON_TENSOR_NOT_UINT:
        return "attempt to access JSON non-unsigned-integer as unsigned-integer";
    case JSON_TENSOR_NOT_INT:
        return "attempt to access JSON non-signed-integer as signed-integer";
    case JSON_TENSOR_NOT_NUMBER:
        return "attempt to access JSON non-number as double";
    case JSON_TENSOR_NOT_STRING:
        return "attempt to access JSON non-string as string";
    case JSON_TENSOR_RANGE:
        return "a number is out of the range of the datatype";
    case JSON_TENSOR_TOO_MANY:
    case JSON_TENSOR_TOO_FEW:
        return "Shape does not match true shape of 'data' field";
    case JSON_TENSOR_TOO_DEEP:
        return "JSON nesting depth exceeds maximum allowed limit (100)";
    case JSON_TENSOR_TOO_LONG:
        return "a string is over 4294967295 bytes";
    case JSON_TENSOR_NOT_BASE64:
        return "the string of {\"b64\": ...} is not base64";
    }
    return "unknown error";
}

/* The walk over nested arrays, and what it does with each element. */
struct reader {
    struct json_tensor_type type;
    uint64_t left; /* elements still to read; unused for BYTES */
    char *to;      /* NULL: only count bytes */
    uint64_t bytes;
};

static enum json_tensor_result read_uint(struct reader *r, const yyjson_val *v)
{
    bool minus_zero = (uint8_t)v->tag == (YYJSON_TYPE_NUM | YYJSON_SUBTYPE_SINT) && !v->uni.u64;
    if (!unsafe_yyjson_is_uint((void *)(uintptr_t)v) && !minus_zero)
        return JSON_TENSOR_NOT_UINT;
    uint64_t n = v->uni.u64;
    if (r->type.width < 8 && n >> (8 * r->type.width))
        return JSON_TENSOR_RANGE;
    memcpy(r->to, &n, r->type.width); /* little endian: the low bytes come first */
    return JSON_TENSOR_OK;
}

static enum json_tensor_result json_tensor_read_int(struct reader *r, const yyjson_val *v)
{
    uint8_t tag = (uint8_t)v->tag;
    if (tag != (YYJSON_TYPE_NUM | YYJSON_SUBTYPE_UINT) &&
        tag != (YYJSON_TYPE_NUM | YYJSON_SUBTYPE_SINT))
        return JSON_TENSOR_NOT_INT;
    if (tag == (YYJSON_TYPE_NUM | YYJSON_SUBTYPE_UINT) && v->uni.u64 > INT64_MAX)
        return r->type.width < 8 ? JSON_TENSOR_RANGE : JSON_TENSOR_NOT_INT;
    int64_t n = v->uni.i64;
    if (r->type.width < 8) {
        int64_t limit = (int64_t)1 << (8 * r->type.width - 1);
        if (n >= limit || n < -limit)
            return JSON_TENSOR_RANGE;
    }
    memcpy(r->to, &n, r->type.width);
    return JSON_TENSOR_OK;
}

static bool json_tensor_is_real(const yyjson_val *v, double *ret)
{
    switch ((uint8_t)v->tag) {
    case YYJSON_TYPE_NUM | YYJSON_SUBTYPE_REAL:
        *ret = v->uni.f64;
        return true;
    case YYJSON_TYPE_NUM | YYJSON_SUBTYPE_UINT:
        *ret = (double)v->uni.u64;
        return true;
    case YYJSON_TYPE_NUM | YYJSON_SUBTYPE_SINT:
        *ret = (double)v->uni.i64;
        return true;
    default:
        return false;
    }
}

static enum json_tensor_result json_tensor_read_real(struct reader *r, const yyjson_val *v)
{
    double d;
    if (!json_tensor_is_real(v, &d))
        return JSON_TENSOR_NOT_NUMBER;
    float f = (float)d;
    if (r->type.width == 4)
        memcpy(r->to, &f, sizeof(f));
    else
        memcpy(r->to, &d, sizeof(d));
    return JSON_TENSOR_OK;
}

static struct half_form form_of(enum json_tensor_kind kind)
{
    return kind == JSON_TENSOR_FP16 ? HALF_FP16 : HALF_BF16;
}

static enum json_tensor_result read_half(struct reader *r, const yyjson_val *v)
{
    double d;
    uint16_t half;
    if (!json_tensor_is_real(v, &d))
        return JSON_TENSOR_NOT_NUMBER;
    if (!half_round(d, form_of(r->type.kind), &half))
        return JSON_TENSOR_RANGE;
    memcpy(r->to, &half, sizeof(half));
    return JSON_TENSOR_OK;
}

/* Reads up to n floats from v on: the most common tensors. Returns how many there are before
 * something that is no number, or too many. */
static size_t read_floats(struct reader *r, const yyjson_val *v, size_t n)
{
    size_t most = n < r->left ? n : (size_t)r->left;
    size_t i = 0;
    double d;
    for (; i < most && json_tensor_is_real(v + i, &d); i++) {
        float f = (float)d;
        memcpy(r->to + i * sizeof(f), &f, sizeof(f));
    }
    r->to += i * sizeof(float);
    r->left -= i;
    return i;
}

/* Reads {"b64": base64 of a string}. */
static enum json_tensor_result read_base64(struct reader *r, yyjson_val *v)
{
    yyjson_val *text = yyjson_obj_size(v) == 1 ? yyjson_obj_getn(v, "b64", 3) : NULL;
    if (!yyjson_is_str(text))
        return JSON_TENSOR_NOT_STRING;
    const char *from = unsafe_yyjson_get_str(text);
    size_t len = unsafe_yyjson_get_len(text), got;
    size_t bytes = base64_bytes(from, len);
    if (bytes > UINT32_MAX)
        return JSON_TENSOR_TOO_LONG;
    r->bytes += sizeof(uint32_t) + bytes;
    if (!r->to)
        return JSON_TENSOR_OK;
    uint32_t prefix = (uint32_t)bytes;
    memcpy(r->to, &prefix, sizeof(prefix));
    if (!base64_decode(from, len, BASE64_ONE_LINE, r->to + sizeof(prefix), &got) || got != bytes)
        return JSON_TENSOR_NOT_BASE64;
    r->to += sizeof(prefix) + bytes;
    return JSON_TENSOR_OK;
}

static enum json_tensor_result json_tensor_read_string(struct reader *r, yyjson_val *v)
{
    if ((uint8_t)(v->tag & YYJSON_TYPE_MASK) == YYJSON_TYPE_OBJ)
        return read_base64(r, v);
    if ((uint8_t)(v->tag & YYJSON_TYPE_MASK) != YYJSON_TYPE_STR)
        return JSON_TENSOR_NOT_STRING;
    size_t len = (size_t)(v->tag >> YYJSON_TAG_BIT);
    if (len > UINT32_MAX)
        return JSON_TENSOR_TOO_LONG;
    r->bytes += sizeof(uint32_t) + len;
    if (!r->to)
        return JSON_TENSOR_OK;
    uint32_t prefix = (uint32_t)len;
    memcpy(r->to, &prefix, sizeof(prefix));
    memcpy(r->to + sizeof(prefix), v->uni.str, len);
    r->to += sizeof(prefix) + len;
    return JSON_TENSOR_OK;
}

static enum json_tensor_result read_fixed(struct reader *r, const yyjson_val *v)
{
    if (!r->left)
        return JSON_TENSOR_TOO_MANY;
    r->left--;
    enum json_tensor_result result = JSON_TENSOR_OK;
    switch (r->type.kind) {
    case JSON_TENSOR_BOOL:
        if ((uint8_t)(v->tag & YYJSON_TYPE_MASK) != YYJSON_TYPE_BOOL)
            return JSON_TENSOR_NOT_BOOL;
        *r->to = (uint8_t)v->tag == (YYJSON_TYPE_BOOL | YYJSON_SUBTYPE_TRUE);
        break;
    case JSON_TENSOR_UINT:
        result = read_uint(r, v);
        break;
    case JSON_TENSOR_INT:
        result = json_tensor_read_int(r, v);
        break;
    case JSON_TENSOR_REAL:
        result = json_tensor_read_real(r, v);
        break;
    case JSON_TENSOR_FP16:
    case JSON_TENSOR_BF16:
        result = read_half(r, v);
        break;
    case JSON_TENSOR_BYTES:
        break;
    }
    r->to += r->type.width;
    return result;
}

/* Reads n values from v on. `depth` arrays are around them. */
static enum json_tensor_result walk(struct reader *r, yyjson_val *v, size_t n, unsigned depth)
{
    if (depth > JSON_TENSOR_MAX_DEPTH)
        return JSON_TENSOR_TOO_DEEP;
    size_t i = 0;
    if (r->type.kind == JSON_TENSOR_REAL && r->type.width == sizeof(float)) {
        i = read_floats(r, v, n);
        v += i;
    }
    for (; i < n; i++) {
        enum json_tensor_result result;
        if (unsafe_yyjson_is_arr(v)) {
            result = walk(r, unsafe_yyjson_get_first(v), unsafe_yyjson_get_len(v), depth + 1);
            if (result != JSON_TENSOR_OK)
                return result;
            v = unsafe_yyjson_get_next(v);
            continue;
        }
        bool string = r->type.kind == JSON_TENSOR_BYTES;
        result = string ? json_tensor_read_string(r, v) : read_fixed(r, v);
        if (result != JSON_TENSOR_OK)
            return result;
        v = string ? unsafe_yyjson_get_next(v) : v + 1; /* a number is a single value */
    }
    return JSON_TENSOR_OK;
}

enum json_tensor_result json_tensor_bytes(yyjson_val *data, uint64_t *ret_bytes)
{
    struct reader r = {.type = {JSON_TENSOR_BYTES, 0}};
    enum json_tensor_result result = walk(&r, data, 1, 0);
    if (result == JSON_TENSOR_OK)
        *ret_bytes = r.bytes;
    return result;
}

enum json_tensor_result json_tensor_read(yyjson_val *data, struct json_tensor_type type,
                                         uint64_t count, void *to)
{
    struct reader r = {.type = type, .left = count, .to = to};
    enum json_tensor_result result = walk(&r, data, 1, 0);
    if (result == JSON_TENSOR_OK && type.kind != JSON_TENSOR_BYTES && r.left)
        return JSON_TENSOR_TOO_FEW;
    return result;
}

bool json_tensor_room(struct json_tensor_type type, uint64_t count, uint64_t bytes, size_t *ret)
{
    uint64_t text;
    if (type.kind == JSON_TENSOR_BYTES) {
        /* For each string: its length prefix has room for quotes and a comma, or for {"b64":""};
         * each byte needs at most six. */
        if (__builtin_mul_overflow(bytes, 6, &text))
            return false;
    } else if (__builtin_mul_overflow(count, JSON_OUT_NUMBER_BYTES, &text)) {
        return false;
    }
    if (__builtin_add_overflow(text, 16, &text))
        return false;
    *ret = (size_t)text;
    return true;
}

static char *json_tensor_write_base64(char *to, const char *from, size_t len)
{
    to = JSON_OUT_LITERAL(to, "{\"b64\":\"");
    to = base64_encode(to, from, len);
    return JSON_OUT_LITERAL(to, "\"}");
}

static char *json_tensor_write_strings(char *to, uint64_t count, const char *from, uint64_t bytes,
                                       bool base64)
{
    for (uint64_t i = 0; i < count; i++) {
        uint32_t len;
        if (bytes < sizeof(len))
            return NULL;
        memcpy(&len, from, sizeof(len));
        from += sizeof(len);
        bytes -= sizeof(len);
        if (bytes < len)
            return NULL;
        if (i)
            *to++ = ',';
        to = base64 && !pb_utf8_valid(from, len) ? json_tensor_write_base64(to, from, len)
                                                 : json_out_string(to, from, len);
        from += len;
        bytes -= len;
    }
    return to;
}

static uint64_t load_uint(const char *from, unsigned width)
{
    uint64_t n = 0;
    memcpy(&n, from, width);
    return n;
}

static int64_t load_int(const char *from, unsigned width)
{
    unsigned unused = 64 - 8 * width;
    return (int64_t)(load_uint(from, width) << unused) >> unused;
}

static char *write_fixed(char *to, struct json_tensor_type type, uint64_t count, const char *from)
{
    for (uint64_t i = 0; i < count; i++, from += type.width) {
        if (i)
            *to++ = ',';
        if (type.kind == JSON_TENSOR_BOOL)
            to = json_out_bool(to, *from != 0);
        else if (type.kind == JSON_TENSOR_UINT)
            to = json_out_uint(to, load_uint(from, type.width));
        else if (type.kind == JSON_TENSOR_FP16 || type.kind == JSON_TENSOR_BF16)
            to = json_out_real(
                to, half_value((uint16_t)load_uint(from, sizeof(uint16_t)), form_of(type.kind)));
        else
            to = json_out_int(to, load_int(from, type.width));
    }
    return to;
}

char *json_tensor_write(char *to, struct json_tensor_type type, uint64_t count, const void *from,
                        uint64_t bytes)
{
    uint64_t expected;
    *to++ = '[';
    if (type.kind == JSON_TENSOR_BYTES)
        to = json_tensor_write_strings(to, count, from, bytes, type.base64);
    else if (__builtin_mul_overflow(count, (uint64_t)type.width, &expected) || bytes != expected)
        return NULL;
    else if (type.kind == JSON_TENSOR_REAL && count)
        to = type.width == 4 ? json_out_floats(to, from, count) : json_out_doubles(to, from, count);
    else
        to = write_fixed(to, type, count, from);
    if (to)
        *to++ = ']';
    return to;
}
