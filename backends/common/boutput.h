#pragma once

#include "brun.h"

/* What the requests of a batch want of a model's outputs, and how they get it. */

struct boutput {
    const char *name; /* the first four are the caller's; the rest is boutput_select's */
    TRITONSERVER_DataType datatype;
    bool served;     /* the configuration lists it */
    bool is_state;   /* the server keeps it for the sequence; it may be served besides */
    bool *wanted_by; /* for each item, in the run's scratch */
    bool wanted;     /* by any item */
};

/* The result of an output: for the whole batch, or one request's share. */
struct boutput_tensor {
    size_t rank;
    int64_t shape[BRUN_MAX_DIMS];
    const void *data;
};

/* boutput_select - find out which outputs the items want. An item that asks for something
 * unknown gets an error.
 * errors   for the whole run: no memory */
TRITONSERVER_Error *boutput_select(struct brun *run, struct boutput *outputs, size_t count);

/* boutput_buffer - make an output in a response.
 * ret_buffer  `size` bytes, owned by the response; NULL only for none
 * errors      of the request */
TRITONSERVER_Error *boutput_buffer(const struct brun_item *item, const struct boutput *output,
                                   const int64_t *shape, size_t rank, uint64_t size,
                                   void **ret_buffer);

/* boutput_scatter - give each item that wants it its rows of one output, and the server those of
 * a state. Rows beyond the batch's are nobody's.
 * rows     how many the model was given
 * result   of the whole batch
 * errors   for the whole run: the result has another number of rows */
TRITONSERVER_Error *boutput_scatter(struct brun *run, const struct boutput *output, int64_t rows,
                                    const struct boutput_tensor *result);
