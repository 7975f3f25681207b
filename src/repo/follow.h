#pragma once
/* Jobs of models that depend on each other: the load of an ensemble waits for the jobs of its
 * models, and a change of a model is followed by jobs of the ensembles that need it. Private to
 * repo/. */
#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

struct repo;
struct repo_job;
struct repo_model;

/* follow_wait - load the models that an ensemble needs first, as far as the repository's mode
 * asks for that. Lock not held.
 * returns  true: the job was put back and the model is no longer busy; a loader continues the
 *          job when the other jobs are done. false: go on */
bool follow_wait(struct repo *r, struct repo_model *m, struct repo_job *job);

/* follow_recheck - the work of a REPO_RECHECK job: a standing ensemble is unloaded, loaded
 * again, or left as it is. */
struct err *follow_recheck(struct repo *r, struct repo_model *m, struct repo_job *job);

/* follow_state - a number that changes when the serving versions of a model change, or whether
 * its name means it. Lock not held. */
uint64_t follow_state(struct repo *r, const struct repo_model *m);

/* follow_end - the job has ended: call its `done` once all ensembles that depend on the model
 * have followed. Takes job and error over. Lock not held; the model is busy with this thread.
 * before  the follow_state before the job */
void follow_end(struct repo *r, struct repo_model *m, struct repo_job *job, uint64_t before,
                struct err *e);
