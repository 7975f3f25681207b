#include "serve/begun.h"

#include "base/check.h"
#include "base/log.h"
#include "base/mem.h"
#include "os/loop.h"
#include "plugin/instance.h"
#include "serve/runner.h"
#include "serve/scheduler.h"
#include "serve/submit.h"
#include "serve/version.h"

/* A call of begin or look that takes longer holds up everybody else on the loop. */
#define CALL_NS TIME_MS(1)

/* How long a loop waits for a batch. The thread that takes over then watches who executes it. */
#define PATIENCE_NS TIME_MS(100)

enum begun_rest {
    REST_NONE,    /* no batch, or a loop waits for it */
    REST_EXECUTE, /* it was not begun */
    REST_FINISH,  /* it was */
    REST_OVER,    /* it has ended already */
};

/* The bell as one loop watches it. */
struct watch {
    struct loop_fd bell;
    struct loop *loop;
    struct begun *begun;
    struct watch *next;
    struct mail end; /* tells the loop that the instance goes */
    bool waits;      /* a batch of this loop is under way; the loop's own */
};

/* A loop goes on watching the bell when a batch has ended, until another loop begins one: most are
 * followed by the next of the same connection. */
struct begun {
    struct runner *runner;
    struct watch *watches; /* of loops that began a batch; owned, guarded by version->lock */
    struct watch *watch;   /* the one that is being watched; NULL = none; likewise */
    size_t ending;         /* loops that do not know the end yet; likewise */
    struct mutex_cond ended;
    struct loop_timer patience; /* the loop's that began the batch */
    size_t count;               /* requests of the batch */
    enum begun_rest rest;       /* for the runner's thread; guarded by version->lock */
};

static void on_bell(struct loop_fd *fd, uint32_t events);
static void out_of_patience(struct loop_timer *t);
static void no_more(struct mail *m);

struct begun *begun_new(struct runner *r)
{
    if (r->instance->bell < 0)
        return NULL;
    struct begun *b = MEM_NEW(struct begun);
    *b = (struct begun){.runner = r, .patience = LOOP_TIMER_INIT(out_of_patience)};
    mutex_cond_init(&b->ended);
    return b;
}

static struct watch *watch_of(struct begun *b, struct loop *loop)
{
    struct watch *w = b->watches;
    while (w && w->loop != loop)
        w = w->next;
    if (!w) {
        w = MEM_NEW(struct watch);
        *w = (struct watch){.bell = {.fd = b->runner->instance->bell, .ready = on_bell},
                            .loop = loop,
                            .begun = b,
                            .next = b->watches,
                            .end = {.deliver = no_more}};
        b->watches = w;
    }
    return w;
}

/* Has this loop watch the bell, and no other. Caller holds the lock. False: it cannot. */
static bool watch_here(struct begun *b)
{
    struct watch *w = watch_of(b, loop_current());
    if (b->watch == w)
        return true;
    if (b->watch)
        loop_del_from_elsewhere(b->watch->loop, &b->watch->bell);
    struct err *e = loop_add(w->loop, &w->bell, LOOP_BELL);
    b->watch = e ? NULL : w;
    err_free(e);
    return b->watch;
}

static void no_more(struct mail *m)
{
    struct watch *w = LIST_ITEM(m, struct watch, end);
    struct begun *b = w->begun;
    struct mutex *lock = &b->runner->version->lock;
    mutex_lock(lock);
    if (b->watch == w)
        loop_del(w->loop, &w->bell);
    if (--b->ending == 0)
        mutex_cond_signal(&b->ended);
    mutex_unlock(lock);
}

void begun_free(struct begun *b)
{
    if (!b)
        return;
    struct mutex *lock = &b->runner->version->lock;
    mutex_lock(lock);
    for (struct watch *w = b->watches; w; w = w->next) {
        b->ending++;
        loop_post(w->loop, &w->end, &w->end);
    }
    while (b->ending)
        mutex_cond_wait(&b->ended, lock);
    mutex_unlock(lock);
    while (b->watches) {
        struct watch *next = b->watches->next;
        mem_free(b->watches);
        b->watches = next;
    }
    mutex_cond_fini(&b->ended);
    mem_free(b);
}

/* Begins the batch that was taken, while this loop watches the bell, and looks at it at once: who
 * is woken may be quicker than this thread, on one processor above all, and then there is nothing
 * to wait for. Returns what is left to a thread. */
static enum begun_rest begun_start(struct begun *b)
{
    struct runner *r = b->runner;
    runner_announce(r, b->count);
    log_context(r->batch[0]->id, (uint32_t)b->count);
    bool begun = instance_begin(r->instance, r->batch, &b->count);
    log_context("", 0);
    if (!begun)
        return b->count ? REST_EXECUTE : REST_OVER;
    enum nereid_progress progress = instance_look(r->instance);
    if (progress != NEREID_PENDING)
        return progress == NEREID_ENDED ? REST_OVER : REST_FINISH;
    version_pin(r->version); /* the requests may be gone before the bell is heard */
    b->watch->waits = true;
    loop_timer_set(b->watch->loop, &b->patience, clock_now_ns() + PATIENCE_NS);
    return REST_NONE;
}

static void stop_waiting(struct begun *b)
{
    b->watch->waits = false;
    loop_timer_clear(b->watch->loop, &b->patience);
}

/* Leaves the batch to the runner's thread. Where none can be started, this loop waits for it.
 * Caller holds the lock, which may be released meanwhile. Returns false if it is over. */
static bool hand_over(struct begun *b, enum begun_rest rest)
{
    struct runner *r = b->runner;
    runner_note_slow(r, RUNNER_BLOCKED_NS);
    b->rest = rest;
    r->state = RUNNER_IDLE;
    struct err *e = runner_look(r);
    if (!e)
        return true;
    r->state = RUNNER_CLAIMED;
    LOG_ERROR("model '%s' executes on a network thread: %s", r->version->name, err_message(e));
    err_free(e);
    begun_take_over(r);
    return false;
}

/* Caller holds the lock. */
static void begun_give_back(struct runner *r)
{
    r->state = RUNNER_IDLE;
    if (r->leaving)
        mutex_cond_signal(&r->wake); /* its thread kept waiting while the loop had claimed it */
}

/* Takes the next batch and begins it. Caller holds the lock, which is released meanwhile. Returns
 * false if there is none; then the runner was given back. */
static bool begun_next(struct begun *b, time_ns now)
{
    struct runner *r = b->runner;
    struct serve_version *v = r->version;
    struct scheduler *s = v->scheduler;
    struct submit_turn turn;
    struct runner_measure m;
    enum begun_rest rest = REST_OVER;
    time_ns wake;
    submit_turn_begin(&turn);
    b->count = v->inline_ok && !r->leaving ? s->ops.take(s, r, now, &wake) : 0;
    if (b->count) {
        bool watched = watch_here(b);
        mutex_unlock(&v->lock);
        runner_measure_begin(&m, r, CALL_NS, clock_now_ns());
        rest = watched ? begun_start(b) : REST_EXECUTE;
        runner_measure_end(&m);
        mutex_lock(&v->lock);
        runner_measured(r, &m);
    }
    bool goes_on = rest == REST_NONE || (rest != REST_OVER && hand_over(b, rest));
    if (!goes_on)
        begun_give_back(r); /* before the answers: a next step may be for it */
    mutex_unlock(&v->lock);
    submit_turn_end(&turn);
    mutex_lock(&v->lock);
    if (s->ops.has_dropped(s))
        runner_answer_dropped(v, now);
    return goes_on;
}

void begun_run(struct runner *r, time_ns now)
{
    struct serve_version *v = r->version;
    struct scheduler *s = v->scheduler;
    while (r && begun_next(r->begun, now))
        r = s->ops.depth(s) && v->inline_ok ? runner_claim(v) : NULL;
    if (s->ops.depth(s))
        runner_wake(v, clock_now_ns());
    mutex_unlock(&v->lock);
}

/* The batch that the loop waited for has ended, or a thread has to end it. What was queued
 * meanwhile is for a thread: while there is always more to do, it sleeps less often than the loop
 * would. The caller pins v. */
static void go_on(struct begun *b, bool ended, const struct runner_measure *look)
{
    struct serve_version *v = b->runner->version;
    stop_waiting(b);
    mutex_lock(&v->lock);
    if (look)
        runner_measured(b->runner, look);
    if (ended || !hand_over(b, REST_FINISH)) {
        begun_give_back(b->runner);
        runner_wake(v, clock_now_ns());
    }
    mutex_unlock(&v->lock);
    version_unpin(v); /* that of begun_start */
}

/* A thread that goes on with the queue starts before the answers of this batch are delivered. */
static void on_bell(struct loop_fd *fd, uint32_t events)
{
    (void)events;
    struct watch *w = LIST_ITEM(fd, struct watch, bell);
    struct begun *b = w->begun;
    struct serve_version *v = b->runner->version;
    if (!w->waits)
        return; /* it rang for a batch that has ended */
    struct submit_turn turn;
    struct runner_measure m;
    version_pin(v);
    submit_turn_begin(&turn);
    runner_measure_begin(&m, b->runner, CALL_NS, clock_now_ns());
    enum nereid_progress progress = instance_look(b->runner->instance);
    runner_measure_end(&m);
    if (progress != NEREID_PENDING)
        go_on(b, progress == NEREID_ENDED, &m);
    submit_turn_end(&turn);
    version_unpin(v);
}

static void out_of_patience(struct loop_timer *t)
{
    struct begun *b = LIST_ITEM(t, struct begun, patience);
    struct serve_version *v = b->runner->version;
    version_pin(v);
    go_on(b, false, NULL);
    version_unpin(v);
}

bool begun_take_over(struct runner *r)
{
    struct begun *b = r->begun;
    if (!b || b->rest == REST_NONE)
        return false;
    bool begun = b->rest == REST_FINISH;
    struct submit_turn turn;
    b->rest = REST_NONE;
    mutex_unlock(&r->version->lock);
    submit_turn_begin(&turn);
    if (begun)
        instance_finish(r->instance);
    else
        runner_call(r, b->count);
    submit_turn_end(&turn);
    mutex_lock(&r->version->lock);
    return true;
}
