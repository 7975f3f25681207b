#pragma once

#include "brun.h"

/* What the requests of a batch give for the inputs of a model that needs all of them. */

struct binput_part;

struct binput {
    const char *name; /* the first three are the caller's; the rest is binput_collect's */
    TRITONSERVER_DataType datatype;
    bool ragged; /* its shapes may differ in a batch, which has all elements in a row */
    struct binput_part *parts; /* one for each item, in the run's scratch */
};

/* binput_collect - check the inputs of all items against the model and against each other. Items
 * that do not fit get an error; the others form the batch.
 * inputs   in the model's order
 * errors   for the whole run: no memory */
TRITONSERVER_Error *binput_collect(struct brun *run, struct binput *inputs, size_t count);

/* What one item gives for an input. */
struct binput_share {
    const int64_t *shape;
    size_t rank;
    int64_t elements;
};

/* binput_share - look at the shape of what an item gives.
 * returns  false for an item that is not in the batch */
bool binput_share(const struct brun *run, const struct binput *input, uint32_t index,
                  struct binput_share *ret_share);

/* binput_shape - the shape of an input of the whole batch; some item is in the batch.
 * ret_shape  room for BRUN_MAX_DIMS
 * returns    the number of dimensions */
size_t binput_shape(const struct brun *run, const struct binput *input, int64_t *ret_shape);

/* binput_bytes - the contents that one item gives for an input, in one piece: the request's own
 * memory where they lie so, a copy otherwise. For what has no fixed size.
 * index     of an item in the batch
 * ret_data  valid until the run ends
 * errors    of the item */
TRITONSERVER_Error *binput_bytes(struct brun *run, const struct binput *input, uint32_t index,
                                 const void **ret_data, uint64_t *ret_size);

/* binput_data - the contents of an input of the whole batch in one piece: the request's own
 * memory when there is one request whose contents lie so, a copy otherwise. Items whose contents
 * are malformed get an error.
 * align     what the address has to be a multiple of; at most SCRATCH_ALIGN
 * rows      how many rows the model wants; those beyond the batch's are zeros
 * ret_data  valid until the run ends; never NULL
 * errors    for the whole run */
TRITONSERVER_Error *binput_data(struct brun *run, const struct binput *input, size_t align,
                                int64_t rows, const void **ret_data);

/* binput_copy - the contents of an input of the whole batch, one item's after the other. Items
 * whose contents are malformed get an error, and zeros.
 * to    `size` bytes, no fewer than the batch has; those beyond it become zeros */
void binput_copy(struct brun *run, const struct binput *input, void *to, uint64_t size);
