#pragma once

#include "model.h"

/* complete_fill_in - complete a model's configuration, and report it to the server.
 *
 * Does nothing if both inputs and outputs are given. Otherwise: if max_batch_size is 0 and the
 * first dimension of all tensors is variable, it becomes default-max-batch-size. If the batch
 * size is above 1 and no batcher is chosen, dynamic batching is switched on. A missing list of
 * inputs or outputs is taken from the model.
 * ret_changed  true if something was reported
 * errors       INVALID_ARG if max_batch_size is given and the model cannot batch
 * source       spec/model_configuration.txt, Auto-Generated Model Configuration */
TRITONSERVER_Error *complete_fill_in(struct model *model, bool *ret_changed);
