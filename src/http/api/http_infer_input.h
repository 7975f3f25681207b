#pragma once
/* One input of an inference request in JSON: its description, and its data in the JSON or after
 * it. Worker's thread only. */
#include "base/err.h"
#include "model/datatype.h"

#include <stddef.h>
#include <stdint.h>
#include <yyjson.h>

struct buf;
struct regions;
struct request;

/* The bytes after the JSON, which binary inputs take in order. */
struct http_infer_tail {
    const char *at;
    size_t left;
    struct regions *regions; /* shared memory that inputs may name */
    struct buf *buf;  /* the memory of the bytes; NULL: memory that is reused, so they are copied */
    size_t max_bytes; /* the most bytes of a tensor in JSON */
};

/* http_infer_input - add one element of "inputs" to r.
 * errors  in the reference's words */
struct err *http_infer_input(struct request *r, yyjson_val *input, struct http_infer_tail *tail);

#define HTTP_INFER_INPUT_RANK 256u

/* An input as a request describes it. */
struct http_infer_input {
    const char *name;
    size_t name_len;
    enum datatype datatype;
    int64_t dims[HTTP_INFER_INPUT_RANK];
    uint32_t rank;
};

/* http_infer_input_json - add an input whose data are JSON: an array, nested in any way, or an
 * element alone.
 * elements   how many there are to be
 * max_bytes  of the tensor; what it took is taken off
 * errors     in the reference's words */
struct err *http_infer_input_json(struct request *r, const struct http_infer_input *d,
                                  yyjson_val *data, uint64_t elements, size_t *max_bytes);
