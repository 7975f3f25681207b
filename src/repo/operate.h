#pragma once
/* Loading and unloading one model: what a loader does for a job. Private to repo/. */
#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

struct repo;
struct repo_job;
struct repo_model;

/* A load that was begun. */
struct operate_attempt;

/* operate_load - make what the repository, or the job's own configuration and files, ask for
 * serve; all versions or none. The model is busy with the calling thread; lock not held. Blocks.
 * Unless it fails before a version was looked at, the model is wanted from then on.
 * ret_parked  the job was put back, since models that an ensemble needs come first
 *             (repo/follow.h), or since another thread is loading its backend and there are
 *             other models to see to: it is not the caller's any more
 * errors  INTERNAL "failed to load 'x', failed to poll from model repository: ..."; INVALID_ARG
 *         "load failed for model 'x': ..." */
struct err *operate_load(struct repo *r, struct repo_model *m, struct repo_job *job,
                         bool *ret_parked);

/* operate_forget - give up a load that was put back. NULL is fine. */
void operate_forget(struct operate_attempt *a);

/* operate_unload - unpublish all versions and hand them to the retirer. As above.
 * places  bits of the repositories that it must have been loaded from; all = anywhere
 * asked   somebody wants it gone; else it cannot serve for now
 * errors  NOT_FOUND when it was loaded from another */
struct err *operate_unload(struct repo *r, struct repo_model *m, uint64_t places, bool asked);

/* operate_unload_all - the same with every model, shown as one change: for the end, when nothing
 * else works on them. */
void operate_unload_all(struct repo *r);
