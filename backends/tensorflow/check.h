#pragma once

#include "model.h"

/* check_config - compare the configuration with the model's inputs and outputs; marks the
 * outputs that are served and those that are states.
 * errors  naming the model and the tensor; UNSUPPORTED for what this backend does not support */
TRITONSERVER_Error *check_config(struct model *model);
