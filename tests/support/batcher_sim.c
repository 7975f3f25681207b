#include "support/batcher_sim.h"

#include "support/batch_oracle.h"
#include "support/fake_request.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct instance {
    time_ns busy_until; /* 0 = idle */
    int batch[ORACLE_MAX];
    int count;
};

struct sim {
    const struct sim_script *script;
    bool begun;      /* the strategy was told of a batch */
    uint32_t let_in; /* rows plus requests that it has allowed in the batch */
    struct batcher *batcher;
    struct oracle oracle;
    struct request *requests[ORACLE_MAX];
    int answers[ORACLE_MAX];
    time_ns run_ns[ORACLE_MAX];
    struct instance instances[SIM_MAX_INSTANCES];
    time_ns now;
    time_ns wake;               /* when an idle instance tries again */
    time_ns timer;              /* when the home loop calls batcher_expire */
    uint64_t last_arrival[128]; /* per level: the last request taken in time */
    unsigned long *batches;
    int steps;
    char fail[256];
};

__attribute__((format(printf, 2, 3))) static void fail(struct sim *s, const char *fmt, ...)
{
    if (s->fail[0])
        return;
    int n = snprintf(s->fail, sizeof(s->fail),
                     "+%llu us: ", (unsigned long long)((s->now - TIME_S(1)) / 1000));
    va_list args;
    va_start(args, fmt);
    vsnprintf(s->fail + n, sizeof(s->fail) - (size_t)n, fmt, args);
    va_end(args);
}

static void answer(struct sim *s, int id)
{
    if (++s->answers[id] != 1)
        fail(s, "request %d answered twice", id);
}

static int id_of(const struct request *r)
{
    return (int)(intptr_t)r->owner;
}

/* -- the simulated shell -- */

/* Answers the requests that the batcher dropped. The oracle must have expected each. */
static void collect_dropped(struct sim *s)
{
    struct list dropped;
    list_init(&dropped);
    if (!s->script->eager && !batcher_has_dropped(s->batcher) && s->timer > s->now)
        return;
    size_t n = batcher_expire(s->batcher, s->now, &dropped);
    oracle_advance(&s->oracle, s->now);
    LIST_EACH (it, &dropped) {
        struct request *r = LIST_ITEM(it, struct request, queue_node);
        struct oracle_request *o = &s->oracle.requests[id_of(r)];
        list_remove(it);
        n--;
        if (o->place == ORACLE_QUEUED && o->flagged)
            o->place = ORACLE_TAKEN;
        else if (o->place != ORACLE_TIMED_OUT)
            fail(s, "request %d dropped without reason", id_of(r));
        answer(s, id_of(r));
    }
    if (n != 0)
        fail(s, "batcher_expire counted wrong by %zu", n);
    s->timer = batcher_next_deadline(s->batcher);
}

/* -- the strategy -- */

static void begin_batch(void *arg)
{
    struct sim *s = arg;
    if (s->begun)
        fail(s, "a batch begins before the strategy's last one has ended");
    s->begun = true;
    s->let_in = 0;
}

static bool include_in_batch(void *arg, const struct request *r)
{
    struct sim *s = arg;
    uint32_t more = s->oracle.requests[id_of(r)].rows + 1;
    if (!s->begun)
        fail(s, "the strategy is asked outside of a batch");
    bool joins = s->let_in + more <= s->script->strategy_most;
    s->let_in += more;
    return joins;
}

static void end_batch(void *arg)
{
    struct sim *s = arg;
    if (!s->begun)
        fail(s, "a batch of the strategy ends that has not begun");
    s->begun = false;
}

/* Checks the rules that hold for every batch. */
static void check_legal(struct sim *s, const int *ids, int n)
{
    const struct batcher_config *c = &s->script->config;
    uint64_t rows = 0;
    for (int i = 0; i < n; i++) {
        const struct oracle_request *o = &s->oracle.requests[ids[i]];
        rows += o->rows;
        if (o->likeness != s->oracle.requests[ids[0]].likeness)
            fail(s, "requests %d and %d in one batch", ids[0], ids[i]);
        if (o->flagged)
            fail(s, "cancelled request %d runs", ids[i]);
        if (!o->late && o->deadline <= s->now)
            fail(s, "request %d runs after its deadline", ids[i]);
        if (!o->late && o->arrival < s->last_arrival[o->level])
            fail(s, "request %d was passed within its level", ids[i]);
        if (!o->late)
            s->last_arrival[o->level] = o->arrival;
    }
    if (n > 1 && (!c->dynamic || rows > c->max_batch_size))
        fail(s, "batch of %llu rows", (unsigned long long)rows);
}

static void take(struct sim *s, struct instance *in)
{
    struct request *out[16];
    int expected[ORACLE_MAX];
    time_ns expected_wake;
    time_ns wake = 0;
    size_t n = batcher_take(s->batcher, s->now, out, 16, &wake);
    oracle_advance(&s->oracle, s->now);
    collect_dropped(s);
    int m = oracle_choose(&s->oracle, s->now, expected, &expected_wake);
    if ((int)n != m) {
        fail(s, "batch of %zu requests, expected %d", n, m);
        return;
    }
    for (int i = 0; i < m; i++)
        if (id_of(out[i]) != expected[i])
            fail(s, "request %d taken as number %d, expected %d", id_of(out[i]), i, expected[i]);
    if (n == 0) {
        if (wake != expected_wake)
            fail(s, "wake at %llu, expected %llu", (unsigned long long)wake,
                 (unsigned long long)expected_wake);
        s->wake = wake;
        return;
    }
    check_legal(s, expected, m);
    *s->batches += 1;
    in->count = m;
    in->busy_until = s->now;
    for (int i = 0; i < m; i++) {
        in->batch[i] = expected[i];
        in->busy_until += s->run_ns[expected[i]];
        s->oracle.requests[expected[i]].place = ORACLE_TAKEN;
    }
}

static struct instance *idle_instance(struct sim *s)
{
    for (int i = 0; i < s->script->instances; i++)
        if (s->instances[i].busy_until == 0)
            return &s->instances[i];
    return NULL;
}

/* After a change: gives work to idle instances, and sets the timers again. */
static void after_change(struct sim *s)
{
    collect_dropped(s);
    struct instance *in;
    s->wake = TIME_NEVER;
    while (!s->fail[0] && (in = idle_instance(s)) != NULL) {
        if (!batcher_ready(s->batcher, s->now, &s->wake))
            break;
        take(s, in);
        if (in->busy_until == 0)
            break;
    }
    collect_dropped(s);
    s->timer = batcher_next_deadline(s->batcher);
}

/* -- events -- */

static void add_inputs(const struct sim_script *s, const struct sim_event *e, struct request *r)
{
    int64_t a[] = {e->rows, e->dim};
    int64_t ragged[] = {e->rows, 1 + e->id % 5};
    int64_t content_shape[] = {s->config.shape_tensor_count ? 1 : e->rows, 1};
    float content[] = {0.0f, (float)e->content};
    if (e->swapped)
        fake_request_input(r, "a", a, 2, NULL, 0);
    fake_request_input(r, "g", ragged, 2, NULL, 0)->ragged_ok = true;
    fake_request_input(r, "s", content_shape, 2, content, sizeof(content));
    if (e->with_optional)
        fake_request_input(r, "o", a, 1, NULL, 0);
    if (!e->swapped)
        fake_request_input(r, "a", a, 2, NULL, 0);
}

static void arrive(struct sim *s, const struct sim_event *e)
{
    struct request *r = fake_request_new(e->rows);
    add_inputs(s->script, e, r);
    r->priority = e->priority;
    r->timeout_us = e->timeout_us;
    r->owner = (void *)(intptr_t)e->id;
    s->requests[e->id] = r;
    s->run_ns[e->id] = e->run_ns;
    uint64_t likeness = (uint64_t)e->dim * 4 + (e->with_optional ? 2u : 0u);
    if (s->script->config.shape_tensor_count)
        likeness += (uint64_t)e->content;
    bool accepted =
        oracle_push(&s->oracle, s->now, e->id, e->rows, e->priority, e->timeout_us, likeness);
    if ((batcher_push(s->batcher, s->now, r) == BATCHER_PUSH_OK) != accepted)
        fail(s, "request %d %s", e->id, accepted ? "refused" : "accepted by a full queue");
    if (!accepted)
        answer(s, e->id);
    else if (r->queue_deadline != s->oracle.requests[e->id].deadline)
        fail(s, "request %d has another deadline", e->id);
    after_change(s);
}

static void cancel(struct sim *s, const struct sim_event *e)
{
    struct request *r = s->requests[e->id];
    struct oracle_request *o = &s->oracle.requests[e->id];
    if (!r || s->answers[e->id])
        return;
    atomic_store(&r->cancelled, true);
    if (o->place == ORACLE_QUEUED)
        o->flagged = true;
    if (e->kind == SIM_FLAG)
        return;
    bool queued = o->place == ORACLE_QUEUED;
    if (batcher_remove(s->batcher, r) != queued)
        fail(s, "request %d: batcher_remove says %d", e->id, !queued);
    if (queued) {
        o->place = ORACLE_TAKEN;
        answer(s, e->id);
    }
    after_change(s);
}

static void drain(struct sim *s)
{
    int left[ORACLE_MAX];
    time_ns wake;
    for (int i = 0; i < ORACLE_MAX; i++)
        s->oracle.requests[i].flagged = false;
    (void)oracle_choose(&s->oracle, s->now, left, &wake); /* returns the whole running order */
    struct list all;
    list_init(&all);
    size_t n = batcher_drain(s->batcher, &all);
    int at = 0;
    LIST_EACH (it, &all) {
        int id = id_of(LIST_ITEM(it, struct request, queue_node));
        list_remove(it);
        n--;
        if (s->oracle.requests[id].place == ORACLE_QUEUED && left[at++] != id)
            fail(s, "request %d drained out of order", id);
        s->oracle.requests[id].place = ORACLE_TAKEN;
        answer(s, id);
    }
    if (n != 0 || batcher_depth(s->batcher) != 0)
        fail(s, "batcher_drain left something, or counted wrong");
    after_change(s);
}

static void finish(struct sim *s, struct instance *in)
{
    for (int i = 0; i < in->count; i++)
        answer(s, in->batch[i]);
    in->busy_until = 0;
    in->count = 0;
    take(s, in); /* an instance's thread asks for work by take */
    after_change(s);
}

/* -- the clock and the invariants -- */

static void check_instant(struct sim *s)
{
    size_t queued = 0;
    bool flagged = false; /* then the batcher may know less than the oracle */
    oracle_advance(&s->oracle, s->now);
    for (int i = 0; i < ORACLE_MAX; i++)
        flagged = flagged ||
                  (s->oracle.requests[i].place == ORACLE_QUEUED && s->oracle.requests[i].flagged);
    for (int i = 0; i < ORACLE_MAX; i++) {
        const struct oracle_request *o = &s->oracle.requests[i];
        queued += o->place == ORACLE_QUEUED;
        if (o->place == ORACLE_TIMED_OUT && !s->answers[i])
            fail(s, "request %d is over its deadline and has no answer", i);
        if (o->place == ORACLE_QUEUED && s->answers[i])
            fail(s, "request %d answered while it waits", i);
        if (o->place == ORACLE_QUEUED && !flagged && idle_instance(s) &&
            o->pushed + s->script->config.delay_us * 1000 <= s->now)
            fail(s, "request %d waited longer than the delay beside an idle instance", i);
    }
    if (batcher_depth(s->batcher) != queued)
        fail(s, "depth %zu, expected %zu", batcher_depth(s->batcher), queued);
    if (s->timer > oracle_next_deadline(&s->oracle))
        fail(s, "nobody will look at the next deadline");
    if (!idle_instance(s))
        return;
    int ids[ORACLE_MAX];
    time_ns wake;
    int n = oracle_choose(&s->oracle, s->now, ids, &wake);
    if (!flagged && n != 0)
        fail(s, "an instance is idle beside a batch of %d", n);
    if (!flagged && s->wake != wake)
        fail(s, "an idle instance would wake at %llu, should at %llu", (unsigned long long)s->wake,
             (unsigned long long)wake);
    if (queued && s->wake == TIME_NEVER)
        fail(s, "requests wait, and nobody will wake up");
}

/* Performs the next event at or before `until`: the end of an execution, or a timer. */
static bool step_clock(struct sim *s, time_ns until)
{
    time_ns next = TIME_NEVER;
    struct instance *done = NULL;
    for (int i = 0; i < s->script->instances; i++) {
        struct instance *in = &s->instances[i];
        if (in->busy_until && in->busy_until < next) {
            next = in->busy_until;
            done = in;
        }
    }
    struct instance *idle = idle_instance(s);
    if (idle && s->wake < next) {
        next = s->wake;
        done = NULL;
    }
    bool expire = s->timer < next;
    if (expire)
        next = s->timer;
    if (next == TIME_NEVER || next > until)
        return false;
    if (++s->steps > 100000)
        fail(s, "the clock stands still");
    if (next < s->now)
        next = s->now;
    if (next > s->now)
        check_instant(s);
    s->now = next;
    if (expire) {
        after_change(s);
    } else if (done) {
        finish(s, done);
    } else {
        s->wake = TIME_NEVER;
        take(s, idle);
        after_change(s);
    }
    return true;
}

static void play(struct sim *s, const struct sim_event *e)
{
    while (!s->fail[0] && step_clock(s, s->script->script_first ? e->at - 1 : e->at))
        ;
    if (e->at > s->now)
        check_instant(s);
    s->now = e->at;
    switch (e->kind) {
    case SIM_ARRIVE:
        arrive(s, e);
        break;
    case SIM_FLAG:
    case SIM_REMOVE:
        cancel(s, e);
        break;
    case SIM_DRAIN:
        drain(s);
        break;
    }
}

const char *sim_run(const struct sim_script *script, unsigned long *ret_batches)
{
    static struct sim s;
    memset(&s, 0, sizeof(s));
    s.script = script;
    s.batches = ret_batches;
    s.now = TIME_S(1);
    s.wake = TIME_NEVER;
    s.timer = TIME_NEVER;
    oracle_init(&s.oracle, &script->config);
    s.oracle.strategy_most = script->strategy_most;
    struct batcher_config config = script->config;
    if (script->strategy_most)
        config.strategy = (struct batcher_strategy){
            .arg = &s, .begin = begin_batch, .include = include_in_batch, .end = end_batch};
    struct err *e = batcher_new(&config, &s.batcher);
    if (e) {
        fail(&s, "batcher_new: %s", err_message(e));
        err_free(e);
        return s.fail;
    }
    for (int i = 0; i < script->event_count && !s.fail[0]; i++)
        play(&s, &script->events[i]);
    while (!s.fail[0] && step_clock(&s, TIME_NEVER))
        ;
    check_instant(&s);
    struct list rest;
    list_init(&rest);
    if (batcher_drain(s.batcher, &rest) != 0)
        fail(&s, "requests are left in the queue at the end");
    for (int i = 0; i < ORACLE_MAX; i++) {
        if (s.requests[i] && s.answers[i] != 1)
            fail(&s, "request %d was answered %d times", i, s.answers[i]);
    }
    batcher_free(s.batcher);
    if (s.begun)
        fail(&s, "the strategy's last batch has no end");
    for (int i = 0; i < ORACLE_MAX; i++)
        fake_request_free(s.requests[i]);
    return s.fail;
}
