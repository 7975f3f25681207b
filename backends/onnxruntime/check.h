#pragma once

#include "model.h"

/* check_model - compare a complete configuration with the model, and note in the model's outputs
 * which of them are served.
 * errors   INVALID_ARG or UNSUPPORTED, naming the model, the tensor, what was expected and found
 * source   MC-17, MC-21, MC-47 to MC-61 */
TRITONSERVER_Error *check_model(struct model *model);
