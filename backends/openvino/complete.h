#pragma once

#include "model.h"

/* complete_fill_in - fill in what the configuration leaves out, and report it to the server.
 * Nothing when inputs and outputs are both given. Otherwise max_batch_size and dynamic batching,
 * where the file's layout says that the model can batch, and the missing list of inputs or
 * outputs.
 * errors  UNSUPPORTED for a tensor of a type that cannot be transferred */
TRITONSERVER_Error *complete_fill_in(struct model *model);
