#pragma once
/* max_inflight_requests: how many requests of a step may be under way at a time, those of all
 * requests of the ensemble together. What is over the limit is put aside, in order; no thread
 * waits. Private to serve/. */
#include "base/list.h"
#include "os/mutex.h"

#include <stdint.h>

struct request;

/* The credits of one step. */
struct ensemble_credit {
    struct mutex lock; /* rank LEAF; guards what follows */
    uint32_t under_way;
    struct list parked; /* requests by queue_node, oldest first */
};

void ensemble_credit_init(struct ensemble_credit *c);

/* ensemble_credit_fini - nothing is under way. */
void ensemble_credit_fini(struct ensemble_credit *c);

/* ensemble_credit_take - whether a request may go now, of at most `limit` at a time. Else it is
 * put aside. */
bool ensemble_credit_take(struct ensemble_credit *c, uint32_t limit, struct request *r);

/* ensemble_credit_give - one that went is over. Returns the one that goes in its place, NULL
 * when none waits. */
struct request *ensemble_credit_give(struct ensemble_credit *c);
