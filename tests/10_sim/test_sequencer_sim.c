/* The sequencer under a virtual clock: random sequences, instances, delays, time-outs and
 * cancellations. What must always hold: every request ends once, those of a sequence run in
 * order, on one instance, in one row (direct), never two at once (oldest), after what was queued
 * of the sequence that had its id, no request is dropped but with its own sequence, no slot is
 * left behind, whoever has work hears of it, and each request reads what the one before it in
 * its sequence wrote, in a batch whose states have one shape. NEREID_SIM_SEED=n plays one seed,
 * NEREID_SIM_RUNS=n sets how many. */
#include "sequences/sequencer.h"

#include "base/budget.h"
#include "base/buf.h"
#include "infer/state.h"
#include "support/fake_request.h"
#include "support/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EVENTS    400
#define IDS       12
#define INSTANCES 3
#define ROWS      4

/* What is known of one sequence, from its START on; a new one for each START that is taken in. */
struct life {
    int32_t instance; /* -1 = none of its requests ran yet */
    int32_t row;
    int last; /* the youngest request of it that ran */
    int in_flight;
    int before;   /* the life that had its id; -1 = none */
    bool doomed;  /* one of its requests was cancelled */
    int32_t kept; /* what its state holds; it begins as 0 */
};

struct world {
    struct sequencer *s;
    struct sequencer_config c;
    struct state_plan *states; /* half of the worlds have some */
    struct sequencer_instance *instances[INSTANCES];
    bool due[INSTANCES]; /* the sequencer said so, or its last take found something */
    /* when its last take, which found nothing, wanted to be tried again */
    time_ns timed[INSTANCES];
    uint32_t instance_count;
    uint64_t random;
    time_ns now;
    struct request *all[EVENTS];
    int life_of[EVENTS];
    bool done[EVENTS];
    bool begun[EVENTS]; /* it ran before */
    int count;
    struct life lives[EVENTS];
    int lives_count;
    int open[IDS]; /* the life that an id stands for now; -1 = none */
    struct request *flying[EVENTS];
    int flying_count;
    unsigned long batches;
    bool closing; /* all that waits is dropped */
};

static uint64_t below(struct world *w, uint64_t n)
{
    return unit_random(&w->random) % n;
}

static int index_of(const struct world *w, const struct request *r)
{
    for (int i = 0; i < w->count; i++)
        if (w->all[i] == r)
            return i;
    fail_msg("a request that nobody made");
    return -1;
}

static void arrive(struct world *w)
{
    int id = (int)below(w, IDS);
    struct request *r = fake_request_new(1);
    const int64_t shape[] = {1, below(w, 10) ? 4 : 5};
    fake_request_input(r, "a", shape, 2, NULL, 0);
    r->correlation_id = (uint64_t)id + 1;
    r->unnamed = w->c.iterative && below(w, 8) == 0; /* a made-up id may look like a client's */
    bool begins = r->unnamed || w->open[id] < 0 || below(w, 40) == 0;
    bool ends = !r->unnamed && below(w, 4) == 0;
    r->flags = (begins ? REQUEST_SEQUENCE_START : 0) | (ends ? REQUEST_SEQUENCE_END : 0);
    r->timeout_us = below(w, 8) ? 0 : 1 + below(w, 40);
    int i = w->count++;
    w->all[i] = r;
    w->life_of[i] = -1;
    if (w->states)
        unit_succeeds(state_join(r, w->states));
    enum sequencer_push said = sequencer_push(w->s, w->now, r);
    if (said == SEQUENCER_PUSH_UNKNOWN) { /* it ended meanwhile: idle, timed out or cancelled */
        assert_false(begins);
        w->done[i] = true;
        w->open[id] = -1;
        return;
    }
    if (begins) {
        w->life_of[i] = w->lives_count++;
        w->lives[w->life_of[i]] =
            (struct life){.instance = -1, .row = -1, .last = -1, .before = -1};
    } else {
        w->life_of[i] = w->open[id];
    }
    assert_true(w->life_of[i] >= 0);
    if (said == SEQUENCER_PUSH_CONFLICT) {
        assert_true(begins && !r->unnamed);
        w->lives[w->life_of[i]].before = w->open[id];
    }
    if (!r->unnamed)
        w->open[id] = ends ? -1 : w->life_of[i];
}

/* -- states -- */

static struct state_plan *make_states(void)
{
    const int64_t shape[] = {1, 1};
    struct state_plan *p = state_plan_new(1);
    struct buf *data;
    unit_succeeds(state_memory("s", sizeof(int32_t), &data));
    memset(data->data, 0, sizeof(int32_t));
    p->batched = 1;
    p->variable = true;
    p->specs[p->count++] = (struct state_spec){.input_name = "in", .output_name = "out"};
    unit_succeeds(state_value_new("s", DATATYPE_INT32, shape, 2, data, sizeof(int32_t),
                                  &p->specs[0].initial));
    return p;
}

static const struct tensor_input *state_of(const struct request *r)
{
    return &r->inputs[r->input_count - 1];
}

/* The model reads its state, and nearly always counts it up. */
static void run_model(struct world *w, struct request *r, struct life *l)
{
    int i = index_of(w, r);
    if ((r->flags & REQUEST_SEQUENCE_START) && !w->begun[i])
        l->kept = 0;
    const struct tensor_input *in = state_of(r);
    assert_int_equal(in->byte_size, 4 * in->elements);
    assert_int_equal(((const int32_t *)in->pieces[0].data)[0], l->kept);
    if (below(w, 8) == 0)
        return;
    const int64_t shape[] = {1, below(w, 10) ? 1 : 2};
    uint32_t index;
    void *to;
    unit_succeeds(state_begin(r, "out", DATATYPE_INT32, shape, 2, &index));
    unit_succeeds(state_buffer(r, index, (uint64_t)shape[1] * sizeof(int32_t), &to));
    for (int64_t k = 0; k < shape[1]; k++)
        ((int32_t *)to)[k] = l->kept + 1;
    if (below(w, 8) == 0)
        return; /* what is not published is as if it had not been written */
    unit_succeeds(state_publish(r, index));
    l->kept++;
}

static void check_batch(struct request *const *out, size_t n)
{
    for (size_t k = 0; k < n; k++)
        if (out[k])
            assert_int_equal(state_of(out[k])->shape[1], state_of(out[n - 1])->shape[1]);
}

static void let_go(struct request *r)
{
    if (r->states)
        state_release(r);
}

/* None of the sequence that had the id waits any more. */
static void check_before(const struct world *w, const struct life *l)
{
    for (int i = 0; l->before >= 0 && i < w->count; i++)
        assert_false(w->life_of[i] == l->before && w->all[i]->queue_level);
}

static void ran(struct world *w, struct request *r, uint32_t instance, uint32_t row)
{
    int i = index_of(w, r);
    struct life *l = &w->lives[w->life_of[i]];
    assert_false(w->done[i]);
    assert_true(i > l->last);
    check_before(w, l);
    assert_true(l->instance < 0 || l->instance == (int32_t)instance);
    assert_true(w->c.oldest || l->row < 0 || l->row == (int32_t)row);
    assert_true(!w->c.oldest || l->in_flight == 0);
    l->last = i;
    l->instance = (int32_t)instance;
    l->row = (int32_t)row;
    l->in_flight++;
    if (w->states)
        run_model(w, r, l);
    w->begun[i] = true;
    w->flying[w->flying_count++] = r;
}

static void hear(struct world *w)
{
    struct sequencer_instance **who;
    while ((who = sequencer_look(w->s)) != NULL)
        w->due[who - w->instances] = true;
}

static void take(struct world *w)
{
    struct request *out[ROWS];
    time_ns wake = 0;
    uint32_t instance = (uint32_t)below(w, w->instance_count);
    bool ready = sequencer_ready(w->s, w->instances[instance], w->now, &wake);
    size_t n = sequencer_take(w->s, w->instances[instance], w->now, out, ROWS, &wake);
    assert_int_equal(ready, n > 0);
    hear(w);
    assert_true(n == 0 || w->due[instance] ||
                w->timed[instance] <= w->now); /* nobody waits unheard */
    w->due[instance] = n > 0;
    w->timed[instance] = n ? TIME_NEVER : wake;
    if (n == 0)
        assert_true(wake > w->now);
    else
        assert_non_null(out[n - 1]);
    w->batches += n > 0;
    if (w->states)
        check_batch(out, n);
    for (uint32_t k = 0; k < n; k++)
        if (out[k])
            ran(w, out[k], instance, k);
        else
            assert_false(w->c.oldest);
}

static void release(struct world *w, int which)
{
    struct request *r = w->flying[which];
    int i = index_of(w, r);
    w->flying[which] = w->flying[--w->flying_count];
    struct life *l = &w->lives[w->life_of[i]];
    l->in_flight--;
    if (w->c.iterative && l->in_flight == 0 && l->last == i && below(w, 10) == 0) {
        l->last = i - 1; /* it may run again, before what follows it */
        sequencer_again(w->s, w->now, r);
        return;
    }
    w->done[i] = true;
    sequencer_released(w->s, w->now, r, w->c.iterative);
    let_go(r);
}

/* True if one of its requests was cancelled, or waited for too long. */
static bool may_drop(const struct world *w, int life)
{
    for (int i = 0; i < w->count; i++)
        if (w->life_of[i] == life && !w->begun[i] && w->all[i]->queue_deadline <= w->now)
            return true;
    return w->lives[life].doomed;
}

static void collect(struct world *w, struct list *list)
{
    struct list *node;
    while ((node = list_pop(list))) {
        int i = index_of(w, LIST_ITEM(node, struct request, queue_node));
        assert_false(w->done[i]);
        assert_true(w->closing || may_drop(w, w->life_of[i]));
        w->done[i] = true;
    }
}

static void expire(struct world *w)
{
    struct list list;
    list_init(&list);
    sequencer_expire(w->s, w->now, &list);
    assert_true(sequencer_next_deadline(w->s) > w->now);
    collect(w, &list);
}

static void cancel(struct world *w)
{
    if (!w->count)
        return;
    int i = (int)below(w, (uint64_t)w->count);
    if (below(w, 2))
        atomic_store(&w->all[i]->cancelled, true);
    else if (sequencer_remove(w->s, w->all[i]))
        w->done[i] = true;
    else
        return;
    if (w->life_of[i] >= 0)
        w->lives[w->life_of[i]].doomed = true;
}

static void step(struct world *w)
{
    w->now += below(w, 4) ? below(w, TIME_US(5)) : TIME_US(below(w, 60));
    uint64_t what = below(w, 20);
    if (what < 8 && w->count < EVENTS - 1)
        arrive(w);
    else if (what < 14)
        take(w);
    else if (what < 18 && w->flying_count)
        release(w, (int)below(w, (uint64_t)w->flying_count));
    else if (what == 18)
        cancel(w);
    else
        expire(w);
    hear(w);
}

static void finish(struct world *w)
{
    while (w->flying_count) {
        struct request *r = w->flying[--w->flying_count];
        w->done[index_of(w, r)] = true;
        sequencer_released(w->s, w->now, r, false);
        let_go(r);
    }
    struct list rest;
    list_init(&rest);
    w->closing = true;
    sequencer_drain(w->s, &rest);
    collect(w, &rest);
    assert_int_equal(sequencer_depth(w->s), 0);
    assert_int_equal(sequencer_sequences(w->s), 0);
    for (uint32_t i = 0; i < w->instance_count; i++)
        sequencer_drop(w->instances[i]);
    sequencer_free(w->s);
    for (int i = 0; i < w->count; i++) {
        assert_true(w->done[i]);
        let_go(w->all[i]);
        fake_request_free(w->all[i]);
    }
    state_plan_free(w->states);
    assert_int_equal(budget_in_use(), 0);
}

static unsigned long play(uint64_t seed)
{
    static const int32_t preferred[] = {2, 3};
    struct world *w = calloc(1, sizeof(*w));
    w->random = seed;
    memset(w->open, -1, sizeof(w->open));
    w->c.oldest = below(w, 2);
    w->c.iterative = below(w, 2);
    w->instance_count = 1 + (uint32_t)below(w, INSTANCES);
    w->c.max_batch_size = (uint32_t)below(w, ROWS + 1);
    w->c.idle_us = 20 + below(w, 100);
    w->c.delay_us = below(w, 2) ? 0 : below(w, 30);
    w->c.min_utilization = below(w, 2) ? 0 : 0.5f;
    w->c.candidates = (uint32_t)below(w, 6);
    w->c.preferred = preferred;
    w->c.preferred_count = w->c.max_batch_size >= 3 ? below(w, 3) : 0;
    w->states = below(w, 2) ? make_states() : NULL;
    w->s = sequencer_new(&w->c);
    for (uint32_t i = 0; i < w->instance_count; i++)
        w->instances[i] = sequencer_join(w->s, &w->instances[i]);
    for (int i = 0; i < 2 * EVENTS; i++)
        step(w);
    finish(w);
    unsigned long batches = w->batches;
    free(w);
    return batches;
}

/* MC-124, PB-121, PB-123, PB-124, PB-125, PB-127, PB-134. */
static void random_lives(void **state)
{
    (void)state;
    const char *one = getenv("NEREID_SIM_SEED");
    const char *many = getenv("NEREID_SIM_RUNS");
    unsigned long runs = many ? strtoul(many, NULL, 10) : 3000;
    unsigned long batches = 0;
    if (one) {
        play(strtoul(one, NULL, 10));
        return;
    }
    for (unsigned long i = 1; i <= runs; i++) {
        char seed[32];
        snprintf(seed, sizeof(seed), "%lu", i);
        setenv("NEREID_SIM_LAST", seed, 1); /* a debugger finds the seed that failed here */
        batches += play(i);
    }
    if (runs == 3000)
        assert_true(batches > 100000); /* the sequencer really had work */
}

UNIT_MAIN(UNIT(random_lives))
