#pragma once
/* The job queues of the models, and the loader threads that work on them. Private to repo/. */
#include "base/err.h"

#include <stdbool.h>

struct repo;
struct repo_job;
struct repo_model;

/* jobs_ask - append a job, which the queue then owns, to the queue of a model, given by its
 * space (repo/spaces.h; borrowed from the repository) and its name. Lock not held.
 * errors  UNAVAILABLE: the repository is stopping, too many jobs wait, or no thread can be
 *         started; the job is freed and `done` is not called */
struct err *jobs_ask(struct repo *r, struct repo_job *job, const char *space, const char *model);

/* jobs_lend - the calling thread begins (or ends) to wait for something that needs no loader. If
 * it is a loader, one more loader may run meanwhile, up to REPO_MAX_LENT. */
void jobs_lend(struct repo *r, bool waits);

/* jobs_wait_begin - the calling thread is about to wait for an operation. If it is a loader, for
 * example for a backend that loads another model, one more loader may run meanwhile. Lock not
 * held.
 * model   the name of the models whose load it waits for, borrowed until jobs_wait_end; NULL =
 *         it waits for something else
 * errors  INVALID_ARG: that load would wait for the caller's own load, directly or through
 *         others; UNAVAILABLE: all other loaders already wait */
struct err *jobs_wait_begin(struct repo *r, const char *model);
void jobs_wait_end(struct repo *r);

/* jobs_refuse - end the waiting jobs with UNAVAILABLE and refuse new ones. */
void jobs_refuse(struct repo *r);

/* jobs_join - wait for the loaders to end; call it after jobs_refuse. */
void jobs_join(struct repo *r);

/* jobs_hold - begin (or end) to only collect jobs: no loader takes any. Lock not held. */
void jobs_hold(struct repo *r, bool hold);

/* jobs_park - put the calling loader's job back at the front of its model's queue, where it
 * waits for jobs_resume. The model is no longer busy. Lock held.
 * returns  false: refused because the repository is stopping */
bool jobs_park(struct repo *r, struct repo_model *m, struct repo_job *job);

/* jobs_put_back - as jobs_park, but a loader takes the job again after the work of other models.
 * Lock not held.
 * returns  false: the repository is stopping, or there is no other work: no other model waits
 *          for a loader, or no job has ended since this one was last put back */
bool jobs_put_back(struct repo *r, struct repo_model *m, struct repo_job *job);

/* jobs_resume - a loader may take the parked job now. Lock held. */
void jobs_resume(struct repo *r, struct repo_model *m);
