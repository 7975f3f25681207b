#ifndef NEREID_BACKEND_H
#define NEREID_BACKEND_H

/* What a backend may export for Nereid beyond the common backend interface. Every symbol here is
 * optional, is found with dlsym, and does nothing in a server that does not look for it. */

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
 * The server may then run a request on the thread that received it, while the instance is idle, its
 * queue is empty and no batching delay applies. Calls for one instance stay serial. An instance
 * that takes longer than the limit once is demoted: its requests go through an instance thread from
 * then on. So a backend whose speed depends on the model may promise for all its models.
 */
extern TRITONBACKEND_ISPEC const uint32_t nereid_backend_inline_v1;

/* nereid_instance_inline_v1 - whether that promise holds for one instance.
 *
 * For a backend that knows which of its models or instances may block: one that is configured to
 * wait, or that has a large model. Asked once, on the thread that made the instance, after
 * TRITONBACKEND_ModelInstanceInitialize has succeeded. A model runs on network threads only while
 * all its instances may. Without this function the promise is for every instance.
 *
 * returns  false: call Execute of this instance on a thread of its own
 */
TRITONBACKEND_ISPEC bool nereid_instance_inline_v1(TRITONBACKEND_ModelInstance *instance);

/* nereid_backend_fills_outputs_v1 - take output buffers as they come.
 *
 * A backend that defines this with a value other than 0 promises that it writes every byte of each
 * buffer that it gets from TRITONBACKEND_OutputBuffer or TRITONBACKEND_StateBuffer before it sends
 * the response, or updates the state; a response that it sends with an error is no concern.
 *
 * The memory of those buffers was used before, for tensors of other clients. So the server clears
 * it, unless the backend makes this promise.
 */
extern TRITONBACKEND_ISPEC const uint32_t nereid_backend_fills_outputs_v1;

#ifdef __cplusplus
}
#endif

#endif /* NEREID_BACKEND_H */
