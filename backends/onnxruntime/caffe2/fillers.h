#pragma once

#include "step.h"

/* Operators that make tensors from their arguments: weights and constants. */

step_fn fillers_given, fillers_bytes, fillers_constant;

/* fillers_type - the data type that an argument names, by Caffe2's number or by its name.
 * errors   the argument is missing, or ONNX does not have the type */
TRITONSERVER_Error *fillers_type(const struct step *step, const char *name,
                                 enum graph_type *ret_type);
