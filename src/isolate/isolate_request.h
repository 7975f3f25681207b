#pragma once
/* Sends batches to the process of an isolated model. Private to isolate/. */
#include "base/err.h"

#include <stddef.h>

struct isolate_instance;
struct isolate_lane;
struct isolate_session;
struct request;

/* isolate_request_put - put an order to execute requests into the lane. Small inputs go into the
 * message, large ones into shared memory; each is copied once. Requests that cannot be sent are
 * answered with the reason. The numbers of the others are in inst->batch.
 * returns  how many requests are sent */
size_t isolate_request_put(struct isolate_session *s, struct isolate_instance *inst,
                           struct isolate_lane *lane, struct request **requests, size_t count);
