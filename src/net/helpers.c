#include "net/helpers.h"

#include "base/err.h"
#include "base/mem.h"
#include "os/loop.h"
#include "os/mutex.h"
#include "os/thread.h"

#define IDLE TIME_S(10)

struct helpers {
    struct mutex lock; /* rank THREAD; guards everything below */
    struct mutex_cond work;
    struct list fresh;  /* jobs that are still short, oldest turn first */
    struct list longer; /* long jobs; those that a thread has begun are first */
    bool turn;          /* the next job is a long one, if there is one */
    unsigned waiting;   /* number of jobs in both lists */
    unsigned most;
    unsigned running; /* threads that will look for jobs again */
    unsigned idle;    /* threads that wait */
    bool stopping;
    struct member *members;
};

/* A thread. It is joined when the next one starts, or at the end. */
struct member {
    struct member *next;
    struct helpers *helpers;
    struct thread *thread;
    bool ended;
};

struct helpers *helpers_new(unsigned loops)
{
    struct helpers *h = MEM_NEW(struct helpers);
    mutex_init(&h->lock, MUTEX_RANK_THREAD);
    mutex_cond_init(&h->work);
    list_init(&h->fresh);
    list_init(&h->longer);
    h->most = (loops + 1) / 2;
    return h;
}

static bool is_cancelled(struct helpers_job *j)
{
    return atomic_load_explicit(&j->cancelled, memory_order_relaxed);
}

static void finished(struct mail *m)
{
    struct helpers_job *j = (struct helpers_job *)m;
    j->finish(j);
}

static void helpers_post(struct helpers_job *j)
{
    j->mail.deliver = finished;
    loop_post(j->loop, &j->mail, &j->mail);
}

static struct list *helpers_take(struct helpers *h)
{
    struct list *first = h->turn ? &h->longer : &h->fresh;
    struct list *second = h->turn ? &h->fresh : &h->longer;
    h->turn = !h->turn;
    struct list *node = list_pop(first);
    return node ? node : list_pop(second);
}

/* The next job; NULL if there was none for a long time. The lock is held. */
static struct helpers_job *next_job(struct helpers *h)
{
    time_ns until = clock_now_ns() + IDLE;
    bool in_time = true;
    while (!h->waiting && !h->stopping && in_time) {
        h->idle++;
        in_time = mutex_cond_wait_until(&h->work, &h->lock, until);
        h->idle--;
    }
    struct list *node = helpers_take(h);
    h->waiting -= node != NULL;
    return node ? LIST_ITEM(node, struct helpers_job, node) : NULL;
}

static void enqueue(struct helpers *h, struct helpers_job *j)
{
    if (j->slices < HELPERS_SHORT_SLICES)
        list_append(&h->fresh, &j->node);
    else if (j->slices == HELPERS_SHORT_SLICES)
        list_append(&h->longer, &j->node);
    else
        list_insert_before(h->longer.next, &j->node);
    h->waiting++;
}

static void member_main(void *arg)
{
    struct member *m = arg;
    struct helpers *h = m->helpers;
    thread_background();
    mutex_lock(&h->lock);
    struct helpers_job *j;
    while ((j = next_job(h))) {
        bool cancelled = h->stopping || is_cancelled(j);
        mutex_unlock(&h->lock);
        bool over = cancelled || j->step(j);
        if (over)
            helpers_post(j);
        mutex_lock(&h->lock);
        if (!over) {
            j->slices++;
            enqueue(h, j);
        }
    }
    h->running--;
    m->ended = true;
    mutex_unlock(&h->lock);
}

/* Joins threads that have ended, or all at the end. The lock is held, but released while
 * joining. */
static void reap(struct helpers *h, bool all)
{
    struct member **link = &h->members;
    while (*link) {
        struct member *m = *link;
        if (!all && !m->ended) {
            link = &m->next;
            continue;
        }
        *link = m->next;
        mutex_unlock(&h->lock);
        thread_join(m->thread);
        mem_free(m);
        mutex_lock(&h->lock);
        link = &h->members;
    }
}

/* Starts one more thread if the system has one. */
static void start_member(struct helpers *h)
{
    struct member *m = MEM_NEW(struct member);
    m->helpers = h;
    struct err *e = thread_start("helper", member_main, m, &m->thread);
    if (e) {
        err_free(e);
        mem_free(m);
        return;
    }
    m->next = h->members;
    h->members = m;
    h->running++;
}

void helpers_submit(struct helpers *h, struct helpers_job *j)
{
    list_init(&j->node);
    j->slices = 0;
    mutex_lock(&h->lock);
    if (h->waiting >= h->idle && h->running < h->most) {
        reap(h, false);
        start_member(h);
    }
    bool taken = h->running > 0;
    if (taken) {
        enqueue(h, j);
        mutex_cond_signal(&h->work);
    }
    mutex_unlock(&h->lock);
    if (taken)
        return;
    while (!j->step(j))
        ;
    helpers_post(j);
}

void helpers_cancel(struct helpers_job *j)
{
    atomic_store_explicit(&j->cancelled, true, memory_order_relaxed);
}

void helpers_free(struct helpers *h)
{
    if (!h)
        return;
    mutex_lock(&h->lock);
    h->stopping = true;
    mutex_cond_broadcast(&h->work);
    reap(h, true);
    mutex_unlock(&h->lock);
    mutex_cond_fini(&h->work);
    mutex_fini(&h->lock);
    mem_free(h);
}
