#pragma once

#include <stdbool.h>

#include "bcuda.h"
#include "scratch.h"
#include "triton/core/tritonbackend.h"

/* One execution, with any runtime: requests become a batch, the backend computes it, and every
 * request is answered, counted and released. binput.h reads inputs, boutput.h writes outputs. */

enum { BRUN_MAX_DIMS = 32 };

struct brun_place;

/* Whether two requests may be executed in one batch. Each that may be with another one may be with
 * all that may be with that one.
 * of  the argument of brun_requests */
typedef bool brun_agree_fn(struct brun_place *place, TRITONBACKEND_Request *first,
                           TRITONBACKEND_Request *other, void *of);

/* What an execution needs from the instance. */
struct brun_place {
    TRITONBACKEND_ModelInstance *handle;
    const char *model; /* its name, for errors */
    int64_t max_batch_size;
    const char *rows_of;    /* borrowed; the input whose first dimension counts; NULL = any */
    struct bcuda *cuda;     /* borrowed; where the runtime has its tensors; NULL = on the host */
    brun_agree_fn *agree;   /* NULL = all do */
    struct scratch scratch; /* owned by the instance: scratch_fini */
};

struct brun_item {
    TRITONBACKEND_Request *request;
    TRITONBACKEND_Response *response;
    TRITONSERVER_Error *err; /* set = this request gets this error instead of results */
    bool in_batch;           /* its rows are in the tensors, even if it fails later */
    int64_t rows;            /* its batch size; 1 for a model that does not batch */
};

struct brun {
    struct brun_place *place;
    struct brun_item *items;
    uint32_t count;
    int64_t rows;        /* of all items in the batch, together */
    uint32_t batch_size; /* items in the batch */
    uint64_t compute_start_ns, compute_end_ns;
};

/* Computes a batch: collects inputs, runs the model, writes outputs.
 * run      its items have responses and rows
 * of       the argument of brun_requests
 * returns  an error for all items that have no own error */
typedef TRITONSERVER_Error *brun_work_fn(struct brun *run, void *of);

/* brun_requests - answer requests: all that agree in one batch if the model batches, otherwise one
 * by one.
 * What was queued on the place's GPU has ended before anything is answered.
 * requests  their order changes; owned by the callee: each is answered with results or its own
 *           error, and released
 * thread    only one call at a time for a place */
void brun_requests(struct brun_place *place, TRITONBACKEND_Request **requests, uint32_t count,
                   brun_work_fn *work, void *of);

/* brun_fail - give an item an error; the first error stays.
 * err  owned by the item; NULL does nothing */
void brun_fail(struct brun_item *item, TRITONSERVER_Error *err);

/* brun_fail_all - give each item that has none an error with this message.
 * err  freed; NULL does nothing */
void brun_fail_all(struct brun *run, TRITONSERVER_Error *err);

/* brun_any_good - true if an item without an error is left. */
bool brun_any_good(const struct brun *run);

/* brun_bytes - the size of a tensor with elements of a fixed size; 0 for strings.
 * returns  false if the shape has an open dimension, or its dimensions other than 0 are more bytes
 *          (strings: elements) than a signed number of 64 bits holds: runtimes multiply them so,
 *          and some end the process then */
bool brun_bytes(TRITONSERVER_DataType datatype, const int64_t *shape, size_t rank,
                uint64_t *ret_bytes);

/* Of a format in which elements of a dimension lie together in groups of `count`; the last one is
 * as large as the others. 0 or 1 = each by itself. */
struct brun_vector {
    size_t dim;
    int64_t count;
};

/* brun_vector_bytes - as brun_bytes, in such a format. */
bool brun_vector_bytes(TRITONSERVER_DataType datatype, const int64_t *shape, size_t rank,
                       struct brun_vector vector, uint64_t *ret_bytes);

/* brun_now_ns - the clock of compute_start_ns and compute_end_ns. */
uint64_t brun_now_ns(void);
