#pragma once
/* Response factories: a request held by one more reference, so that responses can be made after
 * it was released. The TRITONBACKEND_ResponseFactory of the C ABI is a token of one
 * (base/token.h).
 *
 * Of a request that is over (its final response was delivered, it was released, only factories
 * hold it) a factory has nothing left to do but to be deleted. A backend that forgets that would
 * keep the request's memory, and its version from being unloaded, for ever: factory_sweep
 * deletes such factories in its place. */
#include "os/clock.h"

#include <stdbool.h>
#include <stddef.h>

struct request;

/* How long a backend may take to delete the factories of a request that is over. */
#define FACTORY_GRACE_NS TIME_S(2)

/* factory_new - takes a reference on the request.
 * returns  the handle that the ABI gives out; never NULL. Any thread. */
void *factory_new(struct request *request);

/* factory_request - the request behind a handle: a reference, the caller's (request_unref); NULL
 * when the handle is none, or none any more. Any thread. */
struct request *factory_request(const void *handle);

/* factory_delete - false when the handle is none, or none any more. Any thread; of several at
 * one time one deletes it. */
bool factory_delete(const void *handle);

/* factory_sweep - delete the factories of requests that a sweep found over FACTORY_GRACE_NS ago
 * or earlier; logged. Of all models of the process.
 * now      monotonic ns; a request counts as over from the first sweep on that finds it so
 * returns  how many were deleted. Any thread, no lock held. */
size_t factory_sweep(time_ns now);
