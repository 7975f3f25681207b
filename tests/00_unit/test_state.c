/* infer/state: values of states from request to request, and what becomes of their memory. */
#include "infer/state.h"

#include "base/budget.h"
#include "base/buf.h"
#include "os/thread.h"
#include "sequences/sequencer.h"
#include "support/fake_request.h"
#include "support/unit.h"

#include <string.h>

#define START REQUEST_SEQUENCE_START
#define END   REQUEST_SEQUENCE_END

static struct state_value *filled(const int64_t *shape, uint32_t rank, uint64_t size, int byte)
{
    struct buf *data;
    struct state_value *v;
    unit_succeeds(state_memory("s", size, &data));
    memset(data->data, byte, size);
    unit_succeeds(state_value_new("s", DATATYPE_INT32, shape, rank, data, size, &v));
    return v;
}

/* Two states of [ 1, 2 ]: OUT0 is read as IN0, OUT1 as IN1. */
static struct state_plan *make_plan(bool in_place)
{
    static const char *const in[] = {"IN0", "IN1"};
    static const char *const out[] = {"OUT0", "OUT1"};
    const int64_t shape[] = {1, 2};
    struct state_plan *p = state_plan_new(2);
    p->batched = 1;
    p->variable = true;
    for (p->count = 0; p->count < 2; p->count++)
        p->specs[p->count] = (struct state_spec){
            .input_name = in[p->count],
            .output_name = out[p->count],
            .in_place = in_place,
            .initial = filled(shape, 2, 8, (int)p->count + 1),
        };
    return p;
}

/* A plan, and what the sequence of a test keeps. */
static struct state_plan *plan;
static struct state_set *kept;
static size_t before;

static int begin_with(bool in_place)
{
    budget_set_limit(SIZE_MAX);
    before = budget_in_use();
    plan = make_plan(in_place);
    return 0;
}

static int begin(void **state)
{
    (void)state;
    return begin_with(false);
}

static int begin_in_place(void **state)
{
    (void)state;
    return begin_with(true);
}

/* Nothing is charged any more. */
static int end(void **state)
{
    (void)state;
    state_set_unref(kept);
    kept = NULL;
    state_plan_free(plan);
    return budget_in_use() == before ? 0 : -1;
}

static struct request *make_request(uint32_t flags)
{
    struct request *r = fake_request_new(1);
    r->flags = flags;
    r->id = "";
    r->correlation_id = 7;
    unit_succeeds(state_join(r, plan));
    return r;
}

/* A request of the sequence that is taken. */
static struct request *next_request(uint32_t flags)
{
    struct request *r = make_request(flags);
    state_enter(r, &kept);
    return r;
}

static void drop(struct request *r)
{
    if (r->states)
        state_release(r);
    fake_request_free(r);
}

static const struct tensor_input *input(const struct request *r, uint32_t i)
{
    return &r->inputs[i];
}

static void expect(const struct request *r, uint32_t i, uint64_t size, int byte)
{
    const struct tensor_input *in = input(r, i);
    assert_int_equal(in->byte_size, size);
    assert_int_equal(in->piece_count, size ? 1 : 0);
    for (uint64_t k = 0; k < size; k++)
        assert_int_equal(((const uint8_t *)in->pieces[0].data)[k], byte);
}

static void write(struct request *r, const char *name, uint64_t size, int byte)
{
    const int64_t shape[] = {1, (int64_t)size / 4};
    uint32_t index;
    void *to;
    unit_succeeds(state_begin(r, name, DATATYPE_INT32, shape, 2, &index));
    unit_succeeds(state_buffer(r, index, size, &to));
    memset(to, byte, size);
    unit_succeeds(state_publish(r, index));
}

static void from_request_to_request(void **state)
{
    (void)state;
    struct request *first = next_request(START);
    expect(first, 0, 8, 1);
    expect(first, 1, 8, 2);
    assert_string_equal(input(first, 1)->name, "IN1");
    assert_int_equal(input(first, 0)->model_rank, 2);
    assert_int_equal(input(first, 0)->elements, 2);
    write(first, "OUT1", 8, 9);
    drop(first);
    struct request *second = next_request(0);
    expect(second, 0, 8, 1);
    expect(second, 1, 8, 9);
    write(second, "OUT0", 16, 4);
    drop(second);
    struct request *third = next_request(END);
    expect(third, 0, 16, 4);
    assert_int_equal(input(third, 0)->shape[1], 4);
    /* Another sequence begins as the first one did. */
    struct request *other = make_request(START);
    struct state_set *others = NULL;
    state_enter(other, &others);
    expect(other, 0, 8, 1);
    expect(other, 1, 8, 2);
    drop(third);
    drop(other);
    state_set_unref(others);
}

static void a_start_takes_the_place_of_what_was_kept(void **state)
{
    (void)state;
    struct request *r[3];
    for (int i = 0; i < 3; i++) {
        r[i] = next_request(i == 1 ? 0 : START);
        write(r[i], "OUT0", 8, 40 + i);
    }
    expect(r[1], 0, 8, 40);
    expect(r[2], 0, 8, 1);
    for (int i = 0; i < 3; i++)
        drop(r[i]);
}

/* What a request reads stays, though the sequence goes on and ends. */
static void inputs_live_until_release(void **state)
{
    (void)state;
    struct request *first = next_request(START);
    write(first, "OUT0", 8, 5);
    struct request *second = next_request(END);
    write(second, "OUT0", 8, 6);
    state_set_unref(kept);
    kept = NULL;
    expect(first, 0, 8, 1);
    expect(second, 0, 8, 5);
    drop(first);
    expect(second, 0, 8, 5);
    drop(second);
}

static void what_is_not_published_is_dropped(void **state)
{
    (void)state;
    struct request *r = next_request(START);
    const int64_t shape[] = {1, 2};
    uint32_t index;
    void *to;
    void *again;
    unit_succeeds(state_begin(r, "OUT0", DATATYPE_INT32, shape, 2, &index));
    unit_fails(state_publish(r, index), STATUS_INVALID_ARG, "state 'OUT0' has no new contents");
    assert_int_equal(state_attributes(r, index)->byte_size, 0);
    unit_succeeds(state_buffer(r, index, 8, &to));
    unit_succeeds(state_buffer(r, index, 8, &again));
    assert_ptr_equal(to, again);
    unit_succeeds(state_begin(r, "OUT0", DATATYPE_FP32, shape, 2, &index));
    unit_succeeds(state_buffer(r, index, 8, &again));
    assert_ptr_equal(to, again);
    memset(to, 0x5a, 8);
    unit_succeeds(state_buffer(r, index, 12, &again));
    assert_int_equal(state_attributes(r, index)->byte_size, 12);
    assert_memory_equal(again, (char[12]){0}, 12); /* whatever the memory had in it */
    drop(r);
    r = next_request(0);
    expect(r, 0, 8, 1);
    drop(r);
}

static void names_and_shapes(void **state)
{
    (void)state;
    struct request *r = make_request(START);
    const int64_t negative[] = {1, -1};
    const int64_t huge[] = {INT64_MAX, 4};
    uint32_t index;
    unit_fails(state_begin(r, "IN0", DATATYPE_INT32, negative, 0, &index), STATUS_INVALID_ARG,
               "state 'IN0' is not a valid state name.");
    unit_fails(state_begin(r, "OUT0", DATATYPE_INT32, negative, 2, &index), STATUS_INVALID_ARG,
               "shape");
    unit_fails(state_begin(r, "OUT0", DATATYPE_INT32, huge, 2, &index), STATUS_INVALID_ARG,
               "shape");
    unit_fails(state_begin(r, "OUT0", DATATYPE_INT32, NULL, 2, &index), STATUS_INVALID_ARG,
               "shape");
    unit_fails(state_begin(r, "OUT0", DATATYPE_INVALID, negative, 0, &index), STATUS_INVALID_ARG,
               "data type");
    unit_succeeds(state_begin(r, "OUT1", DATATYPE_BYTES, negative, 0, &index));
    assert_int_equal(index, 1);
    drop(r);
}

static void memory_has_a_limit(void **state)
{
    (void)state;
    struct request *r = next_request(START);
    const int64_t shape[] = {1, 25};
    uint32_t index;
    void *to;
    budget_set_limit(budget_in_use() + 12);
    unit_succeeds(state_begin(r, "OUT0", DATATYPE_INT32, shape, 2, &index));
    unit_fails(state_buffer(r, index, 100, &to), STATUS_UNAVAILABLE, "state 'OUT0'");
    unit_fails(state_buffer(r, index, UINT64_MAX, &to), STATUS_UNAVAILABLE, "state 'OUT0'");
    unit_fails(state_publish(r, index), STATUS_INVALID_ARG, "no new contents");
    /* A sequence that would need two pieces of memory gets one of them, and gives it back. */
    struct request *other = fake_request_new(1);
    other->flags = START;
    unit_fails(state_join(other, plan), STATUS_UNAVAILABLE, "state 'IN1'");
    drop(other);
    unit_succeeds(state_buffer(r, index, 12, &to));
    drop(r);
    r = next_request(0);
    expect(r, 0, 8, 1);
    drop(r);
}

static void shapes_that_fit(void **state)
{
    (void)state;
    struct state_set *others = NULL;
    struct request *a = make_request(START);
    struct request *b = make_request(START);
    assert_true(state_fits(a, NULL, b, NULL));
    state_enter(a, &kept);
    state_enter(b, &others);
    write(a, "OUT1", 24, 1);
    assert_false(state_fits(a, kept, b, others));
    struct request *next = make_request(0); /* is of no set yet: its sequence's counts */
    assert_false(state_fits(next, kept, b, others));
    write(b, "OUT1", 24, 2);
    assert_true(state_fits(next, kept, b, others));
    drop(a);
    drop(b);
    drop(next);
    state_set_unref(others);
}

/* A request of no sequence has its own input, or what a sequence begins with, which it cannot
 * change. */
static void alone(void **state)
{
    (void)state;
    const uint8_t bytes[8] = {3, 3, 3, 3, 3, 3, 3, 3};
    struct request *r = fake_request_new(1);
    fake_request_input(r, "IN1", (const int64_t[]){1, 2}, 2, bytes, sizeof(bytes));
    unit_succeeds(state_join_alone(r, plan));
    assert_int_equal(r->input_count, 2);
    assert_string_equal(input(r, 1)->name, "IN0");
    expect(r, 0, 8, 3);
    expect(r, 1, 8, 1);
    write(r, "OUT0", 8, 50);
    write(r, "OUT1", 8, 50);
    expect(r, 1, 8, 1);
    drop(r);
    r = next_request(START);
    expect(r, 0, 8, 1);
    drop(r);
}

/* A state of the name of an input takes its place. */
static void an_input_of_that_name(void **state)
{
    (void)state;
    plan->specs[1].is_input = true;
    struct request *r = fake_request_new(1);
    r->flags = START;
    fake_request_input(r, "IN1", (const int64_t[]){1, 2}, 2, "abcdefgh", 8);
    unit_succeeds(state_join(r, plan));
    assert_int_equal(r->input_count, 2);
    state_enter(r, &kept);
    expect(r, 0, 8, 2);
    expect(r, 1, 8, 1);
    drop(r);
}

/* Sequences end in every way that there is: each time their memory comes back (the leak checker
 * looks too). */
static void sequences_that_end(void **state)
{
    (void)state;
    for (int way = 0; way < 4; way++) {
        size_t idle = budget_in_use();
        struct sequencer *s = sequencer_new(&(struct sequencer_config){
            .max_batch_size = 1, .idle_us = 10, .oldest = way & 1, .candidates = 1});
        struct sequencer_instance *i = sequencer_join(s, &i);
        struct request *out[1];
        struct request *r[3];
        time_ns wake;
        struct list rest;
        list_init(&rest);
        for (int k = 0; k < 3; k++)
            r[k] = make_request(k == 0 ? START : 0);
        size_t begun = budget_in_use();
        assert_int_equal(sequencer_push(s, 0, r[0]), SEQUENCER_PUSH_OK);
        assert_int_equal(sequencer_take(s, i, 0, out, 1, &wake), 1);
        expect(r[0], 0, 8, 1);
        write(r[0], "OUT0", 64, 7);
        sequencer_released(s, 0, r[0], false);
        state_release(r[0]);
        assert_true(budget_in_use() > begun);
        assert_int_equal(sequencer_push(s, 1, r[1]), SEQUENCER_PUSH_OK);
        if (way < 2) { /* idle for too long */
            assert_int_equal(sequencer_take(s, i, 1, out, 1, &wake), 1);
            expect(r[1], 0, 64, 7);
            sequencer_released(s, 1, r[1], false);
            sequencer_expire(s, 1000000000, &rest);
        } else if (way == 2) { /* what waits is taken back */
            assert_true(sequencer_remove(s, r[1]));
        } else { /* the model goes */
            assert_int_equal(sequencer_drain(s, &rest), 1);
        }
        assert_int_equal(sequencer_sequences(s), 0);
        for (int k = 0; k < 3; k++)
            drop(r[k]);
        sequencer_expire(s, 0, &rest);
        sequencer_drop(i);
        sequencer_free(s);
        assert_int_equal(budget_in_use(), idle);
    }
}

/* -- a backend may still be writing when the next request runs -- */

#define ROUNDS 2000

static void publish(void *request)
{
    for (int n = 0; n < ROUNDS; n++)
        write(request, "OUT0", n & 1 ? 8 : 16, n & 0x7f);
}

static void written_and_read_at_once(void **state)
{
    (void)state;
    struct request *writer = next_request(START);
    struct thread *thread;
    assert_null(thread_start("writer", publish, writer, &thread));
    for (int n = 0; n < ROUNDS; n++) {
        struct request *r = next_request(0);
        const struct tensor_input *in = input(r, 0);
        assert_int_equal(in->byte_size, 4 * in->elements);
        const uint8_t *bytes = in->pieces[0].data;
        assert_int_equal(bytes[0], bytes[in->byte_size - 1]);
        drop(r);
    }
    thread_join(thread);
    drop(writer);
}

#define TEST(fn)     cmocka_unit_test_setup_teardown(fn, begin, end)
#define IN_PLACE(fn) cmocka_unit_test_setup_teardown(fn, begin_in_place, end)

UNIT_MAIN(TEST(from_request_to_request), IN_PLACE(from_request_to_request),
          TEST(a_start_takes_the_place_of_what_was_kept), TEST(inputs_live_until_release),
          TEST(what_is_not_published_is_dropped), TEST(names_and_shapes),
          IN_PLACE(memory_has_a_limit), TEST(shapes_that_fit), IN_PLACE(alone),
          TEST(an_input_of_that_name), IN_PLACE(sequences_that_end), TEST(written_and_read_at_once))
