#pragma once
/* What a name means if models of one name are served from several repositories
 * (--model-namespacing). Private to repo/.
 *
 * A model is known by its space and its name. Its space is the path of its repository; "" if it
 * lies in no repository because a client brought all of it, or it came from an archive. For
 * loading and unloading, a name
 * means every model of that name. Everywhere else it means the only model with that name that a
 * client asked for, that could be read and that was not unloaded since (repo_model.meant); if
 * there are several, it means none.
 *
 * Without namespacing every model has the space "", so a name means one model.
 * docs/internals/repository.md */
#include "base/err.h"
#include "repo/repo.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct repo_job;
struct repo_model;

struct spaces_list {
    const char *at[REPO_MAX_PATHS + 1]; /* ascending; borrowed from the repository */
    size_t count;
};

/* spaces_places - the places where models of a space may lie. */
uint64_t spaces_places(const struct repo *r, const char *space);

/* spaces_of - the spaces of some places. */
struct spaces_list spaces_of(const struct repo *r, uint64_t places);

/* spaces_mean - a model could be read, so its name may mean it from now on. Lock held. */
void spaces_mean(struct repo *r, struct repo_model *m);

/* spaces_find - the one model that a name means for requests; NULL if there is none, or several.
 * Lock held.
 * ret_count  how many models it could mean */
const struct repo_model *spaces_find(const struct repo *r, const char *name, uint32_t *ret_count);

/* spaces_step - the model that a step of an ensemble means: the one in the ensemble's own space,
 * else the only one of that name; NULL if there is none, or several in other spaces. Lock held. */
struct repo_model *spaces_step(const struct repo *r, const struct repo_model *m, const char *name);

/* spaces_awaits - true if the check of an ensemble must wait until a model with the name of one
 * of its steps was loaded. In mode explicit all models of the name are loaded with it. In other
 * modes the model in its own space is enough, if there is one. Lock held. */
bool spaces_awaits(const struct repo *r, const struct repo_model *m, const struct repo_model *step);

/* spaces_ask - queue a job for every model that a name means, see jobs_ask. Lock not held.
 * like    a load or unload; copied. Its `places` limit where
 * errors  as jobs_ask; NOT_FOUND if the model to unload is not in these places. `done` gets one
 *         error for all models: for loads INVALID_ARG with all messages if one failed, else
 *         INTERNAL if one could not be read, or none exists */
struct err *spaces_ask(struct repo *r, const struct repo_job *like, const char *name);
