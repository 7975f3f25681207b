#pragma once

#include "run.h"

/* Inputs that are computed from the shapes of a whole batch, and outputs that are divided among
 * the requests by the shape of an input: batch_input and batch_output in the configuration. */

/* batch_io_read - read them from the configuration, check them against the model, and mark
 * ragged inputs.
 * errors   INVALID_ARG, naming the tensor */
TRITONSERVER_Error *batch_io_read(struct model *model);

/* batch_io_free - free what batch_io_read made. */
void batch_io_free(struct model *model);

/* batch_io_bind - make the computed inputs of a batch; they follow the other inputs, which are
 * bound already.
 * errors   for the whole run */
TRITONSERVER_Error *batch_io_bind(struct run *run);

/* batch_io_shape - the shape of one item's part of a divided output.
 * output     divided_by is set
 * item       one in the batch
 * ret_shape  room for BRUN_MAX_DIMS
 * ret_count  elements
 * errors     INVALID_ARG if the item's input has too few dimensions */
TRITONSERVER_Error *batch_io_shape(const struct run *run, const struct model_tensor *output,
                                   uint32_t item, int64_t *ret_shape, size_t *ret_rank,
                                   size_t *ret_count);
