#pragma once

#include "model.h"

/* layout_has_batch - true if the model's file says that the first dimension of every input and
 * output is the batch. IR files may have a layout such as "[N,C,H,W]"; files of other formats
 * have none.
 * errors   INTERNAL if the file cannot be read */
TRITONSERVER_Error *layout_has_batch(const struct model *model, bool *ret_has);

/* layout_has_state - true if the model may have variables: an IR file, under any name, that reads
 * one, or a GGUF file. The runtime makes no variables of other formats.
 * errors   INTERNAL if the file cannot be read */
TRITONSERVER_Error *layout_has_state(const struct model *model, bool *ret_has);
