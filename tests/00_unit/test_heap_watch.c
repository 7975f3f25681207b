/* server/heap_watch.h: when the heap is looked at, and when it gives back. */
#include "server/heap_watch.h"

#include "os/heap.h"

#include "support/unit.h"

#define MIB ((size_t)1 << 20)

/* In place of those of os/heap.c. */
static size_t heap_free; /* what is free, and not given back */
static unsigned looked, gave;
static time_ns takes; /* how long each of them takes */

static void take_the_time(void)
{
    time_ns until = clock_now_ns() + takes;
    while (clock_now_ns() < until)
        ;
}

size_t heap_free_bytes(void)
{
    take_the_time();
    looked++;
    return heap_free;
}

void heap_give_back(void)
{
    take_the_time();
    gave++;
}

static time_ns now;

/* A second later. */
static bool heap_next_look(struct heap_watch *h, bool over)
{
    now += TIME_S(1);
    return heap_watch_look(h, now, over);
}

static struct heap_watch begin_heap_watch(size_t free_bytes)
{
    heap_free = free_bytes;
    looked = gave = 0;
    takes = 0;
    now = 0;
    struct heap_watch h = {.idle = free_bytes};
    return h;
}

static void much_goes_back_after_a_second(void **state)
{
    (void)state;
    struct heap_watch h = begin_heap_watch(3 * MIB);
    assert_false(heap_next_look(&h, false));
    heap_free = 5 * MIB;
    assert_false(heap_next_look(&h, false));
    assert_true(heap_next_look(&h, false)); /* the loops empty their stores */
    assert_int_equal(gave, 0);
    assert_false(heap_next_look(&h, false));
    assert_int_equal(gave, 1);
    for (int i = 0; i < 60; i++) /* what is free now went back */
        assert_false(heap_next_look(&h, false));
    assert_int_equal(gave, 1);
}

static void less_goes_back_after_five(void **state)
{
    (void)state;
    struct heap_watch h = begin_heap_watch(3 * MIB);
    heap_free += MIB / 2;
    for (int i = 0; i < 5; i++)
        assert_false(heap_next_look(&h, false));
    assert_true(heap_next_look(&h, false));
}

static void little_and_what_is_used_again_stay(void **state)
{
    (void)state;
    struct heap_watch h = begin_heap_watch(3 * MIB);
    heap_free += MIB / 32;
    for (int i = 0; i < 60; i++)
        assert_false(heap_next_look(&h, false));
    for (int i = 0; i < 60; i++) {
        heap_free = i % 2 ? 3 * MIB : 30 * MIB;
        assert_false(heap_next_look(&h, false));
    }
}

static void a_burst_that_is_over_is_not_waited_for(void **state)
{
    (void)state;
    struct heap_watch h = begin_heap_watch(3 * MIB);
    assert_true(heap_next_look(&h, true));
    assert_false(heap_next_look(&h, false));
    assert_int_equal(gave, 1);
}

/* Three milliseconds each: then none for three seconds, however much there is. */
static void what_takes_long_is_done_seldom(void **state)
{
    (void)state;
    struct heap_watch h = begin_heap_watch(3 * MIB);
    takes = TIME_MS(3);
    assert_false(heap_next_look(&h, false));
    assert_int_equal(looked, 1);
    heap_free = 300 * MIB;
    for (int i = 0; i < 2; i++)
        assert_false(heap_next_look(&h, true));
    assert_int_equal(looked, 1);
    now += HEAP_WATCH_REST;
    assert_true(heap_next_look(&h, false)); /* the end of the burst was not forgotten */
    assert_false(heap_next_look(&h, false));
    assert_int_equal(gave, 1);
    assert_int_equal(looked, 3);
    for (int i = 0; i < 2; i++)
        assert_false(heap_next_look(&h, true));
    assert_int_equal(looked, 3);
}

UNIT_MAIN(UNIT(much_goes_back_after_a_second), UNIT(less_goes_back_after_five),
          UNIT(little_and_what_is_used_again_stay), UNIT(a_burst_that_is_over_is_not_waited_for),
          UNIT(what_takes_long_is_done_seldom))
