#pragma once
/* Jobs of models that depend on each other: an ensemble's load waits for those of its models,
 * and what happens to a model is followed by the ensembles that need it. Private to repo/. */
#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

struct repo;
struct repo_job;
struct repo_model;

/* follow_wait - have the models that an ensemble needs loaded first, as far as the mode of the
 * repository asks for it. Lock not held.
 * returns  true: the job was put back, the model is not busy with this thread any more; another
 *          loader takes it up when they are done. false: go on */
bool follow_wait(struct repo *r, struct repo_model *m, struct repo_job *job);

/* follow_recheck - what a REPO_RECHECK job does: an ensemble that stands is taken down, loaded
 * again, or left as it is. */
struct err *follow_recheck(struct repo *r, struct repo_model *m, struct repo_job *job);

/* follow_state - stands for what serves of a model, and whether its name means it: changes with
 * it. Lock not held. */
uint64_t follow_state(struct repo *r, const struct repo_model *m);

/* follow_end - the job is done: tell whoever asked, once all ensembles that it concerns have
 * followed. Takes job and error over. Lock not held, the model is busy with this thread.
 * before  follow_state before the job */
void follow_end(struct repo *r, struct repo_model *m, struct repo_job *job, uint64_t before,
                struct err *e);
