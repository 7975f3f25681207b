#pragma once

#include <stdatomic.h>

#include "triton/core/tritonbackend.h"

/* A model of the identity backend; read-only once it is initialized. */

enum { MODEL_MAX_DIMS = 64 };

/* An output, and the input that is copied to it. */
struct model_pair {
    char *input;
    char *output;
    TRITONSERVER_DataType datatype;
    bool optional; /* if the input is missing, the output is zeros with `dims` */
    uint32_t dims_count;
    int64_t dims[MODEL_MAX_DIMS]; /* without batch dimension; -1 became 1 */
};

struct model {
    bool batches; /* max_batch_size > 0 */
    uint32_t pair_count;
    struct model_pair *pairs;
    uint64_t delay_ns;               /* 0 = none */
    uint64_t delay_multiplier;       /* 0 = the same delay for all instances */
    atomic_uint_fast32_t next_index; /* the next instance number; orders nothing */
};

/* An instance on a GPU takes every byte through the memory of that GPU. */
struct instance {
    TRITONBACKEND_ModelInstance *handle;
    const struct model *model;
    uint64_t delay_ns;  /* 0 = none */
    struct bcuda *cuda; /* NULL = on the CPU */
};
