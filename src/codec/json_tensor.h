#pragma once
/* The "data" of tensors in JSON: nested or flat arrays in, flat text out. Types are told by kind
 * and width, since datatypes belong to a higher layer. Pure; any thread. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <yyjson.h>

/* How deep arrays may nest. */
#define JSON_TENSOR_MAX_DEPTH 100u

enum json_tensor_kind {
    JSON_TENSOR_BOOL,
    JSON_TENSOR_UINT,
    JSON_TENSOR_INT,
    JSON_TENSOR_REAL,
    /* strings; as tensors: each 4 bytes of length (little endian), then the bytes */
    JSON_TENSOR_BYTES,
};

/* width is 1, 2, 4 or 8 bytes an element (8 or 4 for reals); 0 for BYTES. */
struct json_tensor_type {
    enum json_tensor_kind kind;
    uint8_t width;
};

enum json_tensor_result {
    JSON_TENSOR_OK,
    JSON_TENSOR_NOT_ARRAY,
    JSON_TENSOR_NOT_BOOL,
    JSON_TENSOR_NOT_UINT,
    JSON_TENSOR_NOT_INT,
    JSON_TENSOR_NOT_NUMBER,
    JSON_TENSOR_NOT_STRING,
    JSON_TENSOR_RANGE,    /* a number that the type cannot hold */
    JSON_TENSOR_TOO_MANY, /* more elements than asked for */
    JSON_TENSOR_TOO_FEW,
    JSON_TENSOR_TOO_DEEP,
    JSON_TENSOR_TOO_LONG, /* a string over UINT32_MAX bytes */
};

/* json_tensor_text - words for a result other than OK, as the reference says it; never NULL. */
const char *json_tensor_text(enum json_tensor_result r);

/* json_tensor_bytes - how many bytes the strings under `data` take as a tensor, however many
 * they are. */
enum json_tensor_result json_tensor_bytes(yyjson_val *data, uint64_t *ret_bytes);

/* json_tensor_read - decode the elements in order.
 * data   an array, nested in any way
 * count  elements wanted; for BYTES as many as there are, and `to` has the room that
 *        json_tensor_bytes said
 * to     count * width bytes; need not be aligned */
enum json_tensor_result json_tensor_read(yyjson_val *data, struct json_tensor_type type,
                                         uint64_t count, void *to);

/* json_tensor_room - the most bytes that json_tensor_write can need; false when that overflows. */
bool json_tensor_room(struct json_tensor_type type, uint64_t count, uint64_t bytes, size_t *ret);

/* json_tensor_write - "[...]", the elements in order.
 * from, bytes  the tensor
 * returns      the end of the text; NULL when `bytes` is not what `count` elements take, or
 *              strings run past the end */
char *json_tensor_write(char *to, struct json_tensor_type type, uint64_t count, const void *from,
                        uint64_t bytes);
