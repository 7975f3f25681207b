#pragma once

#include "step.h"

/* operators_translate - write the nodes of an operator.
 * step     its row is found here
 * errors   UNSUPPORTED, naming the operator, for one that is not in the table or has an argument or
 *          a number of inputs that its row does not know */
TRITONSERVER_Error *operators_translate(struct step *step);

/* operators_find - the row of a type of operators; NULL where there is none. */
const struct step_row *operators_find(const char *type);
