#pragma once

#include "run.h"

/* input_collect - check the inputs of all items against the model and against each other. Items
 * that do not fit get an error; the others form the batch.
 * errors   for the whole run: no memory */
TRITONSERVER_Error *input_collect(struct run *run);

/* input_bind - make the tensors of the batch: over the request's own memory if there is one
 * request whose contents lie in one piece, aligned to SCRATCH_ALIGN; otherwise over a copy.
 * Items with malformed contents get an error.
 * errors   for the whole run */
TRITONSERVER_Error *input_bind(struct run *run);

/* The part of one request in an input. */
struct input_view {
    const int64_t *shape; /* with the batch dimension */
    uint32_t rank;
    uint64_t elements;
};

/* input_look - after input_collect: the part of an item in an input.
 * errors   INVALID_ARG if the batch has no such input */
TRITONSERVER_Error *input_look(const struct run *run, const struct model_tensor *tensor,
                               uint32_t item, struct input_view *ret_view);

/* input_release - free what input_bind made. */
void input_release(struct run *run);
