#include "cloud/crew.h"

#include "base/log.h"
#include "base/mem.h"
#include "cloud/cloud_abi.h"
#include "os/mutex.h"
#include "os/thread.h"

/* A thread without work ends after this, and its connections with it. */
#define IDLE_NS TIME_S(20)

struct member {
    struct crew *crew;
    struct thread *thread; /* NULL = free */
    bool ended;            /* joining it does not block */
};

struct crew {
    const struct cloud_abi *abi;
    unsigned max;
    struct mutex lock; /* rank LEAF; guards what follows */
    struct mutex_cond changed;
    struct list jobs;
    struct member members[CREW_MAX_THREADS];
    unsigned waiting; /* members without work */
    unsigned queued;
    bool stopping;
};

struct crew *crew_new(const struct cloud_abi *abi, unsigned threads)
{
    struct crew *c = MEM_NEW(struct crew);
    c->abi = abi;
    c->max = threads < CREW_MAX_THREADS ? threads : CREW_MAX_THREADS;
    mutex_init(&c->lock, MUTEX_RANK_LEAF);
    mutex_cond_init(&c->changed);
    list_init(&c->jobs);
    return c;
}

/* The next job, NULL when the thread shall end. Lock held. */
static struct crew_job *take(struct crew *c)
{
    time_ns until = clock_now_ns() + IDLE_NS;
    while (list_empty(&c->jobs)) {
        if (c->stopping || clock_now_ns() >= until)
            return NULL;
        c->waiting++;
        mutex_cond_wait_until(&c->changed, &c->lock, until);
        c->waiting--;
    }
    c->queued--;
    return LIST_ITEM(list_pop(&c->jobs), struct crew_job, node);
}

static void member_main(void *arg)
{
    struct member *m = arg;
    struct crew *c = m->crew;
    void *session = c->abi->session_new();
    mutex_lock(&c->lock);
    struct crew_job *job;
    while ((job = take(c))) {
        mutex_unlock(&c->lock);
        job->run(job, session);
        mutex_lock(&c->lock);
    }
    m->ended = true;
    mutex_unlock(&c->lock);
    c->abi->session_free(session);
}

/* A thread for work that nobody waits for. Lock held. */
static bool start_one(struct crew *c)
{
    for (unsigned i = 0; i < c->max; i++) {
        struct member *m = &c->members[i];
        if (m->ended) { /* it closes its connections and takes no lock any more */
            thread_join(m->thread);
            m->thread = NULL;
            m->ended = false;
        }
        if (m->thread)
            continue;
        m->crew = c;
        struct err *e = thread_start("store", member_main, m, &m->thread);
        if (!e)
            return true;
        m->thread = NULL;
        LOG_WARN("a store is read with fewer threads: %s", err_message(e));
        err_free(e);
        return false;
    }
    return false;
}

static unsigned alive(const struct crew *c)
{
    unsigned n = 0;
    for (unsigned i = 0; i < c->max; i++)
        n += c->members[i].thread && !c->members[i].ended;
    return n;
}

void crew_add(struct crew *c, struct crew_job *job)
{
    mutex_lock(&c->lock);
    list_append(&c->jobs, &job->node);
    c->queued++;
    bool served = c->waiting >= c->queued || start_one(c) || alive(c);
    if (!served) { /* no thread at all: it is done here */
        list_remove(&job->node);
        c->queued--;
    }
    mutex_cond_signal(&c->changed);
    mutex_unlock(&c->lock);
    if (served)
        return;
    void *session = c->abi->session_new();
    job->run(job, session);
    c->abi->session_free(session);
}

void crew_free(struct crew *c)
{
    if (!c)
        return;
    mutex_lock(&c->lock);
    c->stopping = true;
    mutex_cond_broadcast(&c->changed);
    mutex_unlock(&c->lock);
    for (unsigned i = 0; i < c->max; i++)
        thread_join(c->members[i].thread);
    mutex_cond_fini(&c->changed);
    mutex_fini(&c->lock);
    mem_free(c);
}
