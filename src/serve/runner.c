#include "serve/runner.h"

#include "base/check.h"
#include "base/list.h"
#include "base/log.h"
#include "base/mem.h"
#include "infer/request.h"
#include "infer/response.h"
#include "infer/trace.h"
#include "model/config.h"
#include "os/loop.h"
#include "plugin/backend.h"
#include "plugin/instance.h"
#include "plugin/model.h"
#include "serve/begun.h"
#include "serve/reject.h"
#include "serve/scheduler.h"
#include "serve/submit.h"
#include "serve/version.h"

#include <inttypes.h>
#include <stdio.h>

/* The longest that a loop runs requests of others, and that answers wait for further runs. */
#define TURN_NS TIME_US(50)
/* The most inline runs that are measured after a long one. */
#define WATCH_MOST 100000u

struct runner *runner_new(struct serve_version *v, struct plugin_instance *instance)
{
    struct runner *r = MEM_NEW(struct runner);
    r->version = v;
    r->instance = instance;
    r->retire_after = RUNNER_RETIRE_NS;
    r->room = v->scheduler->room;
    r->batch = mem_alloc(r->room * sizeof(*r->batch));
    if (v->scheduler->takes_ahead && instance->model->backend->answers_last)
        r->ahead = mem_alloc(r->room * sizeof(*r->ahead));
    r->begun = begun_new(r);
    mutex_cond_init(&r->wake);
    return r;
}

void runner_join(struct runner *r)
{
    struct serve_version *v = r->version;
    mutex_assert_held(&v->lock);
    if (v->scheduler->ops.join)
        v->scheduler->ops.join(v->scheduler, r);
}

/* Ends the wait of r's thread, whatever it waits for. Caller holds the lock. */
static void runner_look_again(struct runner *r)
{
    struct scheduler *s = r->version->scheduler;
    mutex_cond_signal(&r->wake);
    if (s->ops.nudge)
        s->ops.nudge(s, r);
}

void runner_leave(struct runner *r)
{
    mutex_assert_held(&r->version->lock);
    struct scheduler *s = r->version->scheduler;
    r->leaving = true;
    if (s->ops.leave)
        s->ops.leave(s, r);
    runner_look_again(r);
}

bool runner_is_idle(const struct runner *r)
{
    mutex_assert_held(&r->version->lock);
    const struct scheduler *s = r->version->scheduler;
    return r->state == RUNNER_IDLE && !(r->leaving && r->has_thread) &&
           !(s->ops.busy && s->ops.busy(s, r));
}

void runner_halt(struct runner *r)
{
    mutex_lock(&r->version->lock);
    runner_look_again(r);
    mutex_unlock(&r->version->lock);
    thread_join(r->thread);
    r->thread = NULL;
}

void runner_free(struct runner *r)
{
    if (!r)
        return;
    struct scheduler *s = r->version->scheduler;
    runner_halt(r);
    if (s->ops.drop)
        s->ops.drop(s, r);
    begun_free(r->begun);
    instance_free(r->instance);
    mutex_cond_fini(&r->wake);
    mem_free(r->batch);
    mem_free(r->ahead);
    mem_free(r);
}

static void tell_batch(const struct runner *r, size_t count)
{
    uint32_t rows = 0;
    for (size_t i = 0; i < count; i++)
        rows += r->batch[i]->batch_size;
    LOG_VERBOSE(1, "model '%s' instance %s executes %zu requests, a batch of %" PRIu32,
                r->version->name, r->instance->name, count, rows);
}

void runner_announce(struct runner *r, size_t count)
{
    struct scheduler *s = r->version->scheduler;
    if (s->ops.report)
        s->ops.report(s);
    if (log_verbose_enabled(1))
        tell_batch(r, count);
    for (size_t i = 0; i < count; i++)
        if (r->batch[i]->trace)
            trace_inputs(r->batch[i], TRITONSERVER_TRACE_TENSOR_BACKEND_INPUT);
}

void runner_call(struct runner *r, size_t count)
{
    log_context(r->batch[0]->id, (uint32_t)count);
    struct err *e = instance_execute(r->instance, r->batch, count);
    log_context("", 0);
    for (size_t i = 0; e && i < count; i++)
        if (r->batch[i]) /* the backend did not release it in spite of its error */
            reject_request(r->batch[i], STATS_BACKEND, err_copy(e));
    err_free(e);
}

void runner_execute(struct runner *r, size_t count)
{
    runner_announce(r, count);
    runner_call(r, count);
}

void runner_answer_dropped(struct serve_version *v, time_ns now)
{
    struct list dropped;
    list_init(&dropped);
    v->scheduler->ops.expire(v->scheduler, now, &dropped);
    mutex_unlock(&v->lock);
    reject_dropped(&dropped);
    mutex_lock(&v->lock);
}

size_t runner_take(struct runner *r, time_ns now, time_ns *ret_wake)
{
    struct scheduler *s = r->version->scheduler;
    for (;;) {
        size_t count = s->ops.take(s, r, now, ret_wake);
        if (!s->ops.has_dropped(s))
            return count;
        runner_answer_dropped(r->version, now);
        if (count)
            return count;
        /* Requests that arrived while the lock was released found this runner busy and woke
         * nobody, so look again. */
        now = clock_now_ns();
    }
}

/* True if answers of r may wait for its next batch, so that fewer messages wake the loops. Nobody
 * knows how long that batch takes: only if the backend promised that it is quick, as for inline
 * runs, and kept this many times in a row. One that rings a bell promised nothing of Execute. */
static bool answers_may_wait(const struct runner *r)
{
    mutex_assert_held(&r->version->lock);
    return r->instance->inline_ok && r->instance->bell < 0 && r->quick_runs > RUNNER_QUICK_RUNS &&
           !r->leaving;
}

/* True if the run may be long however quick the model is, as for inline runs. */
static bool has_much_input(const struct runner *r, size_t count)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < count; i++)
        bytes += request_input_bytes(r->batch[i]);
    return bytes > RUNNER_INLINE_BYTES;
}

/* What a turn takes before the answers of the batch that it executes go out. */
struct runner_ahead {
    struct runner *runner;
    size_t count;  /* requests in runner->ahead */
    time_ns begun; /* when the execution began */
};

static void runner_swap_batches(struct runner *r)
{
    struct request **batch = r->batch;
    r->batch = r->ahead;
    r->ahead = batch;
}

/* The last answer of a batch is there, and the backend is about to return. Who gets it asks again
 * at once, and would join the next batch or not as chance has it: batches would be of very
 * different sizes, and the unlucky ones would wait for two large ones. Where a run is short that
 * costs them little, and a batch that more can join costs less. */
static void runner_take_ahead(void *owner, time_ns now)
{
    struct runner_ahead *a = owner;
    struct runner *r = a->runner;
    struct scheduler *s = r->version->scheduler;
    time_ns wake;
    if (now - a->begun < RUNNER_AHEAD_NS)
        return;
    mutex_lock(&r->version->lock);
    runner_swap_batches(r);
    a->count = r->leaving ? 0 : s->ops.take(s, r, now, &wake);
    runner_swap_batches(r);
    mutex_unlock(&r->version->lock);
}

/* The batch that was taken ahead is the next one. Returns its requests. */
static size_t runner_go_ahead(struct runner_ahead *a, time_ns now)
{
    struct runner *r = a->runner;
    size_t count = a->count;
    a->count = 0;
    runner_swap_batches(r);
    if (r->version->scheduler->ops.has_dropped(r->version->scheduler))
        runner_answer_dropped(r->version, now);
    return count;
}

/* The next batch of the same turn: the one taken ahead, or one of a quick model. */
static size_t runner_go_on(struct runner_ahead *a, time_ns begun, time_ns now, time_ns *ret_wake)
{
    struct runner *r = a->runner;
    if (a->count)
        return runner_go_ahead(a, now);
    return answers_may_wait(r) && now - begun < TURN_NS ? runner_take(r, now, ret_wake) : 0;
}

static void runner_expect_answers(struct response_batch *answers, size_t count,
                                  struct runner_ahead *a, time_ns now)
{
    const struct runner *r = a->runner;
    response_batch_expect(answers, count, r->answers_apart);
    a->begun = now;
    answers->owner = a;
    if (r->ahead)
        answers->before_last = runner_take_ahead;
}

/* Runs a batch, or several for at most TURN_NS, and delivers their answers together, as one
 * message per loop instead of one per answer. Answers do not wait for a batch with much input, nor
 * for others that the backend computes one by one. A decoupled model sends each answer at once.
 * Batches that are taken ahead belong to the same turn. */
bool runner_turn(struct scheduler *s, struct runner *r, time_ns *ret_wake)
{
    struct serve_version *v = s->version;
    struct runner_ahead ahead = {.runner = r};
    bool together = !v->config->decoupled;
    bool expects = false;
    struct submit_turn turn;
    time_ns begun = clock_now_ns();
    time_ns now = begun;
    size_t count = runner_take(r, now, ret_wake);
    if (!count)
        return false;
    if (together)
        submit_turn_begin(&turn);
    do {
        runner_wake(v, now);
        bool expected = expects;
        expects = together && !answers_may_wait(r);
        mutex_unlock(&v->lock);
        if (now != begun && (expects || expected || has_much_input(r, count))) {
            submit_turn_end(&turn);
            submit_turn_begin(&turn);
        }
        if (together)
            response_batch_executes(&turn.answers, r->batch, count, now);
        if (expects)
            runner_expect_answers(&turn.answers, count, &ahead, now);
        runner_execute(r, count);
        r->answers_apart = expects && turn.answers.apart;
        time_ns ended = clock_now_ns();
        r->quick_runs = ended - now < RUNNER_INLINE_NS ? r->quick_runs + 1 : 0;
        now = ended;
        mutex_lock(&v->lock);
    } while (together && (count = runner_go_on(&ahead, begun, now, ret_wake)));
    mutex_unlock(&v->lock);
    if (together) {
        turn.answers.now = now;
        submit_turn_end(&turn);
    }
    mutex_lock(&v->lock);
    return true;
}

/* Waits until runner_wake makes the runner busy, or until the time `until`. If a loop has
 * claimed the runner by then, the thread waits on until the loop gives it back. */
static void wait_for_work(struct runner *r, time_ns until)
{
    struct serve_version *v = r->version;
    r->state = RUNNER_IDLE;
    while (r->state != RUNNER_BUSY) {
        bool in_time = mutex_cond_wait_until(&r->wake, &v->lock, until);
        if (r->state == RUNNER_IDLE && (!in_time || v->stopping || r->leaving))
            r->state = RUNNER_BUSY;
        else if (r->state == RUNNER_CLAIMED && !in_time)
            until = clock_now_ns() + r->retire_after;
    }
}

static void thread_main(void *arg)
{
    struct runner *r = arg;
    struct serve_version *v = r->version;
    struct scheduler *s = v->scheduler;
    time_ns retire = clock_now_ns() + r->retire_after;
    instance_bind(r->instance);
    mutex_lock(&v->lock);
    r->state = RUNNER_BUSY;
    for (;;) {
        if (begun_take_over(r)) {
            retire = clock_now_ns() + r->retire_after;
            continue;
        }
        v->waking = false;
        if (r->leaving && !r->seat)
            break;
        time_ns wake;
        if (s->ops.turn(s, r, &wake)) {
            retire = clock_now_ns() + r->retire_after;
            continue;
        }
        if (v->stopping || (wake == TIME_NEVER && (r->leaving || clock_now_ns() >= retire)))
            break;
        /* A time that the scheduler asked for comes before the end of the thread. */
        time_ns until = wake == TIME_NEVER ? retire : wake;
        v->timed_until = wake < v->timed_until ? wake : v->timed_until;
        wait_for_work(r, until);
        v->timed_until = TIME_NEVER;
    }
    if (s->ops.quit)
        s->ops.quit(s, r);
    r->state = RUNNER_IDLE;
    r->has_thread = false;
    if (r->leaving)
        runner_wake(v, clock_now_ns()); /* another runner takes over its work or its wait */
    mutex_unlock(&v->lock);
}

/* Starts a thread for a runner that has none. It joins the runner's previous thread first; that
 * one has ended. */
static struct err *start_thread(struct runner *r)
{
    thread_join(r->thread);
    r->thread = NULL;
    struct err *e = thread_start("instance", thread_main, r, &r->thread);
    r->has_thread = !e;
    return e;
}

struct runner *runner_pick(struct scheduler *s)
{
    const struct serve_version *v = s->version;
    struct runner *without_thread = NULL;
    for (uint32_t i = 0; i < v->instances.runner_count; i++) {
        struct runner *r = v->instances.runners[i];
        if (r->state != RUNNER_IDLE)
            continue;
        if (r->has_thread)
            return r;
        if (!without_thread)
            without_thread = r;
    }
    return without_thread;
}

void runner_give_up(struct serve_version *v, struct err *why)
{
    bool in_place_of_another = !v->scheduler->ops.join;
    for (uint32_t i = 0; in_place_of_another && i < v->instances.runner_count; i++)
        if (v->instances.runners[i]->has_thread ||
            v->instances.runners[i]->state == RUNNER_CLAIMED) {
            err_free(why);
            return;
        }
    struct list left;
    list_init(&left);
    v->scheduler->ops.drain(v->scheduler, &left);
    mutex_unlock(&v->lock);
    LOG_ERROR("model '%s': %s", v->name, err_message(why));
    struct list *node;
    while ((node = list_pop(&left)))
        reject_request(LIST_ITEM(node, struct request, queue_node), STATS_OTHER, err_copy(why));
    err_free(why);
    mutex_lock(&v->lock);
}

void runner_wake(struct serve_version *v, time_ns now)
{
    v->scheduler->ops.wake(v->scheduler, now);
}

void runner_wake_any(struct serve_version *v, time_ns now)
{
    struct scheduler *s = v->scheduler;
    if (v->waking)
        return;
    struct runner *r = s->ops.pick(s);
    if (!r)
        return;
    time_ns wake;
    /* Dropped requests need a runner too: they only wait for their answer. */
    if (!s->ops.ready(s, NULL, now, &wake) && wake >= v->timed_until && !s->ops.has_dropped(s))
        return;
    v->waking = true;
    r->state = RUNNER_BUSY;
    if (r->has_thread) {
        mutex_cond_signal(&r->wake);
        return;
    }
    struct err *e = start_thread(r);
    if (!e)
        return;
    r->state = RUNNER_IDLE;
    v->waking = false;
    runner_give_up(v, e);
}

struct err *runner_look(struct runner *r)
{
    mutex_assert_held(&r->version->lock);
    if (r->state != RUNNER_IDLE)
        return NULL;
    r->state = RUNNER_BUSY;
    if (r->has_thread) {
        mutex_cond_signal(&r->wake);
        return NULL;
    }
    struct err *e = start_thread(r);
    if (e)
        r->state = RUNNER_IDLE;
    return e;
}

struct runner *runner_claim(struct serve_version *v)
{
    /* A scheduler with a `pick` of its own never runs inline. */
    struct runner *r = runner_pick(v->scheduler);
    if (!r || (r->begun && !loop_current()))
        return NULL;
    r->state = RUNNER_CLAIMED;
    v->timed_until = TIME_NEVER; /* the queue is empty, so no runner needs to wait for a time */
    return r;
}

/* Turns inline execution off. Caller holds the lock; it is released to log. */
static void demote(struct serve_version *v)
{
    v->inline_ok = false;
    mutex_unlock(&v->lock);
    LOG_INFO("model '%s' is too slow for network threads, or blocks them: it uses instance threads "
             "from now on",
             v->name);
    mutex_lock(&v->lock);
}

/* As many runs as are as long together, if each takes RUNNER_INLINE_NS. */
static unsigned watch_after(time_ns took)
{
    time_ns runs = time_sooner(took / RUNNER_INLINE_NS, WATCH_MOST);
    return runs > RUNNER_WATCH ? (unsigned)runs : RUNNER_WATCH;
}

/* The model is demoted when the slow runs took all the time that the measured ones may take: when
 * runs take RUNNER_INLINE_NS on average. That needs three slow runs at least. */
void runner_note_slow(struct runner *r, time_ns took)
{
    struct serve_version *v = r->version;
    if (!r->watched) {
        r->watch = r->watched = watch_after(took);
        r->slow_ns = 0;
        return;
    }
    time_ns most = r->watch * RUNNER_INLINE_NS;
    r->slow_ns += time_sooner(took, most / 3 + 1);
    if (r->slow_ns >= most && v->inline_ok)
        demote(v);
}

void runner_measure_begin(struct runner_measure *m, const struct runner *r, time_ns limit,
                          time_ns now)
{
    *m = (struct runner_measure){.limit = limit, .start = now, .closely = r->watched > 0};
    if (m->closely)
        thread_usage(&m->before);
}

/* A thread that the kernel preempted used no more CPU time and did not block. */
void runner_measure_end(struct runner_measure *m)
{
    struct thread_usage now;
    m->end = clock_now_ns();
    m->took = m->end - m->start;
    if (!m->closely)
        return;
    thread_usage(&now);
    if (m->took <= m->limit || now.blocks == m->before.blocks)
        m->took = now.cpu_ns - m->before.cpu_ns;
    else if (m->took < RUNNER_BLOCKED_NS)
        m->took = RUNNER_BLOCKED_NS;
}

void runner_measured(struct runner *r, const struct runner_measure *m)
{
    if (m->took > m->limit)
        runner_note_slow(r, m->took);
    r->watched -= m->closely;
}

/* Executes one batch on this thread. Caller holds the lock. Returns the time when it ended. */
static time_ns execute_inline(struct runner *r, size_t count, time_ns start)
{
    struct runner_measure m;
    runner_measure_begin(&m, r, RUNNER_INLINE_NS, start);
    mutex_unlock(&r->version->lock);
    runner_execute(r, count);
    runner_measure_end(&m);
    mutex_lock(&r->version->lock);
    runner_measured(r, &m);
    return m.end;
}

void runner_run_inline(struct runner *r, time_ns now)
{
    struct serve_version *v = r->version;
    struct scheduler *s = v->scheduler;
    struct response_batch answers;
    time_ns wake;
    if (r->begun) {
        begun_run(r, now);
        return;
    }
    time_ns begun = now;
    size_t count;
    response_batch_begin(&answers);
    while (v->inline_ok && !r->leaving && (now - begun < TURN_NS || s->ops.first(s) <= begun) &&
           (count = s->ops.take(s, r, now, &wake)))
        now = execute_inline(r, count, now);
    r->state = RUNNER_IDLE;
    if (r->leaving)
        mutex_cond_signal(&r->wake); /* its thread kept waiting while the loop had claimed it */
    if (s->ops.has_dropped(s))
        runner_answer_dropped(v, now);
    if (s->ops.depth(s))
        runner_wake(v, clock_now_ns());
    mutex_unlock(&v->lock);
    answers.now = now;
    response_batch_end(&answers);
}
