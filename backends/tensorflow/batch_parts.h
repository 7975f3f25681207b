#pragma once

#include "../common/boutput.h"
#include "model.h"

/* What a configuration lets differ among the requests of a batch: inputs of several shapes in a
 * row, inputs computed of these shapes, and outputs divided by them (allow_ragged_batch,
 * batch_input, batch_output). */

/* batch_parts_read - find them among the model's tensors, and put the inputs that are computed
 * behind those that requests give.
 * errors  INVALID_ARG naming the tensor */
TRITONSERVER_Error *batch_parts_read(struct model *model);

/* batch_parts_computed - how many inputs the configuration lets the backend compute. */
size_t batch_parts_computed(const struct model *model);

/* batch_parts_names - whether batch_input computes an input of this name. */
bool batch_parts_names(const struct model *model, const char *name);

/* batch_parts_divide - give each item that wants it its share of an output, by the shape of its
 * input.
 * tensor   is_divided
 * by       that input
 * result   of the whole batch
 * errors   for the whole run: the shares are not what there is */
TRITONSERVER_Error *batch_parts_divide(struct brun *run, const struct model_tensor *tensor,
                                       const struct boutput *output, const struct binput *by,
                                       const struct boutput_tensor *result);
