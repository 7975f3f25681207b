#pragma once

#include "brun.h"

/* The outputs of a model: which requests want them, and how they get them. */

struct boutput {
    const char *name; /* the caller sets the first five fields, boutput_select the others */
    TRITONSERVER_DataType datatype;
    bool served;               /* the configuration lists it */
    bool is_state;             /* the server keeps it for the sequence; it may also be served */
    struct brun_vector vector; /* as of a binput */
    bool *wanted_by;           /* per item, in the run's scratch */
    bool wanted;               /* by any item */
};

/* The result of an output: for the whole batch, or the part of one request. */
struct boutput_tensor {
    size_t rank;
    int64_t shape[BRUN_MAX_DIMS];
    const void *data;
    bool on_gpu; /* of the place; until the run has ended */
};

/* boutput_select - find out which outputs the items want. An item that wants an unknown output
 * gets an error.
 * errors   for the whole run: no memory */
TRITONSERVER_Error *boutput_select(struct brun *run, struct boutput *outputs, size_t count);

/* boutput_buffer - make an output in a response.
 * cuda        the buffer may be on this GPU or on the host: bcuda_put; NULL = it is on the host
 * ret_buffer  `size` bytes, owned by the response; NULL only if size is 0
 * errors      of the request */
TRITONSERVER_Error *boutput_buffer(const struct brun_item *item, const struct boutput *output,
                                   const int64_t *shape, size_t rank, uint64_t size,
                                   const struct bcuda *cuda, void **ret_buffer);

/* boutput_state - make the state of an item's sequence that an output is for. After writing it,
 * call TRITONBACKEND_StateUpdate.
 * ret_buffer  `size` bytes, owned by the server
 * errors      of the request */
TRITONSERVER_Error *boutput_state(const struct brun_item *item, const struct boutput *output,
                                  const int64_t *shape, size_t rank, uint64_t size,
                                  TRITONBACKEND_State **ret_state, void **ret_buffer);

/* boutput_scatter - give each item that wants an output its rows, and give the server the rows
 * of a state. Rows after the batch are dropped.
 * rows     the number of rows that the model was given
 * result   of the whole batch
 * errors   for the whole run: the result has another number of rows */
TRITONSERVER_Error *boutput_scatter(struct brun *run, const struct boutput *output, int64_t rows,
                                    const struct boutput_tensor *result);
