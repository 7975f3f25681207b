#pragma once
/* Which models an ensemble needs, and whether it may serve with what they are now. Private to
 * repo/.
 *
 * An ensemble that was asked for stands until it is unloaded: it serves while the models that it
 * needs do, and comes back when they do. docs/internals/ensembles.md */
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>

struct Inference__ModelConfig;
struct repo;
struct repo_job;
struct repo_model;
struct serve_version;

/* What one configuration of a model asks for. All zeros: nothing. */
struct dependencies_need {
    char **names; /* of the models of its steps, ascending, each once; owned */
    const char **
        /* of each: the space of the model that it meant when that was looked at last; NULL = of
         * none. Owned */
        spaces;
    size_t count;
    struct Inference__ModelConfig *proto; /* of an ensemble, as it was written; owned */
    bool forced;                          /* proto is the client's own */
};

/* The part of struct repo_model that this file keeps. Guarded by the repository's lock. */
struct dependencies {
    /* of what serves or is being loaded; where neither is, of what was tried last */
    struct dependencies_need now;
    struct dependencies_need before; /* of what serves, while something else is being loaded */
    bool loading;                    /* `before` is in force */
    bool asked;        /* it was asked for by name; else it serves since an ensemble needs it */
    bool parked;       /* its next job waits for jobs of other models; no loader takes it */
    unsigned waits;    /* for how many; 1 more while they are being asked for */
    struct repo *repo; /* set while it waits */
};

void dependencies_fini(struct dependencies *d);
void dependencies_need_fini(struct dependencies_need *n);

/* dependencies_note - what the model asks for from now on; to be settled. Lock not held.
 * proto  as written; borrowed */
void dependencies_note(struct repo *r, struct repo_model *m,
                       const struct Inference__ModelConfig *proto, bool forced);

/* dependencies_settle - the load is over: where it failed and something still serves, that is in
 * force again. Lock not held. */
void dependencies_settle(struct repo *r, struct repo_model *m, bool failed);

/* dependencies_take - it was unloaded: it does not stand any more. What it needed, the caller's.
 * Lock held. */
struct dependencies_need dependencies_take(struct repo_model *m);

/* dependencies_stands - it is an ensemble that was asked for. Lock held. */
bool dependencies_stands(const struct repo_model *m);

/* dependencies_needs - whether a model needs one of a name. dependencies_uses - whether it needs
 * this one. Lock held. */
bool dependencies_needs(const struct repo_model *m, const char *name);
bool dependencies_uses(const struct repo *r, const struct repo_model *m,
                       const struct repo_model *other);

/* dependencies_used - the model that a name of a need meant; NULL when there is none. Lock held. */
const struct repo_model *dependencies_used(const struct repo *r, const struct dependencies_need *n,
                                           size_t index);

/* dependencies_labels - an output of an ensemble that has no labels of its own has those of the
 * step that makes it, as in the reference.
 * v  of m, not published yet, with its own labels. Lock not held.
 * dependencies_relabelled - whether a version of m that serves has those of a step that has
 * others by now. Lock held. */
void dependencies_labels(struct repo *r, const struct repo_model *m, struct serve_version *v);
bool dependencies_relabelled(const struct repo *r, const struct repo_model *m);

/* dependencies_circle - whether a model needs itself, through others. Lock held.
 * working  only through those that have work, which may wait for it; and also by way of the
 *          models that backends wait for while they load theirs (jobs_wait_begin)
 * ret      the last before it; NULL = not wanted */
bool dependencies_circle(const struct repo *r, const struct repo_model *m, bool working,
                         const struct repo_model **ret);

/* dependencies_config - the configuration of an ensemble that stands, to load it again as it
 * was. A copy, the caller's; NULL when it is none. Lock not held. */
struct Inference__ModelConfig *dependencies_config(struct repo *r, const struct repo_model *m,
                                                   bool *ret_forced);

/* dependencies_check - whether a model may serve: whatever is no ensemble may. Lock not held.
 * proto   of the model, as written; whether it is decoupled, and the space of each step's model,
 *         are filled in
 * errors  INVALID_ARG in the reference's words: a model that is not there, or not loaded, that
 *         does not fit, or a circle */
struct err *dependencies_check(struct repo *r, struct repo_model *m,
                               struct Inference__ModelConfig *proto);
