#pragma once

#include "core.h"

/* Memory of GPUs. CUDA's driver is opened when this is asked for first; no context is kept: that of
 * a tensor is there as long as the tensor. */

/* device_settle - wait until nothing is on its way on a GPU, by whatever stream of this process.
 * what     of which tensor, for errors
 * errors   false with an exception */
bool device_settle(int32_t device, PyObject *what);

/* device_fetch - the same, and copy bytes of it to memory of the host. */
bool device_fetch(int32_t device, PyObject *what, void *to, const void *from, uint64_t bytes);
