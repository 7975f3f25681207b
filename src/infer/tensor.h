#pragma once
/* Tensors of requests and responses: a description, and bytes that lie in one or more pieces. */
#include "base/buf.h"
#include "model/datatype.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct request;
struct request_place;

/* A run of bytes of a tensor. The owner of the bytes keeps them until the request is released. */
struct tensor_piece {
    const void *data;
    uint64_t size;
    enum buf_memory memory;
    int64_t device;
};

/* Pieces that instances with this host policy read instead of the plain ones. */
struct tensor_policy {
    struct tensor_policy *next;
    const char *name;
    const struct tensor_piece *pieces;
    uint32_t piece_count;
    uint64_t byte_size; /* sum of the pieces */
};

/* An input of a request. The struct and its arrays lie in the request's arena; the bytes do not. */
struct tensor_input {
    struct request *request; /* the request that it belongs to */
    const char *name;
    enum datatype datatype;
    const int64_t *shape; /* as the request gave it, batch dimension included */
    uint32_t rank;
    /* as the backend sees it, after the reshape; set by request_prepare */
    const int64_t *model_shape;
    uint32_t model_rank;
    uint64_t byte_size;                /* sum of the pieces */
    uint64_t elements;                 /* product of shape; set by request_prepare */
    const struct tensor_piece *pieces; /* in order; usually one */
    uint32_t piece_count;
    struct tensor_policy *policies; /* usually NULL */
    /* a batch may mix shapes of this input; set by request_prepare */
    bool ragged_ok;
    /* the bytes can change at any time: request_prepare copies those that it checks */
    bool shared;
};

/* An output of a response. Lies in the response's arena. */
struct tensor_output {
    struct tensor_output *next;
    const char *name;
    enum datatype datatype;
    const int64_t *shape;
    uint32_t rank;
    void *data; /* NULL until the backend asked for the buffer; 64-byte aligned */
    uint64_t byte_size;
    enum buf_memory memory;
    int64_t device;
    /* the memory of `data`, owned; NULL if data lies in the response's arena, or in memory of the
     * client's */
    struct buf *buf;
    /* where the client wants it: the answer describes it without the bytes; NULL = it is sent */
    const struct request_place *placed;
};
