#pragma once

#include "model.h"

/* layout_has_batch - whether a model's file says that the first dimension of every input and
 * output is the batch: IR files may carry a layout, as in "[N,C,H,W]"; files of other formats
 * carry none.
 * errors   INTERNAL when the file cannot be read */
TRITONSERVER_Error *layout_has_batch(const struct model *model, bool *ret_has);
