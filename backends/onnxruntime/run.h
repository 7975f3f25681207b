#pragma once

#include "instance.h"

/* One execution: requests become one batch, ONNX Runtime runs it, and its outputs become
 * responses. */

struct input_part;
struct output;

struct run_item {
    TRITONBACKEND_Request *request;
    TRITONBACKEND_Response *response;
    TRITONSERVER_Error *err; /* set = this request gets this error instead of results */
    bool in_batch;           /* its rows are in the tensors, even if it fails later */
    int64_t rows;            /* its batch size; 1 for a model that does not batch */
};

struct run {
    struct instance *instance;
    const struct model *model;
    struct run_item *items;
    uint32_t count;
    int64_t rows;        /* of all items in the batch, together */
    uint32_t batch_size; /* items in the batch */

    size_t input_count;
    const struct model_tensor **input_tensors;
    const char **input_names;
    OrtValue **input_values;
    struct input_part *parts; /* input_count rows of count parts */

    size_t output_count;
    struct output *outputs;
    const char **output_names;
    OrtValue **output_values;
};

/* run_requests - answer requests: all in one batch if the model batches, otherwise one by one.
 * requests  owned by the callee: each is answered with results or its own error, and released
 * thread    one call at a time for an instance */
void run_requests(struct instance *instance, TRITONBACKEND_Request **requests, uint32_t count);

/* run_fail - give an item an error; the first error stays.
 * err  taken over; NULL does nothing */
void run_fail(struct run_item *item, TRITONSERVER_Error *err);

/* run_fail_all - give every item without an error a copy of an error.
 * err  taken over; NULL does nothing */
void run_fail_all(struct run *run, TRITONSERVER_Error *err);
