#ifndef NEREID_BACKEND_H
#define NEREID_BACKEND_H

/* Symbols that a backend may export for Nereid in addition to the common backend interface.
 * Every symbol is optional and is found with dlsym; other servers ignore it. */

#include <stdbool.h>

#include "triton/core/tritonbackend.h"

#ifdef __cplusplus
extern "C" {
#endif

/* nereid_backend_inline_v1 - allow Execute on a network thread.
 *
 * A backend that defines this with a value other than 0 promises that
 * TRITONBACKEND_ModelInstanceExecute
 * - normally returns within about 50 us,
 * - does not block: no sleep, no wait for another thread, no input or output,
 * - has sent every response and released every request when it returns,
 * - works on whichever thread calls it, as the common interface requires anyway.
 *
 * The server may then run a request on the thread that received it, if the instance is idle, its
 * queue is empty and no batching delay applies. Calls for one instance stay serial. A model
 * whose inline runs are too slow, or block, again and again is demoted: from then on its
 * requests use an instance thread. So a backend whose speed depends on the model may promise for
 * all its models.
 */
extern TRITONBACKEND_ISPEC const uint32_t nereid_backend_inline_v1;

/* nereid_instance_inline_v1 - whether the promise holds for one instance.
 *
 * For a backend that knows which of its models or instances may block, for example because they
 * are configured to wait, or have a large model. Called once, on the thread that made the
 * instance, after TRITONBACKEND_ModelInstanceInitialize has succeeded. A model runs on network
 * threads only if the promise holds for all its instances. Without this function it holds for
 * every instance.
 *
 * returns  false: call Execute of this instance on a thread of its own
 */
TRITONBACKEND_ISPEC bool nereid_instance_inline_v1(TRITONBACKEND_ModelInstance *instance);

/* nereid_backend_fills_outputs_v1 - get output buffers that are not cleared.
 *
 * A backend that defines this with a value other than 0 promises to write every byte of each
 * buffer from TRITONBACKEND_OutputBuffer or TRITONBACKEND_StateBuffer before it sends the
 * response or updates the state. This does not apply to a response with an error.
 *
 * The memory of those buffers may contain tensors of other clients. So the server clears it,
 * unless the backend makes this promise.
 */
extern TRITONBACKEND_ISPEC const uint32_t nereid_backend_fills_outputs_v1;

/* nereid_backend_answers_last_v1 - have the next batch ready when Execute returns.
 *
 * A backend that defines this with a value other than 0 promises that
 * TRITONBACKEND_ModelInstanceExecute
 * - sends its responses on the thread that called it, and only those of the requests of that call,
 * - behind the last of them waits for nothing, computes nothing, and returns: it reports, releases
 *   and frees,
 * - does not wait within for a request that it sends to the server itself.
 * It does not apply to decoupled models.
 *
 * The server may then take the next batch for the instance before that last response goes out:
 * whoever gets it cannot join that batch, and batches are of more even sizes. What it has taken no
 * other instance can execute.
 */
extern TRITONBACKEND_ISPEC const uint32_t nereid_backend_answers_last_v1;

/* Execution in two halves, for a backend whose work is done elsewhere, by another process for
 * example: a network thread begins it, waits for other things as well, and ends it. So a small
 * request needs no instance thread. A backend exports all four functions or none. The conditions
 * of nereid_backend_inline_v1 apply as well. Calls for one instance stay serial, and between begin
 * and its end none is for another batch. Decoupled models are executed as usual. */

enum nereid_progress {
    NEREID_PENDING, /* it goes on: look again when the bell has rung */
    NEREID_ENDED,   /* every response was sent, every request released */
    NEREID_BLOCKS,  /* the rest may block or take long: call finish on a thread that may wait */
};

/* nereid_instance_bell_v1 - the eventfd that is written to when there is something to look at.
 * Called once, on the thread that made the instance, after TRITONBACKEND_ModelInstanceInitialize
 * has succeeded. The server watches for writes (EPOLLET): nobody needs to read it. It may look once
 * more than it was written to, and it does not look while no batch is under way.
 *
 * returns  owned by the instance, open until it is finalized. -1: call Execute of this instance on
 *          a thread of its own
 */
TRITONBACKEND_ISPEC int nereid_instance_bell_v1(TRITONBACKEND_ModelInstance *instance);

/* nereid_instance_begin_v1 - begin to execute a batch. Must not block. The server looks as soon as
 * it has returned true, on the same thread: what comes until then needs no bell.
 *
 * requests  as for TRITONBACKEND_ModelInstanceExecute; the array stays valid until the end
 * returns   false: nothing was done, and the batch is given to TRITONBACKEND_ModelInstanceExecute
 *           on another thread
 */
TRITONBACKEND_ISPEC bool nereid_instance_begin_v1(TRITONBACKEND_ModelInstance *instance,
                                                  TRITONBACKEND_Request **requests, uint32_t count);

/* nereid_instance_look_v1 - send what has come of the batch that was begun. Must not block. */
TRITONBACKEND_ISPEC enum nereid_progress
nereid_instance_look_v1(TRITONBACKEND_ModelInstance *instance);

/* nereid_instance_finish_v1 - wait for the end of the batch that was begun, whatever may become
 * of it. Blocks. The server calls it, on another thread, after NEREID_BLOCKS, and when it does
 * not want to wait on a network thread any longer. */
TRITONBACKEND_ISPEC void nereid_instance_finish_v1(TRITONBACKEND_ModelInstance *instance);

#ifdef __cplusplus
}
#endif

#endif /* NEREID_BACKEND_H */
