#pragma once
/* The models that there are, and showing them. Private to repo/; the lock of the repository is
 * held. */
#include "serve/table.h"

#include <stdbool.h>
#include <stdint.h>

struct repo;
struct repo_model;
struct repo_name;
struct repo_version;

/* models_of - the model of a space (repo/spaces.h; the repository's) and a name, made when it is
 * not there. models_find - NULL when it is not there. */
struct repo_model *models_of(struct repo *r, const char *space, const char *name);
struct repo_model *models_find(const struct repo *r, const char *space, const char *name);

/* models_name - a name and its models; NULL when it is not known. */
struct repo_name *models_name(const struct repo *r, const char *name);

/* models_prune - forget models that lie nowhere, serve nothing and have no work, and show it;
 * not while stopping. */
void models_prune(struct repo *r);

/* models_let_go - the same where only this one may have become so; it may be gone on return.
 * Costs nothing for one that stays. Lock held. */
void models_let_go(struct repo *r, const struct repo_model *m);

/* models_free - all of them. */
void models_free(struct repo *r);

/* models_publish - show the states as they are. */
void models_publish(struct repo *r);

/* models_publish_soon - the same, but while the server starts only now and then: for a thousand
 * models that load one after the other. Not when a version was taken out. */
void models_publish_soon(struct repo *r);

/* models_publish_rest - what was put off. */
void models_publish_rest(struct repo *r);

/* models_entry - the entry of a version, made (UNKNOWN) when it is not there; valid until the
 * next is made. */
struct repo_version *models_entry(struct repo_model *m, int64_t number);

/* models_serves - whether a version of the model does. */
bool models_serves(const struct repo_model *m);

/* models_drop_entry - forget an entry whose version is gone. */
void models_drop_entry(struct repo_model *m, const struct repo_version *v);

/* models_is_out - whether the entry serves nothing and is on no way to it: it failed, was never
 * loaded, or is unloaded. */
bool models_is_out(const struct repo_version *v);

/* models_say - set an entry's state and reason (copied; NULL = the state's own, if any).
 * models_reason - what was said; NULL = nothing. */
void models_say(struct repo_version *v, enum table_state state, const char *reason);
const char *models_reason(const struct repo_version *v);
