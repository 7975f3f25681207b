#pragma once
/* Batches on their way into the process of an isolated model. Private to isolate/. */
#include "base/err.h"

#include <stddef.h>

struct isolate_instance;
struct isolate_lane;
struct isolate_session;
struct request;

/* isolate_request_put - put an order to execute requests into the lane: small inputs into the
 * message, large ones into shared memory, each copied once. Those that cannot go are answered
 * with the reason; the numbers of the others are in inst->batch.
 * returns  how many go */
size_t isolate_request_put(struct isolate_session *s, struct isolate_instance *inst,
                           struct isolate_lane *lane, struct request **requests, size_t count);
