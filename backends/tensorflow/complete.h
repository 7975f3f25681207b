#pragma once

#include "model.h"

/* complete_fill_in - report a configuration with what a SavedModel's signature says: the
 * batching, inputs that are not listed, all outputs where none is listed, types and shapes that
 * are left out.
 * errors  INTERNAL or INVALID_ARG, when the configuration says otherwise or the signature does
 *         not say enough */
TRITONSERVER_Error *complete_fill_in(const struct model *model);
