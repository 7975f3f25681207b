#pragma once
/* Answers requests with an error without executing them. Call these functions without a lock. */
#include "base/err.h"
#include "base/list.h"
#include "infer/stats.h"

struct request;

/* reject_request - count the failure, answer with e (now owned by the response) and release r. */
void reject_request(struct request *r, enum stats_reason reason, struct err *e);

/* reject_dropped - answer the requests that a scheduler's expire or remove gave up: cancelled,
 * or timed out. */
void reject_dropped(struct list *dropped);
