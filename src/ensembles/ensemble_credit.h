#pragma once
/* max_inflight_requests: limits how many requests of a step are in flight, counted over all
 * requests of the ensemble. A request over the limit is parked, in order; no thread waits.
 * Private to ensembles/. */
#include "base/list.h"
#include "os/mutex.h"

#include <stdint.h>

struct request;

/* The credits of one step. */
struct ensemble_credit {
    struct mutex lock; /* rank LEAF; guards what follows */
    uint32_t under_way;
    struct list parked; /* requests that wait, linked by queue_node, oldest first */
};

void ensemble_credit_init(struct ensemble_credit *c);

/* ensemble_credit_fini - free it; no request is in flight. */
void ensemble_credit_fini(struct ensemble_credit *c);

/* ensemble_credit_take - true if r may be submitted now, so that at most `limit` are in flight.
 * Otherwise r is parked. */
bool ensemble_credit_take(struct ensemble_credit *c, uint32_t limit, struct request *r);

/* ensemble_credit_give - a request in flight has ended. Returns the parked request to submit in
 * its place; NULL if none is parked. */
struct request *ensemble_credit_give(struct ensemble_credit *c);
