#pragma once

#include "model.h"

/* complete_fill_in - complete the configuration, and report it to the server. Does nothing if
 * both inputs and outputs are given. Otherwise sets max_batch_size and dynamic batching, if the
 * file's layout says that the model can batch, and the missing list of inputs or outputs.
 * errors  UNSUPPORTED for a tensor of a type that cannot be transferred */
TRITONSERVER_Error *complete_fill_in(struct model *model);
