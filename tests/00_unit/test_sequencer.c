/* sequences/sequencer. */
#include "sequences/sequencer.h"

#include "support/fake_request.h"
#include "support/unit.h"

#define MAX   64
#define START REQUEST_SEQUENCE_START
#define END   REQUEST_SEQUENCE_END

struct rig {
    struct sequencer *s;
    struct sequencer_instance *instances[2];
    struct request *all[MAX];
    int count;
    struct request *out[MAX];
    time_ns wake;
};

static void rig_begin(struct rig *rig, struct sequencer_config c)
{
    *rig = (struct rig){0};
    rig->s = sequencer_new(&c);
    rig->instances[0] = sequencer_join(rig->s, &rig->instances[0]);
}

static void rig_end(struct rig *rig)
{
    struct list rest;
    list_init(&rest);
    sequencer_drain(rig->s, &rest);
    assert_int_equal(sequencer_sequences(rig->s), 0);
    for (int i = 0; i < 2; i++)
        sequencer_drop(rig->instances[i]);
    sequencer_free(rig->s);
    for (int i = 0; i < rig->count; i++)
        fake_request_free(rig->all[i]);
}

static struct request *make(struct rig *rig, uint64_t id, uint32_t flags, int64_t dim)
{
    const int64_t shape[] = {1, dim};
    struct request *r = fake_request_new(1);
    fake_request_input(r, "a", shape, 2, NULL, 0);
    r->correlation_id = id;
    r->flags = flags;
    rig->all[rig->count++] = r;
    return r;
}

static struct request *push(struct rig *rig, time_ns at, uint64_t id, uint32_t flags)
{
    struct request *r = make(rig, id, flags, 4);
    assert_int_equal(sequencer_push(rig->s, at, r), SEQUENCER_PUSH_OK);
    return r;
}

static size_t take(struct rig *rig, uint32_t instance, time_ns at)
{
    struct sequencer_instance *i = rig->instances[instance];
    bool ready = sequencer_ready(rig->s, i, at, &rig->wake);
    size_t n = sequencer_take(rig->s, i, at, rig->out, MAX, &rig->wake);
    assert_int_equal(ready, n > 0);
    return n;
}

static void release(struct rig *rig, time_ns at, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (rig->out[i])
            sequencer_released(rig->s, at, rig->out[i], false);
}

static size_t expired(struct rig *rig, time_ns at)
{
    struct list list;
    list_init(&list);
    return sequencer_expire(rig->s, at, &list);
}

/* MC-124, PB-121: Each sequence keeps its row; a gap where a sequence has nothing to say; no gap
 * at the end. */
static void direct_keeps_the_slot(void **state)
{
    (void)state;
    struct rig rig;
    rig_begin(&rig, (struct sequencer_config){.max_batch_size = 4});
    struct request *a = push(&rig, 1, 10, START);
    struct request *b = push(&rig, 1, 20, START);
    struct request *c = push(&rig, 1, 30, START);
    assert_int_equal(take(&rig, 0, 2), 3);
    assert_true(rig.out[0] == a && rig.out[1] == b && rig.out[2] == c);
    release(&rig, 2, 3);
    assert_int_equal(take(&rig, 0, 2), 0);
    assert_int_equal(rig.wake, TIME_NEVER);
    assert_ptr_equal(sequencer_look(rig.s), &rig.instances[0]);
    assert_null(sequencer_look(rig.s));
    struct request *c2 = push(&rig, 3, 30, END);
    assert_ptr_equal(sequencer_look(rig.s), &rig.instances[0]);
    assert_int_equal(sequencer_oldest(rig.s), 3);
    struct request *a2 = push(&rig, 3, 10, 0);
    assert_int_equal(take(&rig, 0, 3), 3);
    assert_true(rig.out[0] == a2 && rig.out[1] == NULL && rig.out[2] == c2);
    release(&rig, 3, 3);
    struct request *d = push(&rig, 4, 40, START | END); /* the slot that 30 left */
    assert_int_equal(take(&rig, 0, 4), 3);
    assert_true(rig.out[0] == NULL && rig.out[1] == NULL && rig.out[2] == d);
    release(&rig, 4, 3);
    rig_end(&rig);
}

/* MC-125, PB-127, SX-17, SX-18: Sequences spread over the instances, the lowest slots first; a
 * third one waits until one ends. */
static void backlog_follows(void **state)
{
    (void)state;
    struct rig rig;
    rig_begin(&rig, (struct sequencer_config){0});
    rig.instances[1] = sequencer_join(rig.s, &rig.instances[1]);
    struct request *a = push(&rig, 1, 1, START);
    struct request *b = push(&rig, 1, 2, START);
    struct request *c = push(&rig, 1, 3, START);
    push(&rig, 1, 3, END);
    struct request *d = push(&rig, 1, 3, START | END); /* the same id anew, behind */
    assert_int_equal(sequencer_depth(rig.s), 5);
    assert_int_equal(take(&rig, 0, 1), 1);
    assert_true(rig.out[0] == a);
    release(&rig, 1, 1);
    assert_int_equal(take(&rig, 1, 1), 1);
    assert_true(rig.out[0] == b);
    release(&rig, 1, 1);
    assert_int_equal(take(&rig, 0, 1), 0);
    push(&rig, 2, 2, END);
    assert_int_equal(take(&rig, 1, 2), 1);
    release(&rig, 2, 1);
    assert_int_equal(take(&rig, 1, 2), 1);
    assert_true(rig.out[0] == c);
    release(&rig, 2, 1);
    assert_int_equal(take(&rig, 1, 2), 1);
    release(&rig, 2, 1);
    assert_int_equal(take(&rig, 1, 2), 1);
    assert_true(rig.out[0] == d);
    release(&rig, 2, 1);
    assert_int_equal(sequencer_sequences(rig.s), 1);
    rig_end(&rig);
}

static void direct_does_not_mix_shapes(void **state)
{
    (void)state;
    struct rig rig;
    rig_begin(&rig, (struct sequencer_config){.max_batch_size = 4});
    push(&rig, 1, 1, START);
    struct request *odd = make(&rig, 2, START, 5);
    assert_int_equal(sequencer_push(rig.s, 1, odd), SEQUENCER_PUSH_OK);
    push(&rig, 1, 3, START);
    assert_int_equal(take(&rig, 0, 1), 3);
    assert_null(rig.out[1]);
    release(&rig, 1, 3);
    assert_int_equal(take(&rig, 0, 1), 2);
    assert_true(rig.out[0] == NULL && rig.out[1] == odd);
    release(&rig, 1, 2);
    rig_end(&rig);
}

/* A slot whose requests do not fit the others' has its turn, however many those have. */
static void direct_takes_the_oldest(void **state)
{
    (void)state;
    struct rig rig;
    rig_begin(&rig, (struct sequencer_config){.max_batch_size = 4});
    struct request *first = push(&rig, 1, 1, START);
    struct request *odd = make(&rig, 2, START, 5);
    first->times.queue_start = 1;
    odd->times.queue_start = 2;
    assert_int_equal(sequencer_push(rig.s, 2, odd), SEQUENCER_PUSH_OK);
    push(&rig, 3, 1, 0)->times.queue_start = 3;
    assert_int_equal(take(&rig, 0, 3), 1);
    release(&rig, 3, 1);
    assert_int_equal(take(&rig, 0, 4), 2);
    assert_true(rig.out[0] == NULL && rig.out[1] == odd);
    release(&rig, 4, 2);
    assert_int_equal(take(&rig, 0, 5), 1);
    release(&rig, 5, 1);
    rig_end(&rig);
}

/* minimum_slot_utilization: half of the four slots, or 100 us. */
static void direct_waits_for_more(void **state)
{
    (void)state;
    struct rig rig;
    rig_begin(&rig, (struct sequencer_config){
                        .max_batch_size = 4, .delay_us = 100, .min_utilization = 0.5f});
    push(&rig, 1000, 1, START);
    assert_int_equal(take(&rig, 0, 2000), 0);
    assert_int_equal(rig.wake, 1000 + TIME_US(100));
    push(&rig, 3000, 2, START);
    assert_int_equal(take(&rig, 0, 3000), 2);
    release(&rig, 3000, 2);
    push(&rig, 4000, 1, 0);
    assert_int_equal(take(&rig, 0, 4000 + TIME_US(100)), 1);
    release(&rig, 4000, 1);
    rig_end(&rig);
}

/* PB-123, PB-124, PB-125, PB-126, PB-127: One request of each candidate, oldest first; the next
 * one of a sequence when the last was released. */
static void oldest_takes_one_of_each(void **state)
{
    (void)state;
    struct rig rig;
    rig_begin(&rig,
              (struct sequencer_config){.oldest = true, .max_batch_size = 2, .candidates = 3});
    struct request *a = push(&rig, 1, 1, START);
    struct request *b = push(&rig, 2, 2, START);
    struct request *c = push(&rig, 3, 3, START);
    struct request *a2 = push(&rig, 4, 1, 0);
    struct request *d = push(&rig, 5, 4, START | END); /* a fourth: the backlog */
    assert_int_equal(take(&rig, 0, 6), 2);
    assert_true(rig.out[0] == a && rig.out[1] == b);
    struct request *first[] = {rig.out[0], rig.out[1]};
    assert_int_equal(take(&rig, 0, 6), 1);
    assert_true(rig.out[0] == c);
    release(&rig, 7, 1);
    assert_int_equal(take(&rig, 0, 7), 0); /* a2 waits for a */
    sequencer_released(rig.s, 8, first[0], false);
    sequencer_released(rig.s, 8, first[1], false);
    assert_int_equal(take(&rig, 0, 8), 1);
    assert_true(rig.out[0] == a2);
    release(&rig, 8, 1);
    struct request *b2 = push(&rig, 9, 2, END);
    assert_int_equal(take(&rig, 0, 9), 1);
    assert_true(rig.out[0] == b2);
    assert_int_equal(take(&rig, 0, 9), 0); /* d takes the slot when b2 is over */
    rig.out[0] = b2;
    release(&rig, 9, 1);
    assert_int_equal(take(&rig, 0, 9), 1);
    assert_true(rig.out[0] == d);
    release(&rig, 9, 1);
    rig_end(&rig);
}

/* PB-128, PB-130. */
static void oldest_waits_for_preferred(void **state)
{
    (void)state;
    static const int32_t preferred[] = {3};
    struct rig rig;
    rig_begin(&rig, (struct sequencer_config){.oldest = true,
                                              .max_batch_size = 4,
                                              .candidates = 8,
                                              .delay_us = 50,
                                              .preferred = preferred,
                                              .preferred_count = 1});
    push(&rig, 100, 1, START);
    push(&rig, 200, 2, START);
    assert_int_equal(take(&rig, 0, 300), 0);
    assert_int_equal(rig.wake, 100 + TIME_US(50));
    push(&rig, 300, 3, START);
    push(&rig, 300, 4, START);
    assert_int_equal(take(&rig, 0, 300), 3);
    release(&rig, 300, 3);
    assert_int_equal(take(&rig, 0, 300), 0);
    assert_int_equal(take(&rig, 0, 300 + TIME_US(50)), 1);
    release(&rig, 300, 1);
    rig_end(&rig);
}

/* SX-09. */
static void unknown_and_conflicting(void **state)
{
    (void)state;
    struct rig rig;
    rig_begin(&rig, (struct sequencer_config){.max_batch_size = 1});
    assert_int_equal(sequencer_push(rig.s, 1, make(&rig, 5, 0, 4)), SEQUENCER_PUSH_UNKNOWN);
    push(&rig, 1, 5, START);
    assert_int_equal(sequencer_push(rig.s, 1, make(&rig, 5, START, 4)), SEQUENCER_PUSH_CONFLICT);
    struct request *named = make(&rig, 0, START, 4);
    named->correlation_string = "5"; /* not the sequence 5 */
    assert_int_equal(sequencer_push(rig.s, 1, named), SEQUENCER_PUSH_OK);
    assert_int_equal(sequencer_sequences(rig.s), 3);
    assert_int_equal(take(&rig, 0, 1), 1);
    release(&rig, 1, 1);
    assert_int_equal(take(&rig, 0, 1), 1);
    release(&rig, 1, 1);
    assert_int_equal(take(&rig, 0, 1), 0);
    rig_end(&rig);
}

/* PB-111: ids are 64 bits, and differ in any of them. */
static void ids_differ_in_every_bit(void **state)
{
    (void)state;
    struct rig rig;
    rig_begin(&rig, (struct sequencer_config){.max_batch_size = 1});
    push(&rig, 1, 1, START);
    for (unsigned bit = 1; bit < 60; bit++)
        push(&rig, 1, 1 + (UINT64_C(1) << bit), START);
    assert_int_equal(sequencer_sequences(rig.s), 60);
    for (unsigned bit = 1; bit < 4; bit++)
        assert_int_equal(sequencer_push(rig.s, 1, make(&rig, UINT64_C(1) << (60 + bit), 0, 4)),
                         SEQUENCER_PUSH_UNKNOWN);
    rig_end(&rig);
}

/* PB-132, PB-133, PB-134: Idle begins when the last request is released; then the slot is
 * another's and the id is unknown. */
static void idle_sequences_end(void **state)
{
    (void)state;
    struct rig rig;
    rig_begin(&rig, (struct sequencer_config){.max_batch_size = 1, .idle_us = 10});
    push(&rig, 0, 1, START);
    struct request *b = push(&rig, 0, 2, START);
    assert_int_equal(take(&rig, 0, 0), 1);
    assert_int_equal(sequencer_next_deadline(rig.s), TIME_NEVER);
    release(&rig, TIME_US(100), 1);
    assert_int_equal(sequencer_next_deadline(rig.s), TIME_US(110));
    assert_int_equal(take(&rig, 0, TIME_US(109)), 0);
    assert_int_equal(take(&rig, 0, TIME_US(110)), 1);
    assert_true(rig.out[0] == b);
    assert_int_equal(sequencer_push(rig.s, TIME_US(111), make(&rig, 1, END, 4)),
                     SEQUENCER_PUSH_UNKNOWN);
    release(&rig, TIME_US(120), 1);
    push(&rig, TIME_US(125), 2, 0); /* in time */
    assert_int_equal(take(&rig, 0, TIME_US(125)), 1);
    release(&rig, TIME_US(125), 1);
    rig_end(&rig);
}

/* No further request will come: who is idle ends, who waits has the slot, who runs goes on. */
static void closing_ends_the_idle(void **state)
{
    (void)state;
    struct rig rig;
    rig_begin(&rig, (struct sequencer_config){.max_batch_size = 1});
    push(&rig, 1, 1, START);
    struct request *waits = push(&rig, 2, 2, START);
    assert_int_equal(take(&rig, 0, 2), 1);
    assert_int_equal(sequencer_taken(rig.s), 1);
    sequencer_close(rig.s);
    assert_int_equal(sequencer_sequences(rig.s), 2); /* the first one runs */
    release(&rig, 3, 1);
    assert_int_equal(sequencer_taken(rig.s), 0);
    assert_int_equal(take(&rig, 0, 3), 0);
    sequencer_close(rig.s);
    assert_int_equal(take(&rig, 0, 4), 1);
    assert_true(rig.out[0] == waits);
    release(&rig, 4, 1);
    sequencer_close(rig.s);
    assert_int_equal(sequencer_sequences(rig.s), 0);
    rig_end(&rig);
}

/* PB-135: The default is a second. */
static void idle_by_default(void **state)
{
    (void)state;
    struct rig rig;
    rig_begin(&rig, (struct sequencer_config){.max_batch_size = 1});
    push(&rig, 0, 1, START);
    assert_int_equal(take(&rig, 0, 0), 1);
    release(&rig, 5, 1);
    assert_int_equal(sequencer_next_deadline(rig.s), TIME_S(1) + 5);
    rig_end(&rig);
}

/* A request that waited past its time-out takes its sequence with it, in a slot and in the
 * backlog. */
static void timeouts_end_sequences(void **state)
{
    (void)state;
    struct rig rig;
    rig_begin(&rig, (struct sequencer_config){.max_batch_size = 1});
    push(&rig, 0, 1, START);
    for (int i = 0; i < 3; i++) {
        struct request *r = make(&rig, 2, i ? 0 : START, 4);
        r->timeout_us = i == 1 ? 5 : 0;
        assert_int_equal(sequencer_push(rig.s, 0, r), SEQUENCER_PUSH_OK);
    }
    assert_int_equal(sequencer_next_deadline(rig.s), TIME_US(5));
    assert_int_equal(expired(&rig, TIME_US(4)), 0);
    assert_int_equal(expired(&rig, TIME_US(5)), 3);
    assert_int_equal(sequencer_push(rig.s, TIME_US(6), make(&rig, 2, 0, 4)),
                     SEQUENCER_PUSH_UNKNOWN);
    assert_int_equal(sequencer_depth(rig.s), 1);
    rig_end(&rig);
}

static void cancelling_ends_a_sequence(void **state)
{
    (void)state;
    struct rig rig;
    rig_begin(&rig,
              (struct sequencer_config){.oldest = true, .max_batch_size = 2, .candidates = 2});
    struct request *a = push(&rig, 1, 1, START);
    struct request *a2 = push(&rig, 1, 1, 0);
    struct request *b = push(&rig, 1, 2, START);
    struct request *c = push(&rig, 1, 3, START);
    assert_true(sequencer_remove(rig.s, a2));
    assert_false(sequencer_remove(rig.s, a2));
    assert_true(sequencer_has_dropped(rig.s));
    assert_int_equal(sequencer_next_deadline(rig.s), 0);
    assert_true(request_is_cancelled(a));
    assert_int_equal(expired(&rig, 1), 1);
    atomic_store(&b->cancelled, true); /* found when it is looked at */
    assert_int_equal(take(&rig, 0, 1), 1);
    assert_true(rig.out[0] == c);
    assert_int_equal(expired(&rig, 1), 1);
    release(&rig, 1, 1);
    rig_end(&rig);
}

/* A START with the id of a sequence that goes on begins another one. It runs in the slot of the
 * old one, when what is queued of that is over; neither is dropped with the other. */
static void conversations_of_one_id(void **state)
{
    (void)state;
    for (int oldest = 0; oldest < 2; oldest++)
        for (int which = 0; which < 4; which++) {
            struct rig rig;
            rig_begin(&rig, (struct sequencer_config){.oldest = oldest, .candidates = 1});
            push(&rig, 1, 1, START);
            struct request *old[2], *new[2];
            for (int i = 0; i < 2; i++) {
                old[i] = make(&rig, 2, i ? 0 : START, 4);
                old[i]->timeout_us = which == 2 ? 5 : 0;
                assert_int_equal(sequencer_push(rig.s, 1, old[i]), SEQUENCER_PUSH_OK);
            }
            struct request *other = push(&rig, 1, 3, START | END);
            new[0] = make(&rig, 2, START, 4);
            assert_int_equal(sequencer_push(rig.s, 1, new[0]), SEQUENCER_PUSH_CONFLICT);
            new[1] = push(&rig, 1, 2, END);
            struct request *const *stay = new;
            if (which == 0)
                assert_true(sequencer_remove(rig.s, old[1]));
            if (which == 1)
                assert_true(sequencer_remove(rig.s, (stay = old, new[0])));
            if (which == 3)
                atomic_store(&old[0]->cancelled, true); /* found when it is looked at */
            push(&rig, 2, 1, END);
            for (int i = 0; i < 2; i++) {
                assert_int_equal(take(&rig, 0, TIME_US(6)), 1);
                release(&rig, TIME_US(6), 1);
            }
            for (int i = 0; i < 2; i++) {
                assert_int_equal(take(&rig, 0, TIME_US(6)), 1);
                assert_ptr_equal(rig.out[0], stay[i]);
                assert_false(request_is_cancelled(rig.out[0]));
                release(&rig, TIME_US(6), 1);
            }
            assert_int_equal(take(&rig, 0, TIME_US(6)), 1);
            assert_ptr_equal(rig.out[0], other);
            release(&rig, TIME_US(6), 1);
            assert_int_equal(expired(&rig, TIME_US(6)), which < 2 ? 1 : 2);
            assert_int_equal(sequencer_sequences(rig.s), 0);
            rig_end(&rig);
        }
}

/* A third START of one id, and one that is over before its turn: each has its place in the row
 * of them. */
static void one_id_thrice(void **state)
{
    (void)state;
    struct rig rig;
    rig_begin(&rig, (struct sequencer_config){.oldest = true, .candidates = 1});
    struct request *all[3];
    for (unsigned i = 0; i < 3; i++) {
        all[i] = make(&rig, 2, START, 4);
        assert_int_equal(sequencer_push(rig.s, 1 + i, all[i]),
                         i ? SEQUENCER_PUSH_CONFLICT : SEQUENCER_PUSH_OK);
    }
    assert_int_equal(take(&rig, 0, 4), 1);
    assert_ptr_equal(rig.out[0], all[0]);
    assert_int_equal(take(&rig, 0, 4), 0);
    assert_int_equal(sequencer_oldest(rig.s), 2);
    assert_true(sequencer_remove(rig.s, all[1]));
    assert_int_equal(sequencer_oldest(rig.s), 3);
    sequencer_leave(rig.instances[0]);
    release(&rig, 5, 1);
    assert_false(sequencer_busy(rig.instances[0])); /* who leaves gets no further sequence */
    rig.instances[1] = sequencer_join(rig.s, &rig.instances[1]);
    assert_int_equal(take(&rig, 1, 5), 1);
    assert_ptr_equal(rig.out[0], all[2]);
    all[0] = make(&rig, 2, START, 4);
    assert_int_equal(sequencer_push(rig.s, 6, all[0]), SEQUENCER_PUSH_CONFLICT);
    struct list list;
    list_init(&list);
    assert_int_equal(sequencer_drain(rig.s, &list), 1); /* also who has no place of its own yet */
    release(&rig, 7, 1);
    assert_int_equal(sequencer_sequences(rig.s), 0);
    rig_end(&rig);
}

/* What the backend gives back of a client that is gone does not wait until it is looked at. */
static void what_was_cancelled_does_not_wait_again(void **state)
{
    (void)state;
    struct rig rig;
    rig_begin(&rig, (struct sequencer_config){.iterative = true});
    struct request *a = push(&rig, 1, 1, START);
    assert_int_equal(take(&rig, 0, 1), 1);
    atomic_store(&a->cancelled, true);
    sequencer_again(rig.s, 1, a);
    assert_int_equal(sequencer_depth(rig.s), 0);
    assert_int_equal(expired(&rig, 1), 1);
    rig_end(&rig);
}

/* An instance that leaves keeps its sequence until that is over, and gets no other; one that
 * joins gets what waits. */
static void instances_come_and_go(void **state)
{
    (void)state;
    struct rig rig;
    rig_begin(&rig, (struct sequencer_config){0});
    push(&rig, 1, 1, START);
    struct request *b = push(&rig, 1, 2, START);
    sequencer_leave(rig.instances[0]);
    assert_int_equal(take(&rig, 0, 1), 1);
    release(&rig, 1, 1);
    assert_true(sequencer_busy(rig.instances[0]));
    push(&rig, 2, 1, END);
    assert_int_equal(take(&rig, 0, 2), 1);
    release(&rig, 2, 1);
    assert_false(sequencer_busy(rig.instances[0]));
    assert_int_equal(take(&rig, 0, 2), 0);
    rig.instances[1] = sequencer_join(rig.s, &rig.instances[1]);
    assert_int_equal(take(&rig, 1, 2), 1);
    assert_true(rig.out[0] == b);
    release(&rig, 2, 1);
    rig_end(&rig);
}

/* What waits for an instance that leaves is known and given up like the rest: no other one can
 * go on with its sequence. */
static void who_leaves_is_not_forgotten(void **state)
{
    (void)state;
    struct rig rig;
    struct list all;
    list_init(&all);
    rig_begin(&rig, (struct sequencer_config){0});
    push(&rig, 1, 1, START);
    assert_int_equal(take(&rig, 0, 1), 1);
    struct request *waits = push(&rig, 2, 1, 0);
    sequencer_leave(rig.instances[0]);
    assert_int_equal(sequencer_oldest(rig.s), 2);
    assert_int_equal(sequencer_drain(rig.s, &all), 1);
    assert_ptr_equal(all.next, &waits->queue_node);
    assert_int_equal(sequencer_depth(rig.s), 0);
    release(&rig, 3, 1);
    assert_false(sequencer_busy(rig.instances[0]));
    rig_end(&rig);
}

/* What the backend gives back runs again before what came after it; it may end its sequence
 * without an END. */
static void again_and_again(void **state)
{
    (void)state;
    for (int oldest = 0; oldest < 2; oldest++) {
        struct rig rig;
        rig_begin(&rig, (struct sequencer_config){.oldest = oldest, .candidates = 1});
        struct request *a = push(&rig, 1, 1, START);
        push(&rig, 1, 1, 0);
        struct request *b = push(&rig, 1, 2, START);
        for (int i = 0; i < 3; i++) {
            assert_int_equal(take(&rig, 0, 1), 1);
            assert_true(rig.out[0] == a);
            sequencer_again(rig.s, 1, a);
        }
        assert_int_equal(take(&rig, 0, 1), 1);
        release(&rig, 1, 1);
        assert_int_equal(take(&rig, 0, 1), 1);
        sequencer_released(rig.s, 1, rig.out[0], true);
        assert_int_equal(take(&rig, 0, 1), 1);
        assert_true(rig.out[0] == b);
        struct request *late = push(&rig, 1, 2, 0);
        assert_true(sequencer_remove(rig.s, late));
        sequencer_again(rig.s, 1, b); /* of a sequence that was ended */
        assert_int_equal(expired(&rig, 1), 1);
        assert_int_equal(sequencer_sequences(rig.s), 0);
        rig_end(&rig);
    }
}

UNIT_MAIN(UNIT(direct_keeps_the_slot), UNIT(backlog_follows), UNIT(direct_does_not_mix_shapes),
          UNIT(direct_takes_the_oldest), UNIT(direct_waits_for_more),
          UNIT(oldest_takes_one_of_each), UNIT(oldest_waits_for_preferred),
          UNIT(unknown_and_conflicting), UNIT(ids_differ_in_every_bit), UNIT(idle_sequences_end),
          UNIT(closing_ends_the_idle), UNIT(idle_by_default), UNIT(timeouts_end_sequences),
          UNIT(cancelling_ends_a_sequence), UNIT(conversations_of_one_id), UNIT(one_id_thrice),
          UNIT(instances_come_and_go), UNIT(who_leaves_is_not_forgotten), UNIT(again_and_again),
          UNIT(what_was_cancelled_does_not_wait_again))
