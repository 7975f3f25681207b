#pragma once
/* Response factories: a factory holds a reference to a request, so that a backend can make
 * responses after it released the request. The TRITONBACKEND_ResponseFactory of the C ABI is a
 * token for a factory (base/token.h).
 *
 * A request is over when its final response was delivered, it was released and only factories
 * hold it. A factory of such a request can only be deleted. If the backend forgets to delete it,
 * the request's memory is never freed and its version is never unloaded. factory_sweep therefore
 * deletes such factories. */
#include "os/clock.h"

#include <stdbool.h>
#include <stddef.h>

struct request;

/* How long a backend may take to delete the factories of a request that is over. */
#define FACTORY_GRACE_NS TIME_S(2)

/* factory_new - make a factory; it takes a reference to the request.
 * returns  the handle for the ABI; never NULL. Any thread. */
void *factory_new(struct request *request);

/* factory_request - the request behind a handle, as a reference of the caller's (request_unref);
 * NULL if the handle is invalid or stale. Any thread. */
struct request *factory_request(const void *handle);

/* factory_delete - delete a factory; false if the handle is invalid or stale. Any thread; if
 * several threads try at once, only one succeeds. */
bool factory_delete(const void *handle);

/* factory_sweep - delete the factories of requests that an earlier sweep, at least
 * FACTORY_GRACE_NS ago, found to be over. Each deletion is logged. Covers all models of the
 * process.
 * now      monotonic ns; the grace time begins with the first sweep that finds the request over
 * returns  the number of deleted factories. Any thread, no lock held. */
size_t factory_sweep(time_ns now);
