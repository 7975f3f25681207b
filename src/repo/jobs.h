#pragma once
/* The queues of the models and the threads that work on them. Private to repo/. */
#include "base/err.h"

#include <stdbool.h>

struct repo;
struct repo_job;
struct repo_model;

/* jobs_ask - put a job at the end of the queue of a model, known by its space (repo/spaces.h;
 * the repository's) and its name; taken over. Lock not held.
 * errors  UNAVAILABLE: stopping, too many wait, or no thread; the job is freed and not done */
struct err *jobs_ask(struct repo *r, struct repo_job *job, const char *space, const char *model);

/* jobs_lend - the calling thread begins (or ends) to wait for something that no loader has to
 * do: when it is a loader itself, one more may run meanwhile, of up to REPO_MAX_LENT. */
void jobs_lend(struct repo *r, bool waits);

/* jobs_wait_begin - the calling thread is about to wait for an operation: when it is a loader
 * itself, e.g. a backend that loads another model while its own is loaded, one more may run
 * meanwhile. Lock not held.
 * model   the name of the models whose load it waits for, borrowed until jobs_wait_end; NULL =
 *         it waits for something else
 * errors  INVALID_ARG: that load would wait for the caller's, by whatever way; UNAVAILABLE: all
 *         other loaders wait already */
struct err *jobs_wait_begin(struct repo *r, const char *model);
void jobs_wait_end(struct repo *r);

/* jobs_refuse - end what waits with UNAVAILABLE and take nothing new. */
void jobs_refuse(struct repo *r);

/* jobs_join - wait for the loaders, after jobs_refuse. */
void jobs_join(struct repo *r);

/* jobs_hold - begin (or end) to only collect jobs. Lock not held. */
void jobs_hold(struct repo *r, bool hold);

/* jobs_park - put the job that the calling loader has of a model back in front of the model's
 * others, to wait until jobs_resume; the model is not busy any more. Lock held.
 * returns  false: not while stopping */
bool jobs_park(struct repo *r, struct repo_model *m, struct repo_job *job);

/* jobs_put_back - the same, to go on behind everything that is there to do now. Lock not held.
 * returns  false: not while stopping, or there is nothing else to do: no other model waits for a
 *          loader, or none came to its end since this one was put back last */
bool jobs_put_back(struct repo *r, struct repo_model *m, struct repo_job *job);

/* jobs_resume - a loader may take the job that was put back. Lock held. */
void jobs_resume(struct repo *r, struct repo_model *m);
