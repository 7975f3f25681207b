#pragma once

#include "session.h"

/* signature_read - read names, types and shapes of a session's inputs and outputs into the model.
 * errors   UNSUPPORTED for an input or output that is not a tensor, has too many dimensions, or
 *          has a type that cannot be transferred */
TRITONSERVER_Error *signature_read(struct model *model, const struct session *session);

/* signature_datatype - the data type for a type of ONNX Runtime.
 * returns  TRITONSERVER_TYPE_INVALID if there is none */
TRITONSERVER_DataType signature_datatype(ONNXTensorElementDataType type);
