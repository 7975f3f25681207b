#include "repo/dependencies.h"

#include "base/mem.h"
#include "base/strbuf.h"
#include "codec/pb_field.h"
#include "model/config.h"
#include "model/labels.h"
#include "model/config_check.h"
#include "model/config_fill.h"
#include "model/config_steps.h"
#include "proto/model_config.pb-c.h"
#include "repo/models.h"
#include "repo/repo_priv.h"
#include "repo/spaces.h"
#include "serve/version.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

void dependencies_need_fini(struct dependencies_need *n)
{
    for (size_t i = 0; i < n->count; i++)
        mem_free(n->names[i]);
    mem_free(n->names);
    mem_free(n->spaces);
    config_free_proto(n->proto);
    *n = (struct dependencies_need){0};
}

void dependencies_fini(struct dependencies *d)
{
    dependencies_need_fini(&d->now);
    dependencies_need_fini(&d->before);
}

static int dependencies_by_name(const void *a, const void *b)
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
    n.spaces = mem_zalloc((en->n_step + 1) * sizeof(char *));
    for (size_t i = 0; i < en->n_step; i++)
        n.names[i] = mem_strdup(en->step[i]->model_name);
    qsort(n.names, en->n_step, sizeof(char *), dependencies_by_name);
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

void dependencies_settle(struct repo *r, struct repo_model *m, bool failed)
{
    mutex_lock(&r->lock);
    struct dependencies *d = &m->dependencies;
    if (d->loading && failed && models_serves(m)) {
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

const struct repo_model *dependencies_used(const struct repo *r, const struct dependencies_need *n,
                                           size_t index)
{
    if (!r->settings.namespacing)
        return models_find(r, "", n->names[index]);
    return n->spaces[index] ? models_find(r, n->spaces[index], n->names[index]) : NULL;
}

bool dependencies_uses(const struct repo *r, const struct repo_model *m,
                       const struct repo_model *other)
{
    const struct dependencies_need *n = &m->dependencies.now;
    for (size_t i = 0; i < n->count; i++)
        if (strcmp(n->names[i], other->name) == 0)
            return dependencies_used(r, n, i) == other;
    return false;
}

/* A search for a circle: a path from a model to itself. */
struct search {
    const struct repo *repo;
    const struct repo_model *goal;
    bool working;
    struct map seen;
    const struct repo_model *last; /* the model before the goal */
};

static bool reaches(struct search *s, const struct repo_model *at);

/* Continues the search through a model. Returns true if it reaches the goal. */
static bool dependencies_leads(struct search *s, const struct repo_model *at,
                               const struct repo_model *next)
{
    if (next == s->goal) {
        s->last = at;
        return true;
    }
    if (s->working && (!next->busy || next->ending) && list_empty(&next->jobs))
        return false;
    return !map_put(&s->seen, next->title, strlen(next->title), s) && reaches(s, next);
}

/* Follows the models that a backend loads while it is loaded itself. */
static bool reaches_awaited(struct search *s, const struct repo_model *at)
{
    const struct repo_name *name = models_name(s->repo, at->awaits);
    for (const struct repo_model *next = name ? name->first : NULL; next; next = next->namesake)
        if (dependencies_leads(s, at, next))
            return true;
    return false;
}

static bool reaches(struct search *s, const struct repo_model *at)
{
    const struct dependencies_need *n = &at->dependencies.now;
    for (size_t i = 0; i < n->count; i++) {
        const struct repo_name *name = models_name(s->repo, n->names[i]);
        const struct repo_model *step = spaces_step(s->repo, at, n->names[i]);
        for (const struct repo_model *next = name ? name->first : NULL; next; next = next->namesake)
            if ((s->working ? spaces_awaits(s->repo, at, next) : next == step) &&
                dependencies_leads(s, at, next))
                return true;
    }
    return s->working && at->awaits && reaches_awaited(s, at);
}

bool dependencies_circle(const struct repo *r, const struct repo_model *m, bool working,
                         const struct repo_model **ret)
{
    struct search s = {.repo = r, .goal = m, .working = working};
    bool found = reaches(&s, m);
    map_fini(&s.seen);
    if (found && ret)
        *ret = s.last;
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

/* The serving version with the highest number; NULL if none serves. */
static struct serve_version *latest_of(const struct repo_model *m)
{
    struct serve_version *found = NULL;
    for (size_t i = 0; m && i < m->version_count; i++)
        if (m->versions[i].state == TABLE_READY)
            found = m->versions[i].version;
    return found;
}

/* The version of a step's model that gets its requests; NULL if it does not serve. */
static struct serve_version *version_of_step(const struct repo *r, const struct repo_model *m,
                                             const Inference__ModelEnsembling__Step *step)
{
    const struct repo_model *model = spaces_step(r, m, step->model_name);
    if (step->model_version == -1)
        return latest_of(model);
    for (size_t i = 0; model && i < model->version_count; i++)
        if (model->versions[i].number == step->model_version &&
            model->versions[i].state == TABLE_READY)
            return model->versions[i].version;
    return NULL;
}

/* The labels of the step that produces a tensor; NULL if it has none. Lock held. */
static struct labels *labels_of_tensor(const struct repo *r, const struct repo_model *m,
                                       const Inference__ModelEnsembling *en, const char *tensor)
{
    for (size_t i = 0; i < en->n_step; i++)
        for (size_t k = 0; k < en->step[i]->n_output_map; k++) {
            if (strcmp(en->step[i]->output_map[k]->value, tensor) != 0)
                continue;
            const struct serve_version *v = version_of_step(r, m, en->step[i]);
            /* Labels are shared and immutable; a holder may only release its reference. */
            return v ? (struct labels *)(uintptr_t)version_labels(v,
                                                                  en->step[i]->output_map[k]->key)
                     : NULL;
        }
    return NULL;
}

static bool takes_labels(const struct serve_version *v, uint32_t output)
{
    return v->config->scheduler == CONFIG_SCHEDULER_ENSEMBLE && v->labels &&
           !*v->config->outputs[output].label_filename;
}

void dependencies_labels(struct repo *r, const struct repo_model *m, struct serve_version *v)
{
    mutex_lock(&r->lock);
    for (uint32_t i = 0; i < v->config->output_count; i++) {
        struct labels *l = takes_labels(v, i)
                               ? labels_of_tensor(r, m, v->config->proto->ensemble_scheduling,
                                                  v->config->outputs[i].name)
                               : NULL;
        if (l)
            v->labels[i] = labels_ref(l);
    }
    mutex_unlock(&r->lock);
}

bool dependencies_relabelled(const struct repo *r, const struct repo_model *m)
{
    for (size_t i = 0; i < m->version_count; i++) {
        const struct serve_version *v = m->versions[i].version;
        for (uint32_t k = 0; v && k < v->config->output_count; k++)
            if (takes_labels(v, k) && labels_of_tensor(r, m, v->config->proto->ensemble_scheduling,
                                                       v->config->outputs[k].name) != v->labels[k])
                return true;
    }
    return false;
}

static bool dependencies_is_there(const struct repo_model *m)
{
    return m && (models_serves(m) || (m->wanted && m->version_count));
}

static struct err *check_there(const struct repo *r, const struct repo_model *m)
{
    const struct dependencies_need *n = &m->dependencies.now;
    struct strbuf missing = STRBUF_INIT;
    for (size_t i = 0; i < n->count; i++)
        if (!dependencies_is_there(spaces_step(r, m, n->names[i])))
            strbuf_printf(&missing, "%s%s", missing.len ? ", " : "", n->names[i]);
    struct err *e = NULL;
    if (missing.len)
        e = err_new(STATUS_INVALID_ARG,
                    "ensemble %s contains models that are not available or ambiguous: %s", m->title,
                    strbuf_str(&missing));
    strbuf_fini(&missing);
    return e;
}

/* The error for a model that should be loaded but does not serve. */
static struct err *not_loaded(const struct repo_model *m, const struct repo_model *step)
{
    struct strbuf why = STRBUF_INIT;
    bool whole = false;
    for (size_t i = 0; i < step->version_count; i++) {
        const struct repo_version *v = &step->versions[i];
        const char *reason = models_is_out(v) ? models_reason(v) : NULL;
        if (!reason)
            continue;
        whole = whole || v->number == 0;
        if (v->number == 0)
            strbuf_puts(&why, reason);
        else
            strbuf_printf(&why, "version %" PRId64 " is at UNAVAILABLE state: %s;", v->number,
                          reason);
    }
    struct err *e;
    if (whole)
        e = err_new(STATUS_INVALID_ARG,
                    "ensemble '%s' depends on '%s' which is not valid. Model '%s' failed with "
                    "error: %s",
                    m->title, step->title, step->title, strbuf_str(&why));
    else if (why.len)
        e = err_new(STATUS_INVALID_ARG,
                    "ensemble '%s' depends on '%s' which has no loaded version. Model '%s' loading "
                    "failed with error: %s",
                    m->title, step->title, step->title, strbuf_str(&why));
    else
        e = err_new(STATUS_INVALID_ARG,
                    "ensemble '%s' depends on '%s' which has no loaded version.", m->title,
                    step->title);
    strbuf_fini(&why);
    return e;
}

static struct err *dependencies_check_versions(const struct repo *r, const struct repo_model *m,
                                               const Inference__ModelConfig *proto)
{
    const Inference__ModelEnsembling *en = proto->ensemble_scheduling;
    for (size_t i = 0; i < en->n_step; i++) {
        const char *name = en->step[i]->model_name;
        int64_t number = en->step[i]->model_version;
        const struct repo_model *step = spaces_step(r, m, name);
        if (!latest_of(step))
            return not_loaded(m, step);
        bool found = number == -1;
        for (size_t k = 0; !found && k < step->version_count; k++)
            found = step->versions[k].number == number && step->versions[k].state == TABLE_READY;
        if (!found)
            return err_new(STATUS_INVALID_ARG,
                           "ensemble '%s' depends on '%s' whose required version %" PRId64
                           " is not loaded.",
                           m->title, step->title, number);
    }
    return NULL;
}

/* The configuration of a step's model, with a reference while it is checked. */
struct held {
    char *title; /* owned; of the model; NULL marks the end */
    struct model_config *config;
};

/* Takes references to the configurations, and makes messages name the models.
 * whole  m's configuration with all defaults */
static struct held *hold_configs(const struct repo *r, const struct repo_model *m,
                                 Inference__ModelConfig *whole)
{
    const struct dependencies_need *n = &m->dependencies.now;
    struct held *held = mem_zalloc((n->count + 1) * sizeof(*held));
    for (size_t i = 0; i < n->count; i++) {
        const struct repo_model *step = spaces_step(r, m, n->names[i]);
        held[i].title = mem_strdup(step->title);
        held[i].config = config_ref(latest_of(step)->config);
    }
    const Inference__ModelEnsembling *en = whole->ensemble_scheduling;
    for (size_t i = 0; i < en->n_step; i++)
        pb_field_set_string(&en->step[i]->model_name,
                            spaces_step(r, m, en->step[i]->model_name)->title);
    pb_field_set_string(&whole->name, m->title);
    return held;
}

static void release_configs(struct held *held)
{
    for (size_t i = 0; held && held[i].title; i++) {
        config_unref(held[i].config);
        mem_free(held[i].title);
    }
    mem_free(held);
}

static const Inference__ModelConfig *find_config(void *owner, const char *model)
{
    const struct held *held = owner;
    for (size_t i = 0; held[i].title; i++)
        if (strcmp(held[i].title, model) == 0)
            return held[i].config->proto;
    return NULL;
}

/* Notes which models the names of the steps mean now. Lock held. */
static void note_spaces(const struct repo *r, struct repo_model *m, Inference__ModelConfig *proto)
{
    const struct dependencies_need *n = &m->dependencies.now;
    for (size_t i = 0; i < n->count; i++) {
        const struct repo_model *step = spaces_step(r, m, n->names[i]);
        n->spaces[i] = step ? step->space : NULL;
    }
    const Inference__ModelEnsembling *en = proto->ensemble_scheduling;
    for (size_t i = 0; i < en->n_step; i++) {
        const struct repo_model *step = spaces_step(r, m, en->step[i]->model_name);
        pb_field_set_string(&en->step[i]->model_namespace, step ? step->space : "");
    }
}

/* Checks the models of the steps. proto: as written, whole: the same with every default. */
static struct err *dependencies_check_states(struct repo *r, struct repo_model *m,
                                             Inference__ModelConfig *proto,
                                             Inference__ModelConfig *whole, struct held **ret)
{
    mutex_lock(&r->lock);
    note_spaces(r, m, proto);
    const struct repo_model *last;
    struct err *e = NULL;
    if (dependencies_circle(r, m, false, &last))
        e = err_new(STATUS_INVALID_ARG,
                    "circular dependency between ensembles: %s -> ... -> %s -> %s", m->title,
                    last->title, m->title);
    if (!e)
        e = check_there(r, m);
    if (!e)
        e = dependencies_check_versions(r, m, whole);
    if (!e)
        *ret = hold_configs(r, m, whole);
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

struct err *dependencies_check(struct repo *r, struct repo_model *m, Inference__ModelConfig *proto)
{
    if (proto->scheduling_choice_case !=
        INFERENCE__MODEL_CONFIG__SCHEDULING_CHOICE_ENSEMBLE_SCHEDULING)
        return NULL;
    Inference__ModelConfig *whole = config_copy_proto(proto);
    config_fill_defaults(whole, m->name);
    struct err *broken = config_check_model(whole, m->name, CONFIG_CHECK_FULL);
    struct held *held = NULL;
    bool decoupled = false;
    struct err *e = NULL;
    if (!broken) /* if it is broken, loading will report that */
        e = dependencies_check_states(r, m, proto, whole, &held);
    if (!broken && !e)
        e = config_steps_check(whole, find_config, held, &decoupled);
    if (!broken && !e)
        set_decoupled(proto, decoupled);
    err_free(broken);
    release_configs(held);
    config_free_proto(whole);
    return e;
}
