#pragma once
/* A GPU for one instance: its context, a stream, and memory from the server. CUDA's driver is
 * opened when the first instance on a GPU is made. One thread at a time for a bcuda. */
#include "triton/core/tritonbackend.h"

#include <stdint.h>

struct bcuda;

/* bcuda_open - for an instance of KIND_GPU.
 * errors  UNAVAILABLE without a driver; INTERNAL with CUDA's name for what failed */
TRITONSERVER_Error *bcuda_open(TRITONBACKEND_ModelInstance *instance, struct bcuda **ret);

/* bcuda_close - nothing is queued any more; NULL is allowed. The stream is kept for the next that
 *               opens this GPU: runtimes keep memory for each stream that they ever saw.
 * bcuda_end - free what was kept; none is open. The backend ends. */
void bcuda_close(struct bcuda *c);
void bcuda_end(void);

int32_t bcuda_device(const struct bcuda *c);

/* bcuda_stream - the stream of the copies, for a runtime that shall work on it; a CUstream. It is
 *                another one after a bcuda_wait that failed. */
TRITONSERVER_Error *bcuda_stream(struct bcuda *c, void **ret);

/* bcuda_copy - queue a copy between memory of the host and of GPUs, in any direction; bcuda_wait
 *              ends it. Both sides stay valid until then.
 * bcuda_clear - queue zeros for memory of a GPU.
 * bcuda_stage - memory of this GPU until bcuda_wait. */
TRITONSERVER_Error *bcuda_copy(struct bcuda *c, void *to, const void *from, uint64_t size);
TRITONSERVER_Error *bcuda_clear(struct bcuda *c, void *to, uint64_t size);
TRITONSERVER_Error *bcuda_stage(struct bcuda *c, uint64_t size, void **ret);

/* bcuda_wait - wait for everything that was queued; what was staged is given back. */
TRITONSERVER_Error *bcuda_wait(struct bcuda *c);
