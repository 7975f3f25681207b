#pragma once
/* Cancelling a request while it waits in the queue of its model. */

struct request;

/* cancel_queued - the function behind request_target.cancelled: take r out of the queue and
 * answer it. If r belongs to a sequence, its waiting requests are answered too. If r is not
 * queued, nothing happens. Caller does not hold the lock; any thread. */
void cancel_queued(struct request *r);
