#include "repo/jobs.h"

#include "base/mem.h"
#include "os/dl_pages.h"
#include "repo/follow.h"
#include "repo/models.h"
#include "repo/operate.h"
#include "repo/repo_priv.h"
#include "repo/watch.h"

static _Thread_local struct repo_model *at_work; /* the model that this loader works on */

static struct err *stopping(void)
{
    return err_new(STATUS_UNAVAILABLE, "Server exiting");
}

/* Runs a job. Returns false if it was put back; the caller must then not use the job or the
 * model. */
static bool jobs_run(struct repo *r, struct repo_model *m, struct repo_job *job)
{
    uint64_t before = follow_state(r, m);
    struct err *e = NULL;
    bool parked = false;
    switch (job->action) {
    case REPO_LOAD:
        e = operate_load(r, m, job, &parked);
        break;
    case REPO_UNLOAD:
        e = operate_unload(r, m, job->places, NULL);
        break;
    case REPO_RECHECK:
        e = follow_recheck(r, m, job);
        break;
    case REPO_SYNC:
        break;
    }
    if (!parked)
        follow_end(r, m, job, before, e);
    return !parked;
}

/* Waits for a model with work. Returns NULL if there was none for a while, or the repository
 * stops. Lock held. */
static struct repo_model *next_model(struct repo *r)
{
    time_ns until = clock_now_ns() + REPO_IDLE_NS;
    r->idle++;
    while ((r->held || list_empty(&r->ready)) && !r->stopping && clock_now_ns() < until)
        mutex_cond_wait_until(&r->changed, &r->lock, until);
    r->idle--;
    struct list *node = r->held ? NULL : list_pop(&r->ready);
    return node ? LIST_ITEM(node, struct repo_model, node) : NULL;
}

static void loader_main(void *arg)
{
    struct thread_seat *seat = arg;
    struct repo *r = seat->owner;
    mutex_lock(&r->lock);
    struct repo_model *m;
    while ((m = next_model(r))) {
        struct repo_job *job = LIST_ITEM(list_pop(&m->jobs), struct repo_job, node);
        r->waiting--;
        m->busy = true;
        m->doing = job->action;
        bool asked = !job->first;
        r->operations += asked;
        mutex_unlock(&r->lock);
        at_work = m;
        bool over = jobs_run(r, m, job);
        at_work = NULL;
        mutex_lock(&r->lock);
        r->operations -= asked;
        if (over) {
            r->ended++;
            m->busy = m->ending = false;
            if (!list_empty(&m->jobs))
                list_append(&r->ready, &m->node);
            models_let_go(r, m);
        }
    }
    r->loader_count--;
    bool last = !r->loader_count && !r->stopping;
    mutex_unlock(&r->lock);
    if (last)
        dl_pages_forget();
    mutex_lock(&r->lock);
    seat->ended = true;
    mutex_unlock(&r->lock);
}

/* The most loaders that may run now. Lock held. */
static unsigned most_loaders(const struct repo *r)
{
    return r->settings.load_threads + (r->lent < REPO_MAX_LENT ? r->lent : REPO_MAX_LENT);
}

/* Starts one more loader if there is more work than idle loaders. Lock held. */
static struct err *add_loader(struct repo *r)
{
    unsigned ready = 0;
    for (const struct list *node = r->ready.next; node != &r->ready && ready <= r->idle;
         node = node->next)
        ready++;
    if (ready <= r->idle || r->loader_count >= most_loaders(r))
        return NULL;
    struct thread_seat *seat = thread_seat_free(r->loaders, REPO_MAX_LOADERS);
    struct err *e = seat ? thread_seat_start(seat, r, "loader", loader_main) : NULL;
    r->loader_count += seat && !e;
    return e;
}

struct err *jobs_ask(struct repo *r, struct repo_job *job, const char *space, const char *model)
{
    mutex_lock(&r->lock);
    struct err *e = r->stopping ? stopping() : NULL;
    if (!e && r->waiting >= REPO_MAX_WAITING)
        e = err_busy("%zu loads and unloads wait already", r->waiting);
    if (e) {
        mutex_unlock(&r->lock);
        mem_free(job);
        return e;
    }
    struct repo_model *m = models_of(r, space, model);
    watch_growth(r);
    bool first = list_empty(&m->jobs) && !m->busy;
    list_append(&m->jobs, &job->node);
    r->waiting++;
    if (first)
        list_append(&r->ready, &m->node);
    e = add_loader(r);
    if (e && r->loader_count) {
        err_free(e); /* the running loaders will do the work */
        e = NULL;
    }
    if (e) {
        list_remove(&job->node);
        list_remove(&m->node);
        r->waiting--;
        mem_free(job);
        models_prune(r);
    }
    if (!r->held)
        mutex_cond_broadcast(&r->changed);
    mutex_unlock(&r->lock);
    return e;
}

void jobs_hold(struct repo *r, bool hold)
{
    mutex_lock(&r->lock);
    r->held = hold;
    if (!hold)
        err_free(add_loader(r));
    mutex_cond_broadcast(&r->changed);
    mutex_unlock(&r->lock);
}

bool jobs_park(struct repo *r, struct repo_model *m, struct repo_job *job)
{
    if (r->stopping)
        return false;
    list_insert_before(m->jobs.next, &job->node);
    r->waiting++;
    m->busy = false;
    return true;
}

bool jobs_put_back(struct repo *r, struct repo_model *m, struct repo_job *job)
{
    mutex_lock(&r->lock);
    bool others = !list_empty(&r->ready) && job->put_back != r->ended + 1;
    job->put_back = r->ended + 1;
    bool done = others && jobs_park(r, m, job);
    if (done)
        list_append(&r->ready, &m->node);
    mutex_unlock(&r->lock);
    return done;
}

void jobs_resume(struct repo *r, struct repo_model *m)
{
    if (list_empty(&m->jobs))
        return; /* the job was refused meanwhile */
    list_append(&r->ready, &m->node);
    err_free(add_loader(r));
    mutex_cond_broadcast(&r->changed);
}

/* Counts a loader that waits. Lock held. */
static void jobs_count_lent(struct repo *r)
{
    r->lent++;
    if (!r->stopping)
        err_free(add_loader(r));
}

void jobs_lend(struct repo *r, bool waits)
{
    if (!at_work)
        return;
    mutex_lock(&r->lock);
    if (waits)
        jobs_count_lent(r);
    else
        r->lent--;
    mutex_unlock(&r->lock);
}

/* Refuses to wait for a load that would wait for this one. Lock held. */
static struct err *refuse_circle(const struct repo *r, const char *model)
{
    if (!model || !dependencies_circle(r, at_work, true, NULL))
        return NULL;
    return err_new(STATUS_INVALID_ARG,
                   "model '%s' cannot be loaded by its backend while '%s' is loaded: that load "
                   "would wait for this one, and neither would end",
                   model, at_work->title);
}

/* Refuses to let the last running loader wait: nobody would be left to do the work that all of
 * them wait for. Lock held. */
static struct err *refuse_last(const struct repo *r)
{
    unsigned most = r->settings.load_threads + REPO_MAX_LENT;
    if (r->lent + 1 < most)
        return NULL;
    return err_new(STATUS_UNAVAILABLE,
                   "'%s' cannot wait for another model while it is loaded: %u loads of backends "
                   "that load other models wait already; expected at most %u at the same time, "
                   "load fewer, or raise --model-load-thread-count",
                   at_work->title, r->lent, most - 1);
}

struct err *jobs_wait_begin(struct repo *r, const char *model)
{
    if (!at_work)
        return NULL;
    mutex_lock(&r->lock);
    at_work->awaits = model;
    struct err *e = refuse_circle(r, model);
    if (!e)
        e = refuse_last(r);
    if (e)
        at_work->awaits = NULL;
    else
        jobs_count_lent(r);
    mutex_unlock(&r->lock);
    return e;
}

void jobs_wait_end(struct repo *r)
{
    if (!at_work)
        return;
    mutex_lock(&r->lock);
    at_work->awaits = NULL;
    r->lent--;
    mutex_unlock(&r->lock);
}

void jobs_refuse(struct repo *r)
{
    struct list refused;
    list_init(&refused);
    mutex_lock(&r->lock);
    r->stopping = true;
    for (size_t i = 0; i < r->model_count; i++) {
        list_splice(&refused, &r->models[i]->jobs);
        list_remove(&r->models[i]->node);
    }
    r->waiting = 0;
    models_prune(r);
    mutex_cond_broadcast(&r->changed);
    mutex_unlock(&r->lock);
    struct list *node;
    while ((node = list_pop(&refused))) {
        struct repo_job *job = LIST_ITEM(node, struct repo_job, node);
        operate_forget(job->attempt);
        job->done(job->owner, stopping());
        mem_free(job);
    }
}

void jobs_join(struct repo *r)
{
    thread_seat_join(r->loaders, REPO_MAX_LOADERS);
}
