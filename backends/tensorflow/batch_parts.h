#pragma once

#include "../common/boutput.h"
#include "model.h"

/* Differences between the requests of a batch that a configuration allows: inputs of several
 * shapes in a row, inputs computed from these shapes, and outputs divided by them
 * (allow_ragged_batch, batch_input, batch_output). */

/* batch_parts_read - find them among the model's tensors, and put computed inputs after those of
 * requests.
 * errors  INVALID_ARG naming the tensor */
TRITONSERVER_Error *batch_parts_read(struct model *model);

/* batch_parts_computed - the number of computed inputs in the configuration. */
size_t batch_parts_computed(const struct model *model);

/* batch_parts_names - true if batch_input computes an input with this name. */
bool batch_parts_names(const struct model *model, const char *name);

/* batch_parts_divide - give each item that wants an output its part, by the shape of its input.
 * tensor   is_divided
 * by       that input
 * result   of the whole batch
 * errors   for the whole run: the parts do not add up to the result */
TRITONSERVER_Error *batch_parts_divide(struct brun *run, const struct model_tensor *tensor,
                                       const struct boutput *output, const struct binput *by,
                                       const struct boutput_tensor *result);
