#pragma once

#include "core.h"

/* Tensors in the memory of a GPU. `what` is the name of one, for errors, which are exceptions. */

/* gpu_settle - wait until nothing is on its way there by a stream of this process. */
bool gpu_settle(int32_t device, PyObject *what);

/* gpu_fetch - the same, and copy bytes to memory of the host. */
bool gpu_fetch(int32_t device, PyObject *what, void *to, const void *from, uint64_t bytes);

/* gpu_lent - what keeps memory that the server lends, until it ends.
 * gpu_reach - where that is; opened when this is called first. NULL: an exception is set. */
PyObject *gpu_lent(const struct wire_tensor *tensor);
char *gpu_reach(PyObject *lent, PyObject *what);
