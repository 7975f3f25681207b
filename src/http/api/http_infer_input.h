#pragma once
/* One input of an inference request in JSON: its description, and its data in the JSON or after
 * it. Worker's thread only. */
#include "base/err.h"

#include <stddef.h>
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
