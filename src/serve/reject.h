#pragma once
/* Answers for requests that no backend will answer. Never under a lock. */
#include "base/err.h"
#include "base/list.h"
#include "infer/stats.h"

struct request;

/* reject_request - count the failure, answer with the error (taken over), release the request. */
void reject_request(struct request *r, enum stats_reason reason, struct err *e);

/* reject_dropped - answer what batcher_expire handed out: cancelled, or timed out. */
void reject_dropped(struct list *dropped);
