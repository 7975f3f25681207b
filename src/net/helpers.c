#include "net/helpers.h"

#include "base/mem.h"
#include "os/crew.h"
#include "os/loop.h"
#include "os/mutex.h"
#include "os/thread.h"

#define IDLE TIME_S(10)

/* Works through the jobs on a thread of the crew, until there is none. */
struct member {
    struct crew_job work;
    struct list node; /* while it rests */
    struct helpers *helpers;
};

struct helpers {
    struct crew_kind kind;
    struct crew *crew;
    struct mutex lock;   /* rank THREAD; guards everything below */
    struct list fresh;   /* jobs that are still short, oldest turn first */
    struct list longer;  /* long jobs; those that a thread has begun are first */
    struct list resting; /* members that do not work */
    bool turn;           /* the next job is a long one, if there is one */
    bool stopping;
    struct member members[]; /* as many as the crew may have threads, at least one */
};

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

/* The next job; NULL if there is none. The lock is held. */
static struct helpers_job *next_job(struct helpers *h)
{
    struct list *first = h->turn ? &h->longer : &h->fresh;
    struct list *second = h->turn ? &h->fresh : &h->longer;
    h->turn = !h->turn;
    struct list *node = list_pop(first);
    if (!node)
        node = list_pop(second);
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
}

static void member_work(struct crew_job *work, void *unused)
{
    (void)unused;
    struct member *m = LIST_ITEM(work, struct member, work);
    struct helpers *h = m->helpers;
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
    list_append(&h->resting, &m->node);
    mutex_unlock(&h->lock);
}

static void *helpers_begin(void *owner)
{
    thread_background();
    return owner;
}

struct helpers *helpers_new(unsigned loops)
{
    unsigned most = (loops + 1) / 2 < CREW_MOST_THREADS ? (loops + 1) / 2 : CREW_MOST_THREADS;
    unsigned members = most ? most : 1; /* without threads they work where a job is submitted */
    struct helpers *h = mem_zalloc(sizeof(*h) + members * sizeof(h->members[0]));
    h->kind =
        (struct crew_kind){.name = "helper", .most = most, .idle = IDLE, .begin = helpers_begin};
    h->crew = crew_new(&h->kind, h);
    mutex_init(&h->lock, MUTEX_RANK_THREAD);
    list_init(&h->fresh);
    list_init(&h->longer);
    list_init(&h->resting);
    for (unsigned i = 0; i < members; i++) {
        h->members[i] = (struct member){.work.run = member_work, .helpers = h};
        list_append(&h->resting, &h->members[i].node);
    }
    return h;
}

void helpers_submit(struct helpers *h, struct helpers_job *j)
{
    list_init(&j->node);
    j->slices = 0;
    mutex_lock(&h->lock);
    enqueue(h, j);
    struct list *node = list_pop(&h->resting);
    mutex_unlock(&h->lock);
    if (!node)
        return; /* all members work, and take it when its turn comes */
    struct member *m = LIST_ITEM(node, struct member, node);
    if (!crew_add(h->crew, &m->work))
        member_work(&m->work, NULL);
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
    mutex_unlock(&h->lock);
    crew_free(h->crew);
    mutex_fini(&h->lock);
    mem_free(h);
}
