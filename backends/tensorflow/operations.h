#pragma once

#include "model.h"

/* Libraries of operations that models bring. What they give to TensorFlow stays there as long as
 * the process lives, and an operation that it is given twice can no longer be run. */

/* operations_load - give TensorFlow the operations of a model's libraries, unless a library of the
 * same content has given them before. The server has checked that they lie in the model's
 * directory.
 * errors  INVALID_ARG naming the model and a library that has an operation of another one */
TRITONSERVER_Error *operations_load(const struct model *model);
