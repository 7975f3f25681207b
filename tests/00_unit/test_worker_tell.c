/* server/worker.h: how much one turn of a loop tells about the server. */
#include "os/loop.h"
#include "server/worker.h"

#include "support/unit.h"

static struct worker worker;

static int make(void **state)
{
    (void)state;
    worker = (struct worker){0};
    unit_succeeds(loop_new(&worker.loop));
    return 0;
}

static int end(void **state)
{
    (void)state;
    loop_free(worker.loop);
    return 0;
}

static void stop_turn(struct loop_timer *t)
{
    (void)t;
    loop_stop(worker.loop);
}

static void next_turn(void)
{
    struct loop_timer t = LOOP_TIMER_INIT(stop_turn);
    loop_timer_set(worker.loop, &t, loop_now(worker.loop));
    loop_run(worker.loop);
}

static void turn_is_long(void)
{
    while (clock_now_ns() - loop_now(worker.loop) < WORKER_TELL_TIME)
        ;
}

static void long_answers_fill_a_turn(void **state)
{
    (void)state;
    assert_true(worker_may_tell(&worker));
    worker_told(&worker, WORKER_TELL_BYTES);
    assert_false(worker_may_tell(&worker));
    next_turn();
    assert_true(worker_may_tell(&worker));
}

static void short_answers_count_too(void **state)
{
    (void)state;
    assert_true(worker_may_tell(&worker));
    for (size_t told = 0; told < WORKER_TELL_BYTES; told += WORKER_TELL_LEAST)
        worker_told(&worker, 1);
    assert_false(worker_may_tell(&worker));
}

/* What one answer takes depends on the model and the machine. */
static void slow_answers_fill_a_turn(void **state)
{
    (void)state;
    next_turn();
    assert_true(worker_may_tell(&worker));
    worker_told(&worker, 1);
    turn_is_long();
    assert_false(worker_may_tell(&worker));
    next_turn();
    assert_true(worker_may_tell(&worker));
}

/* Whoever asks comes on, however long others take. */
static void each_turn_tells_once(void **state)
{
    (void)state;
    next_turn();
    turn_is_long();
    assert_true(worker_may_tell(&worker));
    worker_told(&worker, 1);
    assert_false(worker_may_tell(&worker));
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, make, end)

UNIT_MAIN(TEST(long_answers_fill_a_turn), TEST(short_answers_count_too),
          TEST(slow_answers_fill_a_turn), TEST(each_turn_tells_once))
