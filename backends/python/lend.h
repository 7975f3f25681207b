#pragma once

#include <stdbool.h>

#include "triton/core/tritonbackend.h"
#include "wire.h"

/* Inputs in the memory of a GPU for a stub: copies in memory of the server's, which the stub opens
 * by a handle, until it tells that it does not need them. For instances on a GPU, of models that
 * want that. Under stub->reading. */

struct lend;

/* lend_open - for an instance of KIND_GPU. */
TRITONSERVER_Error *lend_open(TRITONBACKEND_ModelInstance *instance, struct lend **ret_lend);
void lend_close(struct lend *lend); /* NULL is allowed; the stub has ended */

/* lend_input - lend an input, if it lies on a GPU.
 * tensor    its place is set, unless it lies on the host
 * errors    of the driver; no memory */
TRITONSERVER_Error *lend_input(struct lend *lend, TRITONBACKEND_Input *input, uint32_t buffers,
                               struct wire_tensor *tensor);

/* lend_end - the stub needs it no more; all of them, where it has ended. */
void lend_end(struct lend *lend, uint64_t place);
void lend_end_all(struct lend *lend);
