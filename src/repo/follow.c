#include "repo/follow.h"

#include "base/log.h"
#include "base/mem.h"
#include "model/config.h"
#include "proto/model_config.pb-c.h"
#include "repo/dependencies.h"
#include "repo/jobs.h"
#include "repo/models.h"
#include "repo/operate.h"
#include "repo/repo_priv.h"
#include "repo/spaces.h"
#include "serve/version.h"

#include <string.h>

/* A job that a parked job waits for has ended. */
static void follow_waited(void *owner, struct err *e)
{
    struct repo_model *m = owner;
    struct repo *r = m->dependencies.repo;
    err_free(e); /* the ensemble's job looks at the model itself when it goes on */
    mutex_lock(&r->lock);
    struct dependencies *d = &m->dependencies;
    if (--d->waits == 0 && d->parked) {
        d->parked = false;
        jobs_resume(r, m);
    }
    mutex_unlock(&r->lock);
}

/* True if a job of a step's model must end before the ensemble goes on; *ret says which job.
 * Lock held. */
static bool must_wait(const struct repo *r, const struct repo_model *step,
                      const struct repo_job *job, enum repo_action *ret)
{
    bool at_work = step && (step->busy || !list_empty(&step->jobs));
    bool by_name = r->settings.mode == REPO_MODE_EXPLICIT;
    *ret = by_name && !(job->first && at_work) ? REPO_LOAD : REPO_SYNC;
    return *ret == REPO_LOAD || at_work;
}

/* The jobs to wait for. */
struct wait_list {
    struct wait {
        const char *space;
        char *name;
        enum repo_action action;
        bool archived; /* it may lie in the archive of the ensemble */
    } * items;
    size_t count;
};

static void add_wait(struct wait_list *l, struct wait w, const char *name)
{
    w.name = mem_strdup(name);
    l->items = mem_realloc(l->items, (l->count + 1) * sizeof(*l->items));
    l->items[l->count++] = w;
}

/* Adds all models with the name: only after they were looked at is it known which of them the
 * ensemble needs. Lock held. */
static void add_waits(struct repo *r, const struct repo_model *m, const char *name,
                      const struct repo_job *job, struct wait_list *l)
{
    struct spaces_list spaces = spaces_of(r, UINT64_MAX);
    bool archived = job->what.archive;
    if (archived)
        add_wait(l, (struct wait){.space = "", .action = REPO_LOAD, .archived = true}, name);
    for (size_t i = 0; i < spaces.count && !(archived && !*spaces.at[i]); i++) {
        struct wait w = {.space = spaces.at[i]};
        const struct repo_model *step = models_find(r, w.space, name);
        if ((step && !spaces_awaits(r, m, step)) || !must_wait(r, step, job, &w.action))
            continue;
        add_wait(l, w, name);
    }
}

/* Queues the job of another model that must end first. Takes the name over. */
static void ask_first(struct repo *r, struct repo_model *m, const struct repo_job *job,
                      struct wait *w)
{
    struct repo_job *other = MEM_NEW(struct repo_job);
    *other = (struct repo_job){.action = w->action,
                               .places = UINT64_MAX,
                               .first = job->first,
                               .if_there = r->settings.namespacing || w->archived,
                               .along = true,
                               .done = follow_waited,
                               .owner = m};
    if (w->archived)
        other->what = (struct repo_load){.archive = job->what.archive, .step = true};
    struct err *e = jobs_ask(r, other, w->space, w->name);
    if (e)
        follow_waited(m, e);
    mem_free(w->name);
}

bool follow_wait(struct repo *r, struct repo_model *m, struct repo_job *job)
{
    struct dependencies *d = &m->dependencies;
    if (job->waited || job->action != REPO_LOAD || !d->now.count)
        return false;
    job->waited = true;
    mutex_lock(&r->lock);
    if (dependencies_circle(r, m, true, NULL)) {
        mutex_unlock(&r->lock);
        return false;
    }
    d->repo = r;
    d->waits = 1;
    struct wait_list l = {0};
    for (size_t i = 0; i < d->now.count; i++)
        add_waits(r, m, d->now.names[i], job, &l);
    d->waits += (unsigned)l.count;
    mutex_unlock(&r->lock);
    for (size_t i = 0; i < l.count; i++)
        ask_first(r, m, job, &l.items[i]);
    mem_free(l.items);
    mutex_lock(&r->lock);
    bool parked = --d->waits > 0 && jobs_park(r, m, job);
    d->parked = parked;
    mutex_unlock(&r->lock);
    return parked;
}

static bool follow_is_ready(const struct repo_version *v)
{
    return v->state == TABLE_READY;
}

uint64_t follow_state(struct repo *r, const struct repo_model *m)
{
    mutex_lock(&r->lock);
    uint64_t state = r->settings.namespacing && m->meant;
    for (size_t i = 0; i < m->version_count; i++)
        if (follow_is_ready(&m->versions[i]))
            state = (state ^ (uint64_t)(uintptr_t)m->versions[i].version) * 0x9e3779b97f4a7c15u;
    mutex_unlock(&r->lock);
    return state;
}

static bool same_spaces(const Inference__ModelEnsembling *a, const Inference__ModelEnsembling *b)
{
    for (size_t i = 0; i < a->n_step && i < b->n_step; i++)
        if (strcmp(a->step[i]->model_namespace, b->step[i]->model_namespace) != 0)
            return false;
    return true;
}

/* True if the serving versions agree with the configuration: whether they are decoupled, and
 * which models they send requests to. Lock held. */
static bool follow_fits(const struct repo_model *m, const Inference__ModelConfig *proto)
{
    for (size_t i = 0; i < m->version_count; i++) {
        if (!follow_is_ready(&m->versions[i]))
            continue;
        const struct model_config *config = m->versions[i].version->config;
        if (config->scheduler != CONFIG_SCHEDULER_ENSEMBLE ||
            config->decoupled != proto->model_transaction_policy->decoupled ||
            !same_spaces(config->proto->ensemble_scheduling, proto->ensemble_scheduling))
            return false;
    }
    return true;
}

struct err *follow_recheck(struct repo *r, struct repo_model *m, struct repo_job *job)
{
    bool forced;
    Inference__ModelConfig *proto = dependencies_config(r, m, &forced);
    if (!proto)
        return NULL;
    struct err *e = dependencies_check(r, m, proto);
    mutex_lock(&r->lock);
    bool serves = false;
    for (size_t i = 0; i < m->version_count; i++)
        serves = serves || follow_is_ready(&m->versions[i]);
    bool again = !e && (!serves || !follow_fits(m, proto) || dependencies_relabelled(r, m));
    mutex_unlock(&r->lock);
    config_free_proto(proto);
    if (e && serves) {
        LOG_ERROR("unloading '%s': %s", m->title, err_message(e));
        err_free(operate_unload(r, m, UINT64_MAX, err_message(e)));
    } else if (again) {
        bool ignored;
        e = operate_load(r, m, job, &ignored);
    }
    return e;
}

/* An operation that ends when other jobs have ended. */
struct end {
    struct repo *repo;
    unsigned left; /* guarded by the repository's lock */
    repo_done_fn *done;
    void *owner;
    struct err *error;
};

static void follow_ended(void *owner, struct err *e)
{
    struct end *end = owner;
    err_free(e);
    mutex_lock(&end->repo->lock);
    bool last = --end->left == 0;
    mutex_unlock(&end->repo->lock);
    if (!last)
        return;
    end->done(end->owner, end->error);
    mem_free(end);
}

/* The jobs that follow, one after the other. */
struct list_of_jobs {
    struct {
        const char *space;
        char *model;
        struct repo_job *job;
    } * items;
    size_t count;
};

static void follow_add(struct list_of_jobs *l, const struct repo_model *m, enum repo_action action,
                       bool up, bool down)
{
    struct repo_job *job = MEM_NEW(struct repo_job);
    *job = (struct repo_job){.action = action, .places = UINT64_MAX, .up = up, .down = down};
    l->items = mem_realloc(l->items, (l->count + 1) * sizeof(*l->items));
    l->items[l->count].space = m->space;
    l->items[l->count].model = mem_strdup(m->name);
    l->items[l->count++].job = job;
}

/* True if a waiting load will look at the models that it needs anyway, so it needs no recheck.
 * That load may also wait for the job that ends now, so this job must not wait for it. */
static bool will_look(const struct repo_model *m)
{
    if (m->dependencies.waits)
        return true;
    LIST_EACH (node, &m->jobs)
        if (LIST_ITEM(node, struct repo_job, node)->action == REPO_LOAD)
            return true;
    return false;
}

/* Adds the ensembles that need the model, or may need it now: a model that comes or goes can
 * change what its name means. Lock held. */
static void add_dependents(struct repo *r, const struct repo_model *m, const struct repo_job *job,
                           struct list_of_jobs *l)
{
    for (size_t i = 0; i < r->model_count; i++) {
        const struct repo_model *other = r->models[i];
        if (!dependencies_needs(other, m->name) || other == m)
            continue;
        if (job->up && dependencies_uses(r, other, m))
            follow_add(l, other, REPO_UNLOAD, true, false);
        else if (!will_look(other))
            follow_add(l, other, REPO_RECHECK, false, false);
    }
}

/* Adds the models that were loaded for an ensemble and that nothing else needs. Lock held. */
static void add_needed(struct repo *r, const struct dependencies_need *need, struct list_of_jobs *l)
{
    for (size_t i = 0; i < need->count; i++) {
        const struct repo_model *step = dependencies_used(r, need, i);
        bool needed = !step || step->dependencies.asked;
        for (size_t k = 0; !needed && k < r->model_count; k++)
            needed = dependencies_uses(r, r->models[k], step);
        if (!needed)
            follow_add(l, step, REPO_UNLOAD, false, true);
    }
}

static void follow_ask_all(struct repo *r, struct list_of_jobs *l, struct end *end)
{
    for (size_t i = 0; i < l->count; i++) {
        struct repo_job *job = l->items[i].job;
        job->done = follow_ended;
        job->owner = end;
        struct err *e = jobs_ask(r, job, l->items[i].space, l->items[i].model);
        if (e)
            follow_ended(end, e);
        mem_free(l->items[i].model);
    }
    mem_free(l->items);
}

/* True if an archive's model cannot serve: what was loaded for it goes with it, since nobody knows
 * of that. Lock held. */
static bool is_abandoned(const struct repo_model *m, const struct repo_job *job,
                         const struct err *e)
{
    return e && job->action == REPO_LOAD && job->what.archive && !job->what.step &&
           !models_serves(m);
}

void follow_end(struct repo *r, struct repo_model *m, struct repo_job *job, uint64_t before,
                struct err *e)
{
    struct list_of_jobs l = {0};
    bool unloaded = job->action == REPO_UNLOAD && !e;
    bool changed = job->action != REPO_SYNC && follow_state(r, m) != before;
    struct dependencies_need needed = {0};
    mutex_lock(&r->lock);
    m->ending = true;
    if (job->action == REPO_LOAD && !job->along)
        m->dependencies.asked = true;
    bool abandoned = is_abandoned(m, job, e);
    if (unloaded || abandoned)
        needed = dependencies_take(m);
    if (changed || (unloaded && job->up))
        add_dependents(r, m, job, &l);
    if ((unloaded && job->down) || abandoned)
        add_needed(r, &needed, &l);
    mutex_unlock(&r->lock);
    dependencies_need_fini(&needed);
    if (!l.count) {
        job->done(job->owner, e);
    } else {
        struct end *end = MEM_NEW(struct end);
        *end = (struct end){.repo = r,
                            .left = (unsigned)l.count,
                            .done = job->done,
                            .owner = job->owner,
                            .error = e};
        follow_ask_all(r, &l, end);
    }
    mem_free(job);
}
