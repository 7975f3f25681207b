#pragma once
/* The "data" of tensors in JSON: reads nested or flat arrays, writes flat text. Types are given
 * as kind and width, because datatypes belong to a higher layer. Pure; any thread. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <yyjson.h>

/* The deepest nesting of arrays. */
#define JSON_TENSOR_MAX_DEPTH 100u

enum json_tensor_kind {
    JSON_TENSOR_BOOL,
    JSON_TENSOR_UINT,
    JSON_TENSOR_INT,
    JSON_TENSOR_REAL,
    JSON_TENSOR_FP16, /* reals of 16 bits: see half.h */
    JSON_TENSOR_BF16,
    /* strings; in a tensor: a length of 4 bytes (little endian), then the bytes */
    JSON_TENSOR_BYTES,
};

/* width: bytes per element, 1, 2, 4 or 8 (4 or 8 for reals); 0 for BYTES. */
struct json_tensor_type {
    enum json_tensor_kind kind;
    uint8_t width;
    bool base64; /* strings that are not UTF-8 are written as {"b64":"..."} */
};

enum json_tensor_result {
    JSON_TENSOR_OK,
    JSON_TENSOR_NOT_ARRAY, /* said by callers: an element alone is read too */
    JSON_TENSOR_NOT_BOOL,
    JSON_TENSOR_NOT_UINT,
    JSON_TENSOR_NOT_INT,
    JSON_TENSOR_NOT_NUMBER,
    JSON_TENSOR_NOT_STRING,
    JSON_TENSOR_RANGE,    /* the type cannot represent a number */
    JSON_TENSOR_TOO_MANY, /* more elements than requested */
    JSON_TENSOR_TOO_FEW,
    JSON_TENSOR_TOO_DEEP,
    JSON_TENSOR_TOO_LONG, /* a string of more than UINT32_MAX bytes */
    JSON_TENSOR_NOT_BASE64,
};

/* json_tensor_text - the reference's text for a result other than OK; never NULL. */
const char *json_tensor_text(enum json_tensor_result r);

/* json_tensor_bytes - how many bytes the strings under `data` have as a tensor. */
enum json_tensor_result json_tensor_bytes(yyjson_val *data, uint64_t *ret_bytes);

/* json_tensor_read - decode the elements in order. A string may also be {"b64": base64 of it}.
 * data   an array, nested in any way, or an element alone
 * count  elements wanted; for BYTES as many as there are, and `to` has the room that
 *        json_tensor_bytes said
 * to     count * width bytes; need not be aligned */
enum json_tensor_result json_tensor_read(yyjson_val *data, struct json_tensor_type type,
                                         uint64_t count, void *to);

/* json_tensor_room - the most bytes that json_tensor_write needs; false if that overflows. */
bool json_tensor_room(struct json_tensor_type type, uint64_t count, uint64_t bytes, size_t *ret);

/* json_tensor_write - write "[...]", the elements in order.
 * from, bytes  the tensor
 * returns      the end of the text; NULL if `bytes` does not match `count` elements, or strings
 *              run past the end */
char *json_tensor_write(char *to, struct json_tensor_type type, uint64_t count, const void *from,
                        uint64_t bytes);
