#pragma once
/* What becomes of a request that its client gives up while it waits in its model's queue. */

struct request;

/* cancel_queued - request_target.cancelled: answer it and, where it belongs to a sequence, what
 * else waits of that. Nothing happens where it is not queued. Lock not held; any thread. */
void cancel_queued(struct request *r);
