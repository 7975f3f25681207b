#include "serve/cache_pool.h"

#include "base/log.h"
#include "base/mem.h"
#include "os/mutex.h"
#include "os/thread.h"
#include "serve/runner.h"

struct worker {
    struct cache_pool *pool;
    struct thread *thread; /* NULL = free */
    bool ended;            /* joining it does not block */
};

struct cache_pool {
    struct mutex lock; /* rank THREAD; guards what follows */
    struct mutex_cond changed;
    struct list jobs;
    unsigned waiting; /* jobs in the list */
    unsigned running; /* threads */
    unsigned idle;    /* of them, those that wait for a job */
    bool stopping;
    struct worker workers[CACHE_POOL_THREADS];
};

struct cache_pool *cache_pool_new(void)
{
    struct cache_pool *p = MEM_NEW(struct cache_pool);
    mutex_init(&p->lock, MUTEX_RANK_THREAD);
    mutex_cond_init(&p->changed);
    list_init(&p->jobs);
    return p;
}

/* Waits for a job; NULL when there was none for a while. Lock held. */
static struct cache_pool_job *next(struct cache_pool *p)
{
    time_ns until = clock_now_ns() + RUNNER_RETIRE_NS;
    p->idle++;
    while (list_empty(&p->jobs) && !p->stopping && clock_now_ns() < until)
        mutex_cond_wait_until(&p->changed, &p->lock, until);
    p->idle--;
    struct list *node = list_pop(&p->jobs);
    p->waiting -= node != NULL;
    return node ? LIST_ITEM(node, struct cache_pool_job, node) : NULL;
}

static void work(void *arg)
{
    struct worker *w = arg;
    struct cache_pool *p = w->pool;
    mutex_lock(&p->lock);
    struct cache_pool_job *job;
    while ((job = next(p))) {
        mutex_unlock(&p->lock);
        job->run(job);
        mutex_lock(&p->lock);
    }
    p->running--;
    w->ended = true;
    mutex_unlock(&p->lock);
}

/* Joins threads that have ended: they take no lock any more. Lock held. */
static struct worker *free_worker(struct cache_pool *p)
{
    struct worker *found = NULL;
    for (unsigned i = 0; i < CACHE_POOL_THREADS; i++) {
        struct worker *w = &p->workers[i];
        if (w->thread && w->ended) {
            thread_join(w->thread);
            w->thread = NULL;
        }
        if (!w->thread)
            found = w;
    }
    return found;
}

/* One more thread, if jobs wait for more than there are idle ones. Lock held. */
static void grow(struct cache_pool *p)
{
    if (p->waiting <= p->idle)
        return;
    struct worker *w = free_worker(p);
    if (!w)
        return;
    *w = (struct worker){.pool = p};
    struct err *e = thread_start("cache", work, w, &w->thread);
    if (!e) {
        p->running++;
        return;
    }
    w->thread = NULL;
    LOG_WARN("response cache: %s", err_message(e));
    err_free(e);
}

bool cache_pool_put(struct cache_pool *p, struct cache_pool_job *job)
{
    mutex_lock(&p->lock);
    list_append(&p->jobs, &job->node);
    p->waiting++;
    grow(p);
    bool taken = p->running > 0;
    if (!taken) {
        list_remove(&job->node);
        p->waiting--;
    } else if (p->idle) {
        mutex_cond_signal(&p->changed);
    }
    mutex_unlock(&p->lock);
    return taken;
}

void cache_pool_free(struct cache_pool *p)
{
    if (!p)
        return;
    mutex_lock(&p->lock);
    p->stopping = true;
    mutex_cond_broadcast(&p->changed);
    mutex_unlock(&p->lock);
    for (unsigned i = 0; i < CACHE_POOL_THREADS; i++)
        thread_join(p->workers[i].thread);
    mutex_cond_fini(&p->changed);
    mutex_fini(&p->lock);
    mem_free(p);
}
