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

/* input_find - after input_collect: the input that is given to a tensor of the model.
 * errors   INVALID_ARG if the batch has no such input */
TRITONSERVER_Error *input_find(const struct run *run, const struct model_tensor *tensor,
                               const struct binput **ret_input);

/* input_release - free what input_bind made. */
void input_release(struct run *run);
