#pragma once
/* Tensors of requests and responses: a description, and bytes that lie in one or more pieces. */
#include "base/buf.h"
#include "model/datatype.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct request;

/* A run of bytes of a tensor; whoever owns the bytes keeps them until the request is released. */
struct tensor_piece {
    const void *data;
    uint64_t size;
    enum buf_memory memory;
    int64_t device;
};

/* Pieces that instances of one host policy read instead of the plain ones. */
struct tensor_policy {
    struct tensor_policy *next;
    const char *name;
    const struct tensor_piece *pieces;
    uint32_t piece_count;
    uint64_t byte_size; /* sum of the pieces */
};

/* An input of a request. All of it lies in the request's arena, but for the bytes. */
struct tensor_input {
    struct request *request; /* that it belongs to */
    const char *name;
    enum datatype datatype;
    const int64_t *shape; /* as the request gave it, batch dimension included */
    uint32_t rank;
    /* as the backend sees it: reshape applied; set by request_prepare */
    const int64_t *model_shape;
    uint32_t model_rank;
    uint64_t byte_size;                /* sum of the pieces */
    uint64_t elements;                 /* product of shape; set by request_prepare */
    const struct tensor_piece *pieces; /* in order; one piece nearly always */
    uint32_t piece_count;
    const struct tensor_policy *policies; /* NULL nearly always */
    /* the configuration lets batches mix shapes of this input; set by request_prepare */
    bool ragged_ok;
};

/* An output of a response. Lies in the response's arena. */
struct tensor_output {
    struct tensor_output *next;
    const char *name;
    enum datatype datatype;
    const int64_t *shape;
    uint32_t rank;
    void *data; /* NULL until the backend asked for the buffer; aligned to 64 */
    uint64_t byte_size;
    enum buf_memory memory;
    int64_t device;
    struct buf *buf; /* what data lies in, owned; NULL when it lies in the response's arena */
};
