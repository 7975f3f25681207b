#pragma once
/* Loads and unloads one model: the work of a loader for one job. Private to repo/. */
#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

struct repo;
struct repo_job;
struct repo_model;

/* A load in progress. */
struct operate_attempt;

/* operate_load - make the versions serve that the repository, or the job's own configuration and
 * files, ask for; all of them or none. The model is busy with the calling thread; lock not held.
 * Blocks. Afterwards the model is wanted, unless the load failed before a version was looked at.
 * ret_parked  the job was put back and no longer belongs to the caller: the models that an
 *             ensemble needs come first (repo/follow.h), or another thread is loading its
 *             backend and other models can go first
 * errors  INTERNAL "failed to load 'x', failed to poll from model repository: ..."; INVALID_ARG
 *         "load failed for model 'x': ..." */
struct err *operate_load(struct repo *r, struct repo_model *m, struct repo_job *job,
                         bool *ret_parked);

/* operate_forget - give up a load that was put back. NULL is fine. */
void operate_forget(struct operate_attempt *a);

/* operate_unload - unpublish all versions and hand them to the retirer. The same rules as for
 * operate_load.
 * places  bits of the repositories from which it must have been loaded; all bits = any
 * why     it only cannot serve for now: the reason for the index; NULL = a client wants it unloaded
 * errors  NOT_FOUND if it was loaded from another repository */
struct err *operate_unload(struct repo *r, struct repo_model *m, uint64_t places, const char *why);

/* operate_unload_all - unload every model, published as one change. For the end, when no other
 * thread works on models. */
void operate_unload_all(struct repo *r);
