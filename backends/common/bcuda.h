#pragma once
/* A GPU for one instance: its context, a stream, and memory from the server. CUDA's driver is
 * opened when the first instance on a GPU is made. One thread at a time for a bcuda. */
#include "triton/core/tritonbackend.h"

#include <stdint.h>

struct bcuda;

/* What the GPU does first where several streams have work for it. */
enum bcuda_priority { BCUDA_USUAL, BCUDA_FIRST, BCUDA_LAST };

/* bcuda_open - for an instance of KIND_GPU.
 * bcuda_open_on - for a model, on a GPU of its choice, with a stream of this priority.
 * errors  UNAVAILABLE without a driver; INTERNAL with CUDA's name for what failed */
TRITONSERVER_Error *bcuda_open(TRITONBACKEND_ModelInstance *instance, struct bcuda **ret);
TRITONSERVER_Error *bcuda_open_on(TRITONBACKEND_Model *model, int32_t device,
                                  enum bcuda_priority priority, struct bcuda **ret);

/* bcuda_close - nothing is queued any more; NULL is allowed. The stream is kept for the next that
 *               opens this GPU: runtimes keep memory for each stream that they ever saw.
 * bcuda_end - free what was kept; none is open. The backend ends. */
void bcuda_close(struct bcuda *c);
void bcuda_end(void);

int32_t bcuda_device(const struct bcuda *c);

/* bcuda_capability - the GPU's compute capability. */
TRITONSERVER_Error *bcuda_capability(const struct bcuda *c, int *ret_major, int *ret_minor);

/* bcuda_enter - make the GPU's context the thread's own until bcuda_leave, for a runtime that works
 *               in the context that it finds. The functions here need none of it. */
TRITONSERVER_Error *bcuda_enter(struct bcuda *c);
void bcuda_leave(void);

/* bcuda_alloc - memory of this GPU beside the server's pool, for as long as an instance lives.
 * bcuda_free - nothing that is queued uses it; NULL is allowed. */
TRITONSERVER_Error *bcuda_alloc(struct bcuda *c, uint64_t size, void **ret);
void bcuda_free(struct bcuda *c, void *memory);

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

/* bcuda_record - what is queued from now on is not done: it is recorded, until bcuda_recorded. Till
 *                then the thread does nothing but queue; it has entered the context.
 * bcuda_recorded - after each bcuda_record, whatever came of it.
 * bcuda_replay - queue what was recorded, with the addresses that it had.
 * bcuda_forget - nothing that is queued is of it; NULL is allowed. */
struct cuda_graph_exec;
TRITONSERVER_Error *bcuda_record(struct bcuda *c);
TRITONSERVER_Error *bcuda_recorded(struct bcuda *c, struct cuda_graph_exec **ret);
TRITONSERVER_Error *bcuda_replay(struct bcuda *c, struct cuda_graph_exec *graph);
void bcuda_forget(struct bcuda *c, struct cuda_graph_exec *graph);

/* bcuda_put - bcuda_copy; without a GPU (NULL), copy on the host. 0 bytes need no memory. */
TRITONSERVER_Error *bcuda_put(struct bcuda *c, void *to, const void *from, uint64_t size);

/* bcuda_pass - queue a copy from the host to the host by way of this GPU. All have one piece of
 *              its memory, one after the other; nothing else may be staged. */
TRITONSERVER_Error *bcuda_pass(struct bcuda *c, void *to, const void *from, uint64_t size);

/* bcuda_wait - wait for everything that was queued; what was staged is given back. Where it fails,
 *              nothing that was queued was done for certain.
 * bcuda_sleep - until it is closed, waits sleep; else the driver may look again and again.
 * bcuda_settle - for the last time before answers are sent: errors also if an earlier wait failed
 *                since the last bcuda_settle. */
TRITONSERVER_Error *bcuda_wait(struct bcuda *c);
TRITONSERVER_Error *bcuda_sleep(struct bcuda *c);
TRITONSERVER_Error *bcuda_settle(struct bcuda *c);
