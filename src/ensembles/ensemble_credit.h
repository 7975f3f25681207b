#pragma once
/* max_inflight_requests: limits how many requests of a step are in flight, counted over all
 * requests of the ensemble. A request over the limit is parked, in order; no thread waits.
 * Private to ensembles/. */
#include "base/list.h"
#include "os/mutex.h"

#include <stdatomic.h>
#include <stdint.h>

struct request;

/* The credits of one step. */
struct ensemble_credit {
    struct mutex lock; /* rank LEAF; guards what follows, and the claims */
    uint32_t under_way;
    struct list parked;    /* claims that wait, oldest first */
    atomic_size_t waiting; /* how many; written under the lock, relaxed: it only counts */
};

/* What a request has of a credit; zeroed at first. */
struct ensemble_claim {
    struct list node; /* in `parked` */
    struct request *request;
    time_ns since; /* when it was parked */
    bool parked;
    bool counted; /* it is in flight; does not change once it was submitted */
};

void ensemble_credit_init(struct ensemble_credit *c);

/* ensemble_credit_fini - free it; no request is in flight. */
void ensemble_credit_fini(struct ensemble_credit *c);

/* ensemble_credit_take - true if the request may be submitted now: at most `limit` are in flight
 * then, or it was cancelled and its model will refuse it. Otherwise it is parked. */
bool ensemble_credit_take(struct ensemble_credit *c, uint32_t limit, struct ensemble_claim *claim);

/* ensemble_credit_remove - true if the request was parked; now the caller has it. */
bool ensemble_credit_remove(struct ensemble_credit *c, struct ensemble_claim *claim);

/* ensemble_credit_give - a request in flight has ended. Returns the parked request to submit in
 * its place; NULL if none is parked. */
struct request *ensemble_credit_give(struct ensemble_credit *c);

/* ensemble_credit_oldest - since when the oldest has been parked; TIME_NEVER = none is. */
time_ns ensemble_credit_oldest(struct ensemble_credit *c);
