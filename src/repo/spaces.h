#pragma once
/* What a name means where models of one name are served from several repositories
 * (--model-namespacing). Private to repo/.
 *
 * A model is known by its space and its name. Its space is the path of its repository; "" for
 * one that lies in none, since a client brought all of it. A name alone means every model of
 * that name where models are loaded and unloaded. Elsewhere it means the one that was asked for,
 * could be read and was not unloaded since (repo_model.meant), when there is exactly one.
 *
 * Where names are not told apart every model has the space "", and a name is the model.
 * docs/internals/repository.md */
#include "base/err.h"
#include "repo/repo.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct repo_job;
struct repo_model;

struct spaces_list {
    const char *at[REPO_MAX_PATHS + 1]; /* ascending; the repository's */
    size_t count;
};

/* spaces_places - the places where the models of a space may lie. */
uint64_t spaces_places(const struct repo *r, const char *space);

/* spaces_of - the spaces of some places. */
struct spaces_list spaces_of(const struct repo *r, uint64_t places);

/* spaces_mean - a model could be read: its name may mean it from now on. Lock held. */
void spaces_mean(struct repo *r, struct repo_model *m);

/* spaces_find - the one model that a name means, for requests; NULL when there is none, or
 * several. Lock held.
 * ret_count  how many it could mean */
const struct repo_model *spaces_find(const struct repo *r, const char *name, uint32_t *ret_count);

/* spaces_step - the model that a step of an ensemble means: the namesake in the ensemble's own
 * space, else the only one; NULL when there is none, or several elsewhere. Lock held. */
struct repo_model *spaces_step(const struct repo *r, const struct repo_model *m, const char *name);

/* spaces_awaits - whether an ensemble is compared with a model, which has the name of one of its
 * steps, only after that was loaded. In mode explicit all of that name are loaded along with it;
 * else its own namesake is enough, where there is one. Lock held. */
bool spaces_awaits(const struct repo *r, const struct repo_model *m, const struct repo_model *step);

/* spaces_ask - have a job done for every model that a name means: see jobs_ask. Lock not held.
 * like    a load or unload; copied. Its `places` say from where
 * errors  as jobs_ask; NOT_FOUND when what is to be unloaded lies elsewhere. Its `done` hears
 *         the errors of all the models, together in one: of loads INVALID_ARG with every message
 *         when one failed, else INTERNAL when one could not be read, or none is there */
struct err *spaces_ask(struct repo *r, const struct repo_job *like, const char *name);
