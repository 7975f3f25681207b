#pragma once

#include "model.h"

/* signature_read - read names, types and shapes of the inputs and outputs of model->graph,
 * replacing earlier ones.
 * errors   UNSUPPORTED for a tensor whose number of dimensions is open or too large */
TRITONSERVER_Error *signature_read(struct model *model);

/* signature_free - free what signature_read made. */
void signature_free(struct model *model);
