#pragma once

#include "model.h"

/* complete_fill_in - fill in what a model's configuration leaves out, and report it to the server.
 *
 * Nothing when inputs and outputs are both given. Otherwise max_batch_size, where it is 0 and the
 * first dimension of all tensors is variable, becomes default-max-batch-size; dynamic batching is
 * switched on when the batch size is above 1 and no batcher is chosen; a missing list of inputs or
 * outputs is taken from the model.
 * ret_changed  whether something was reported
 * errors       INVALID_ARG when max_batch_size is given and the model cannot batch
 * source       spec/model_configuration.txt, Auto-Generated Model Configuration */
TRITONSERVER_Error *complete_fill_in(struct model *model, bool *ret_changed);
