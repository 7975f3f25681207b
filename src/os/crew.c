#include "os/crew.h"

#include "base/log.h"
#include "base/mem.h"
#include "os/mutex.h"
#include "os/thread_seat.h"

struct crew {
    const struct crew_kind *kind;
    void *owner;
    struct mutex lock; /* rank THREAD; guards what follows */
    struct list jobs;
    struct list idle; /* threads that wait for a job, the last one that worked first */
    unsigned running; /* threads */
    bool stopping;
    struct thread_seat seats[CREW_MOST_THREADS];
};

/* A thread that waits for a job. Out of the list once it was called. */
struct crew_idle {
    struct list node;
    struct mutex_cond called;
};

struct crew *crew_new(const struct crew_kind *kind, void *owner)
{
    struct crew *c = MEM_NEW(struct crew);
    c->kind = kind;
    c->owner = owner;
    mutex_init(&c->lock, MUTEX_RANK_THREAD);
    list_init(&c->jobs);
    list_init(&c->idle);
    return c;
}

static void *crew_begin(const struct crew *c)
{
    return c->kind->begin ? c->kind->begin(c->owner) : NULL;
}

static void crew_end(const struct crew *c, void *own)
{
    if (c->kind->end)
        c->kind->end(c->owner, own);
}

/* Waits for a job; NULL if there was none for some time. Lock held. */
static struct crew_job *next(struct crew *c)
{
    struct crew_idle idle;
    time_ns until = clock_now_ns() + c->kind->idle;
    list_init(&idle.node);
    mutex_cond_init(&idle.called);
    while (list_empty(&c->jobs) && !c->stopping && clock_now_ns() < until) {
        if (list_empty(&idle.node)) /* also when another thread took what it was called for */
            list_insert_before(c->idle.next, &idle.node);
        mutex_cond_wait_until(&idle.called, &c->lock, until);
    }
    list_remove(&idle.node);
    mutex_cond_fini(&idle.called);
    struct list *node = list_pop(&c->jobs);
    return node ? LIST_ITEM(node, struct crew_job, node) : NULL;
}

/* Calls the idle thread that worked last, so that those which only a burst needed end in time.
 * Lock held. returns  false if none is idle */
static bool crew_call(struct crew *c)
{
    struct list *node = list_pop(&c->idle);
    if (node)
        mutex_cond_signal(&LIST_ITEM(node, struct crew_idle, node)->called);
    return node;
}

static void crew_work(void *arg)
{
    struct thread_seat *seat = arg;
    struct crew *c = seat->owner;
    void *own = crew_begin(c);
    mutex_lock(&c->lock);
    struct crew_job *job;
    while ((job = next(c))) {
        mutex_unlock(&c->lock);
        job->run(job, own);
        mutex_lock(&c->lock);
    }
    c->running--;
    seat->ended = true;
    mutex_unlock(&c->lock);
    crew_end(c, own);
}

/* Starts a thread if there is room for one. While the crew is freed no thread is started: the
 * existing ones do the rest. Lock held. */
static struct err *crew_grow(struct crew *c)
{
    struct thread_seat *seat = NULL;
    if (!c->stopping)
        seat = thread_seat_free(c->seats, c->kind->most);
    struct err *e = seat ? thread_seat_start(seat, c, c->kind->name, crew_work) : NULL;
    c->running += seat && !e;
    return e;
}

bool crew_add(struct crew *c, struct crew_job *job)
{
    mutex_lock(&c->lock);
    list_append(&c->jobs, &job->node);
    struct err *e = crew_call(c) ? NULL : crew_grow(c);
    bool taken = c->running > 0;
    if (!taken)
        list_remove(&job->node);
    mutex_unlock(&c->lock);
    if (e)
        LOG_WARN("there is no further thread '%s': %s", c->kind->name, err_message(e));
    err_free(e);
    return taken;
}

void crew_do(struct crew *c, struct crew_job *job)
{
    if (crew_add(c, job))
        return;
    void *own = crew_begin(c);
    job->run(job, own);
    crew_end(c, own);
}

void crew_free(struct crew *c)
{
    if (!c)
        return;
    mutex_lock(&c->lock);
    c->stopping = true;
    while (crew_call(c))
        ;
    mutex_unlock(&c->lock);
    thread_seat_join(c->seats, c->kind->most);
    mutex_fini(&c->lock);
    mem_free(c);
}
