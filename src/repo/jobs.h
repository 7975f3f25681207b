#pragma once
/* The queues of the models and the threads that work on them. Private to repo/. */
#include "base/err.h"

#include <stdbool.h>

struct repo;
struct repo_job;

/* jobs_ask - put a job at the end of its model's queue; taken over. Lock not held.
 * errors  UNAVAILABLE: stopping, too many wait, or no thread; the job is freed and not done */
struct err *jobs_ask(struct repo *r, struct repo_job *job, const char *model);

/* jobs_lend - the calling thread begins (or ends) to wait for an operation: when it is a loader itself, e.g. a backend that loads
 * another model, one more may run meanwhile. */
void jobs_lend(struct repo *r, bool waits);

/* jobs_refuse - end what waits with UNAVAILABLE and take nothing new. */
void jobs_refuse(struct repo *r);

/* jobs_join - wait for the loaders, after jobs_refuse. */
void jobs_join(struct repo *r);
