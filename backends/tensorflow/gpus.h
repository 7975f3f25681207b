#pragma once

#include "../common/wire.h"
#include "runtime.h"

/* Which GPUs TensorFlow has. A number of a GPU is the one that it has in CUDA. */

/* gpus_built_in - true if TensorFlow was built to compute on GPUs. Looks for none. */
bool gpus_built_in(void);

/* gpus_check - whether TensorFlow sees a GPU. Looks for GPUs when it is called first, and takes
 * memory on each of them.
 * settings  a ConfigProto: that of the first session holds for all
 * errors    UNSUPPORTED naming the model: there is no such GPU, and what to do
 * thread    any */
TRITONSERVER_Error *gpus_check(const char *model, int32_t gpu, const struct wire_out *settings);
