#pragma once
/* The list of all models, and publishing it. Private to repo/; the caller holds the repository's
 * lock. */
#include "serve/table.h"

#include <stdbool.h>
#include <stdint.h>

struct repo;
struct repo_model;
struct repo_name;
struct repo_version;

/* models_of - the model with a space (repo/spaces.h; borrowed from the repository) and a name;
 * it is made if it does not exist.
 * models_find - the same, but NULL if it does not exist. */
struct repo_model *models_of(struct repo *r, const char *space, const char *name);
struct repo_model *models_find(const struct repo *r, const char *space, const char *name);

/* models_name - a name with its models; NULL if it is unknown. */
struct repo_name *models_name(const struct repo *r, const char *name);

/* models_prune - forget the models that are in no repository, do not serve and have no work, and
 * publish that. Does nothing while stopping. */
void models_prune(struct repo *r);

/* models_let_go - the same check for one model only, which may be freed. Cheap if the model
 * stays. Lock held. */
void models_let_go(struct repo *r, const struct repo_model *m);

/* models_free - free all models. */
void models_free(struct repo *r);

/* models_publish - publish the current states. */
void models_publish(struct repo *r);

/* models_publish_soon - as models_publish, but while the server starts only from time to time,
 * because a thousand models may load one after the other. Whoever frees a version that was taken
 * out calls models_publish_rest first. */
void models_publish_soon(struct repo *r);

/* models_publish_rest - publish what models_publish_soon put off. */
void models_publish_rest(struct repo *r);

/* models_entry - the entry of a version; it is made (UNKNOWN) if it does not exist. Valid until
 * the next entry is made. */
struct repo_version *models_entry(struct repo_model *m, int64_t number);

/* models_serves - true if a version of the model serves. */
bool models_serves(const struct repo_model *m);

/* models_drop_entry - remove an entry whose version is gone. */
void models_drop_entry(struct repo_model *m, const struct repo_version *v);

/* models_is_out - true if the entry does not serve and no load of it is under way: it failed,
 * was never loaded, or is unloaded. */
bool models_is_out(const struct repo_version *v);

/* models_say - set an entry's state and reason (copied; NULL = the state's own, if any).
 * models_reason - what was said; NULL = nothing. */
void models_say(struct repo_version *v, enum table_state state, const char *reason);
const char *models_reason(const struct repo_version *v);
