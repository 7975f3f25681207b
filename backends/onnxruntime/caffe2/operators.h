#pragma once

#include "step.h"

/* operators_translate - write the ONNX nodes of an operator.
 * step     with its row (operators_find)
 * errors   UNSUPPORTED, with the operator's name, if its row does not allow one of its arguments
 *          or its number of inputs, or if the row's function refuses it */
TRITONSERVER_Error *operators_translate(struct step *step);

/* operators_find - the row of an operator type; NULL if the type is not supported. */
const struct step_row *operators_find(const char *type);
