#pragma once

#include "model.h"

/* complete_fill_in - report a configuration completed from a SavedModel's signature: the
 * batching, inputs that are not listed, all outputs if none is listed, and missing types and
 * shapes.
 * errors  INTERNAL or INVALID_ARG if the configuration contradicts the signature, or the
 *         signature does not say enough */
TRITONSERVER_Error *complete_fill_in(const struct model *model);
