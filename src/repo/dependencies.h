#pragma once
/* Which models an ensemble needs, and whether it may serve with the current ones. Private to
 * repo/.
 *
 * An ensemble that a client asked for stands until it is unloaded: it serves while the models
 * that it needs serve, and it is loaded again when they come back. docs/internals/ensembles.md */
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>

struct Inference__ModelConfig;
struct repo;
struct repo_job;
struct repo_model;
struct serve_version;

/* The models that one configuration needs. All zeros: none. */
struct dependencies_need {
    char **names; /* names of the models of its steps, ascending, without duplicates; owned */
    const char **
        /* For each name, the space of the model that it meant when this was last looked up; NULL
         * = no model. Owned. */
        spaces;
    size_t count;
    struct Inference__ModelConfig *proto; /* of an ensemble, as the author wrote it; owned */
    bool forced;                          /* a client gave proto with the load request */
};

/* The part of struct repo_model that belongs to this file. Guarded by the repository's lock. */
struct dependencies {
    /* the needs of what serves or is being loaded; if neither exists, of the last attempt */
    struct dependencies_need now;
    /* the needs of what serves, while something else is being loaded */
    struct dependencies_need before;
    bool loading; /* `before` is valid */
    /* a client asked for it by name; else it serves because an ensemble needs it */
    bool asked;
    bool parked; /* its next job waits for jobs of other models, so no loader takes it */
    /* the number of jobs that it waits for, plus 1 while those are being queued */
    unsigned waits;
    struct repo *repo; /* set while it waits */
};

void dependencies_fini(struct dependencies *d);
void dependencies_need_fini(struct dependencies_need *n);

/* dependencies_note - note what the model needs from now on; finish with dependencies_settle.
 * Lock not held.
 * proto  as the author wrote it; borrowed */
void dependencies_note(struct repo *r, struct repo_model *m,
                       const struct Inference__ModelConfig *proto, bool forced);

/* dependencies_settle - the load has ended. If it failed and a version still serves, the earlier
 * needs are valid again. Lock not held. */
void dependencies_settle(struct repo *r, struct repo_model *m, bool failed);

/* dependencies_take - the model was unloaded and no longer stands. Returns its needs, which the
 * caller owns. Lock held. */
struct dependencies_need dependencies_take(struct repo_model *m);

/* dependencies_stands - true if m is an ensemble that a client asked for. Lock held. */
bool dependencies_stands(const struct repo_model *m);

/* dependencies_needs - true if a model needs a model with this name.
 * dependencies_uses - true if it needs exactly this model. Lock held. */
bool dependencies_needs(const struct repo_model *m, const char *name);
bool dependencies_uses(const struct repo *r, const struct repo_model *m,
                       const struct repo_model *other);

/* dependencies_used - the model that a name of a need meant; NULL if there is none. Lock held. */
const struct repo_model *dependencies_used(const struct repo *r, const struct dependencies_need *n,
                                           size_t index);

/* dependencies_labels - give each output of an ensemble that has no labels the labels of the
 * step that produces it, as in the reference. v is a version of m with its own labels, not
 * published yet. Lock not held.
 * dependencies_relabelled - true if a serving version of m has labels of a step that have
 * changed since. Lock held. */
void dependencies_labels(struct repo *r, const struct repo_model *m, struct serve_version *v);
bool dependencies_relabelled(const struct repo *r, const struct repo_model *m);

/* dependencies_circle - true if a model needs itself, directly or through others. Lock held.
 * working  follow only models that have work and so may wait for it, and also the models that a
 *          backend waits for while it loads (jobs_wait_begin)
 * ret      the last model of the circle, before m; NULL = not wanted */
bool dependencies_circle(const struct repo *r, const struct repo_model *m, bool working,
                         const struct repo_model **ret);

/* dependencies_config - the configuration with which a standing ensemble is loaded again. A
 * copy, which the caller owns; NULL if m is not one. Lock not held. */
struct Inference__ModelConfig *dependencies_config(struct repo *r, const struct repo_model *m,
                                                   bool *ret_forced);

/* dependencies_check - check that a model may serve; any model that is not an ensemble may. Lock
 * not held.
 * proto   as the author wrote it; the function fills in whether the model is decoupled, and the
 *         space of each step's model
 * errors  INVALID_ARG in the reference's words: a model is missing, not loaded or does not fit,
 *         or there is a circle */
struct err *dependencies_check(struct repo *r, struct repo_model *m,
                               struct Inference__ModelConfig *proto);
