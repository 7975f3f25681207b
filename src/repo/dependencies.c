#include "repo/dependencies.h"

#include "base/mem.h"
#include "base/strbuf.h"
#include "model/config.h"
#include "model/config_check.h"
#include "model/config_fill.h"
#include "model/config_steps.h"
#include "proto/model_config.pb-c.h"
#include "repo/models.h"
#include "repo/repo_priv.h"
#include "serve/version.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

void dependencies_need_fini(struct dependencies_need *n)
{
    for (size_t i = 0; i < n->count; i++)
        mem_free(n->names[i]);
    mem_free(n->names);
    config_free_proto(n->proto);
    *n = (struct dependencies_need){0};
}

void dependencies_fini(struct dependencies *d)
{
    dependencies_need_fini(&d->now);
    dependencies_need_fini(&d->before);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static struct dependencies_need need_of(const Inference__ModelConfig *proto, bool forced)
{
    struct dependencies_need n = {.forced = forced};
    if (proto->scheduling_choice_case !=
        INFERENCE__MODEL_CONFIG__SCHEDULING_CHOICE_ENSEMBLE_SCHEDULING)
        return n;
    const Inference__ModelEnsembling *en = proto->ensemble_scheduling;
    n.proto = config_copy_proto(proto);
    n.names = mem_alloc((en->n_step + 1) * sizeof(char *));
    for (size_t i = 0; i < en->n_step; i++)
        n.names[i] = mem_strdup(en->step[i]->model_name);
    qsort(n.names, en->n_step, sizeof(char *), by_name);
    for (size_t i = 0; i < en->n_step; i++) {
        if (n.count && strcmp(n.names[n.count - 1], n.names[i]) == 0)
            mem_free(n.names[i]);
        else
            n.names[n.count++] = n.names[i];
    }
    return n;
}

void dependencies_note(struct repo *r, struct repo_model *m, const Inference__ModelConfig *proto,
                       bool forced)
{
    struct dependencies_need n = need_of(proto, forced);
    mutex_lock(&r->lock);
    struct dependencies *d = &m->dependencies;
    if (d->loading)
        dependencies_need_fini(&d->now);
    else
        d->before = d->now;
    d->now = n;
    d->loading = true;
    mutex_unlock(&r->lock);
}

static bool serves(const struct repo_model *m)
{
    for (size_t i = 0; i < m->version_count; i++)
        if (m->versions[i].state == TABLE_READY)
            return true;
    return false;
}

void dependencies_settle(struct repo *r, struct repo_model *m, bool failed)
{
    mutex_lock(&r->lock);
    struct dependencies *d = &m->dependencies;
    if (d->loading && failed && serves(m)) {
        dependencies_need_fini(&d->now);
        d->now = d->before;
    } else if (d->loading) {
        dependencies_need_fini(&d->before);
    }
    d->before = (struct dependencies_need){0};
    d->loading = false;
    mutex_unlock(&r->lock);
}

struct dependencies_need dependencies_take(struct repo_model *m)
{
    struct dependencies_need taken = m->dependencies.now;
    m->dependencies.now = (struct dependencies_need){0};
    m->dependencies.asked = false;
    return taken;
}

bool dependencies_stands(const struct repo_model *m)
{
    return m->dependencies.now.proto != NULL;
}

bool dependencies_needs(const struct repo_model *m, const char *name)
{
    const struct dependencies_need *n = &m->dependencies.now;
    for (size_t i = 0; i < n->count; i++)
        if (strcmp(n->names[i], name) == 0)
            return true;
    return false;
}

/* One step of the search: whether the way from `at` comes to `goal`. */
static bool reaches(const struct repo *r, const struct repo_model *at,
                    const struct repo_model *goal, bool working, struct map *seen,
                    const struct repo_model **ret)
{
    const struct dependencies_need *n = &at->dependencies.now;
    for (size_t i = 0; i < n->count; i++) {
        const struct repo_model *next = map_get(&r->by_name, n->names[i], strlen(n->names[i]));
        if (next == goal) {
            if (ret)
                *ret = at;
            return true;
        }
        if (!next || (working && !next->busy && list_empty(&next->jobs)))
            continue;
        if (map_put(seen, next->name, strlen(next->name), seen))
            continue;
        if (reaches(r, next, goal, working, seen, ret))
            return true;
    }
    return false;
}

bool dependencies_circle(const struct repo *r, const struct repo_model *m, bool working,
                         const struct repo_model **ret)
{
    struct map seen = MAP_INIT;
    bool found = reaches(r, m, m, working, &seen, ret);
    map_fini(&seen);
    return found;
}

Inference__ModelConfig *dependencies_config(struct repo *r, const struct repo_model *m,
                                            bool *ret_forced)
{
    mutex_lock(&r->lock);
    const struct dependencies_need *n = &m->dependencies.now;
    Inference__ModelConfig *copy = n->proto ? config_copy_proto(n->proto) : NULL;
    *ret_forced = n->forced;
    mutex_unlock(&r->lock);
    return copy;
}

/* The version of the highest number that serves; NULL when none does. */
static struct serve_version *latest_of(const struct repo_model *m)
{
    struct serve_version *found = NULL;
    for (size_t i = 0; m && i < m->version_count; i++)
        if (m->versions[i].state == TABLE_READY)
            found = m->versions[i].version;
    return found;
}

static bool is_there(const struct repo_model *m)
{
    return m && (serves(m) || (m->wanted && m->version_count));
}

static struct err *check_there(const struct repo *r, const struct repo_model *m)
{
    const struct dependencies_need *n = &m->dependencies.now;
    struct strbuf missing = STRBUF_INIT;
    for (size_t i = 0; i < n->count; i++)
        if (!is_there(map_get(&r->by_name, n->names[i], strlen(n->names[i]))))
            strbuf_printf(&missing, "%s%s", missing.len ? ", " : "", n->names[i]);
    struct err *e = NULL;
    if (missing.len)
        e = err_new(STATUS_INVALID_ARG,
                    "ensemble %s contains models that are not available or ambiguous: %s", m->name,
                    strbuf_str(&missing));
    strbuf_fini(&missing);
    return e;
}

/* A model that was to be loaded and serves nothing. */
static struct err *not_loaded(const struct repo_model *m, const struct repo_model *step)
{
    struct strbuf why = STRBUF_INIT;
    bool whole = false;
    for (size_t i = 0; i < step->version_count; i++) {
        const struct repo_version *v = &step->versions[i];
        if (v->state != TABLE_UNAVAILABLE || !v->reason)
            continue;
        whole = whole || v->number == 0;
        if (v->number == 0)
            strbuf_puts(&why, v->reason);
        else
            strbuf_printf(&why, "version %" PRId64 " is at UNAVAILABLE state: %s;", v->number,
                          v->reason);
    }
    struct err *e;
    if (whole)
        e = err_new(STATUS_INVALID_ARG,
                    "ensemble '%s' depends on '%s' which is not valid. Model '%s' failed with "
                    "error: %s",
                    m->name, step->name, step->name, strbuf_str(&why));
    else if (why.len)
        e = err_new(STATUS_INVALID_ARG,
                    "ensemble '%s' depends on '%s' which has no loaded version. Model '%s' loading "
                    "failed with error: %s",
                    m->name, step->name, step->name, strbuf_str(&why));
    else
        e = err_new(STATUS_INVALID_ARG,
                    "ensemble '%s' depends on '%s' which has no loaded version.", m->name,
                    step->name);
    strbuf_fini(&why);
    return e;
}

static struct err *check_versions(const struct repo *r, const struct repo_model *m,
                                  const Inference__ModelConfig *proto)
{
    const Inference__ModelEnsembling *en = proto->ensemble_scheduling;
    for (size_t i = 0; i < en->n_step; i++) {
        const char *name = en->step[i]->model_name;
        int64_t number = en->step[i]->model_version;
        const struct repo_model *step = map_get(&r->by_name, name, strlen(name));
        if (!latest_of(step))
            return not_loaded(m, step);
        bool found = number == -1;
        for (size_t k = 0; !found && k < step->version_count; k++)
            found = step->versions[k].number == number && step->versions[k].state == TABLE_READY;
        if (!found)
            return err_new(STATUS_INVALID_ARG,
                           "ensemble '%s' depends on '%s' whose required version %" PRId64
                           " is not loaded.",
                           m->name, name, number);
    }
    return NULL;
}

/* The configurations of the steps' models, held while they are looked at. */
static struct model_config **hold_configs(const struct repo *r, const struct dependencies_need *n)
{
    struct model_config **held = mem_alloc((n->count + 1) * sizeof(struct model_config *));
    for (size_t i = 0; i < n->count; i++)
        held[i] =
            config_ref(latest_of(map_get(&r->by_name, n->names[i], strlen(n->names[i])))->config);
    held[n->count] = NULL;
    return held;
}

static void release_configs(struct model_config **held)
{
    for (size_t i = 0; held && held[i]; i++)
        config_unref(held[i]);
    mem_free(held);
}

static const Inference__ModelConfig *find_config(void *owner, const char *model)
{
    struct model_config **held = owner;
    for (size_t i = 0; held[i]; i++)
        if (strcmp(held[i]->name, model) == 0)
            return held[i]->proto;
    return NULL;
}

static struct err *check_states(struct repo *r, const struct repo_model *m,
                                const Inference__ModelConfig *proto, struct model_config ***ret)
{
    mutex_lock(&r->lock);
    const struct repo_model *last;
    struct err *e = NULL;
    if (dependencies_circle(r, m, false, &last))
        e = err_new(STATUS_INVALID_ARG,
                    "circular dependency between ensembles: %s -> ... -> %s -> %s", m->name,
                    last->name, m->name);
    if (!e)
        e = check_there(r, m);
    if (!e)
        e = check_versions(r, m, proto);
    if (!e)
        *ret = hold_configs(r, &m->dependencies.now);
    mutex_unlock(&r->lock);
    return e;
}

static void set_decoupled(Inference__ModelConfig *proto, bool decoupled)
{
    if (!proto->model_transaction_policy) {
        proto->model_transaction_policy = mem_alloc(sizeof(*proto->model_transaction_policy));
        inference__model_transaction_policy__init(proto->model_transaction_policy);
    }
    proto->model_transaction_policy->decoupled = decoupled;
}

struct err *dependencies_check(struct repo *r, const struct repo_model *m,
                               Inference__ModelConfig *proto)
{
    if (proto->scheduling_choice_case !=
        INFERENCE__MODEL_CONFIG__SCHEDULING_CHOICE_ENSEMBLE_SCHEDULING)
        return NULL;
    Inference__ModelConfig *whole = config_copy_proto(proto);
    config_fill_defaults(whole, m->name);
    struct err *broken = config_check_model(whole, m->name, CONFIG_CHECK_FULL);
    struct model_config **held = NULL;
    bool decoupled = false;
    struct err *e = NULL;
    if (!broken) /* else loading will say so */
        e = check_states(r, m, whole, &held);
    if (!broken && !e)
        e = config_steps_check(whole, find_config, held, &decoupled);
    if (!broken && !e)
        set_decoupled(proto, decoupled);
    err_free(broken);
    release_configs(held);
    config_free_proto(whole);
    return e;
}
