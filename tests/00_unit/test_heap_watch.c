/* server/heap_watch.h: when the heap is looked at, and when it gives back. */
#include "server/heap_watch.h"

#include "os/heap.h"
#include "os/thread.h"

#include "support/unit.h"

#define MIB ((int64_t)1 << 20)

/* In place of those of os/heap.c. */
static int64_t heap_idle;  /* what the process holds and does not use */
static int64_t heap_owned; /* the part of it that can be given back */
static atomic_uint looked, gave;
static atomic_uint looked_here, gave_here; /* on the thread that runs the tests */
static time_ns takes;                      /* how much CPU time each of them takes */
static atomic_bool held;                   /* none of them ends */

static void take_the_time(void)
{
    time_ns until = clock_thread_ns() + takes;
    while (clock_thread_ns() < until || held)
        ;
}

int64_t heap_idle_bytes(void)
{
    take_the_time();
    looked++;
    looked_here += !thread_is_of_server();
    return heap_idle;
}

void heap_give_back(void)
{
    take_the_time();
    gave++;
    gave_here += !thread_is_of_server();
    heap_idle -= heap_owned;
    heap_owned = 0;
}

static time_ns now;

/* A second later. What a thread begins then is over another second later. */
static bool heap_next_look(struct heap_watch *h, bool over)
{
    now += TIME_S(1);
    bool told = heap_watch_look(h, now, over);
    while (h->helper && !atomic_load(&h->done))
        ;
    return told;
}

/* The second in which a thread gives back, and the next one, in which the loops are told again. */
static void heap_gives_back(struct heap_watch *h)
{
    assert_false(heap_next_look(h, false));
    assert_true(heap_next_look(h, false));
    assert_null(h->helper);
}

static void heap_gives_a_burst_back(struct heap_watch *h)
{
    assert_true(heap_next_look(h, true));
    heap_gives_back(h);
    assert_int_equal(gave, 1);
}

static struct heap_watch begin_heap_watch(int64_t idle)
{
    heap_idle = idle;
    heap_owned = 0;
    looked = gave = looked_here = gave_here = 0;
    takes = 0;
    now = 0;
    return (struct heap_watch){.idle = idle};
}

/* Somebody freed so much, and it was used before. */
static void free_bytes(int64_t bytes)
{
    heap_idle += bytes;
    heap_owned += bytes;
}

static void much_goes_back_after_a_second(void **state)
{
    (void)state;
    struct heap_watch h = begin_heap_watch(3 * MIB);
    assert_false(heap_next_look(&h, false));
    free_bytes(2 * MIB);
    assert_false(heap_next_look(&h, false));
    assert_true(heap_next_look(&h, false)); /* the loops empty their stores */
    assert_int_equal(gave, 0);
    heap_gives_back(&h); /* and once more */
    assert_int_equal(gave, 1);
    for (int i = 0; i < 60; i++)
        assert_false(heap_next_look(&h, false));
    assert_int_equal(gave, 1);
    free_bytes(2 * MIB); /* of a second burst, which no look saw */
    assert_false(heap_next_look(&h, false));
    assert_true(heap_next_look(&h, false));
    heap_gives_back(&h);
    assert_int_equal(gave, 2);
    assert_int_equal(heap_idle, 3 * MIB);
}

static void less_goes_back_after_five(void **state)
{
    (void)state;
    struct heap_watch h = begin_heap_watch(3 * MIB);
    free_bytes(MIB / 2);
    for (int i = 0; i < 5; i++)
        assert_false(heap_next_look(&h, false));
    assert_true(heap_next_look(&h, false));
}

static void little_and_what_is_used_again_stay(void **state)
{
    (void)state;
    struct heap_watch h = begin_heap_watch(3 * MIB);
    free_bytes(MIB / 32);
    for (int i = 0; i < 60; i++)
        assert_false(heap_next_look(&h, false));
    for (int i = 0; i < 60; i++) {
        heap_idle = i % 2 ? 3 * MIB : 30 * MIB;
        assert_false(heap_next_look(&h, false));
    }
}

static void a_burst_that_is_over_is_not_waited_for(void **state)
{
    (void)state;
    struct heap_watch h = begin_heap_watch(3 * MIB);
    heap_gives_a_burst_back(&h);
    assert_false(heap_next_look(&h, false));
}

/* Looks until the heap is told to give back. Returns how many looks that took. */
static int looks_until_told(struct heap_watch *h)
{
    int looks = 1;
    while (!heap_next_look(h, false) && looks < 1000)
        looks++;
    heap_gives_back(h);
    return looks;
}

/* A burst ends in the moment in which another one is given back. */
static void what_is_freed_while_others_go_back_goes_later(void **state)
{
    (void)state;
    struct heap_watch h = begin_heap_watch(3 * MIB);
    free_bytes(20 * MIB);
    while (!gave)
        heap_next_look(&h, false);
    free_bytes(20 * MIB);
    for (int i = 0; i < 100; i++)
        heap_next_look(&h, false);
    assert_int_equal(gave, 2);
    assert_int_equal(heap_idle, 3 * MIB);
}

/* What grows again and again and is not the heap's is asked for more and more seldom, but asked. */
static void what_never_goes_back_is_asked_for_seldom(void **state)
{
    (void)state;
    struct heap_watch h = begin_heap_watch(3 * MIB);
    int before = 0;
    for (int i = 0; i < 5; i++) {
        heap_idle += 2 * MIB;
        int looks = looks_until_told(&h);
        assert_in_range(looks, before + 1, 20);
        before = looks;
    }
    heap_idle += 2 * MIB;
    assert_int_equal(looks_until_told(&h), before);
    free_bytes(2 * MIB);
    assert_int_equal(looks_until_told(&h), before);
    free_bytes(2 * MIB); /* the last time some went back */
    assert_int_equal(looks_until_told(&h), 2);
}

/* Three milliseconds each: then none for three seconds, however much there is. */
static void what_takes_long_is_done_seldom(void **state)
{
    (void)state;
    struct heap_watch h = begin_heap_watch(3 * MIB);
    takes = TIME_MS(3);
    assert_false(heap_next_look(&h, false));
    assert_int_equal(looked, 1);
    free_bytes(300 * MIB);
    for (int i = 0; i < 2; i++)
        assert_false(heap_next_look(&h, true));
    assert_int_equal(looked, 1);
    now += HEAP_WATCH_REST;
    assert_false(heap_next_look(&h, false)); /* it begins */
    assert_true(heap_next_look(&h, false));  /* the end of the burst was not forgotten */
    heap_gives_back(&h);
    assert_int_equal(gave, 1);
    assert_int_equal(looked, 3);
    for (int i = 0; i < 2; i++)
        assert_false(heap_next_look(&h, true));
    assert_int_equal(looked, 3);
}

/* Requests would wait. */
static void what_takes_long_is_not_done_on_the_loop(void **state)
{
    (void)state;
    struct heap_watch h = begin_heap_watch(3 * MIB);
    heap_gives_a_burst_back(&h);
    assert_int_equal(gave_here, 0);
    assert_int_equal(looked_here, 1); /* that took no time */
    takes = TIME_MS(1);
    assert_false(heap_next_look(&h, false));
    assert_int_equal(looked_here, 2);
    for (int i = 0; i < 10; i++)
        assert_false(heap_next_look(&h, false));
    assert_in_range(looked, 5, 9);
    assert_int_equal(looked_here, 2);
    heap_watch_end(&h);
}

/* A thread that does not come to its end in a second is waited for, by nobody but the end. */
static void who_gives_back_slowly_is_not_waited_for(void **state)
{
    (void)state;
    struct heap_watch h = begin_heap_watch(3 * MIB);
    assert_true(heap_next_look(&h, true));
    held = true;
    for (int i = 0; i < 10; i++) {
        now += TIME_S(1);
        assert_false(heap_watch_look(&h, now, false));
    }
    assert_int_equal(gave, 0);
    held = false;
    heap_watch_end(&h);
    assert_true(atomic_load(&h.done));
    assert_int_equal(gave, 1);
}

UNIT_MAIN(UNIT(much_goes_back_after_a_second), UNIT(less_goes_back_after_five),
          UNIT(little_and_what_is_used_again_stay), UNIT(a_burst_that_is_over_is_not_waited_for),
          UNIT(what_is_freed_while_others_go_back_goes_later),
          UNIT(what_never_goes_back_is_asked_for_seldom), UNIT(what_takes_long_is_done_seldom),
          UNIT(what_takes_long_is_not_done_on_the_loop),
          UNIT(who_gives_back_slowly_is_not_waited_for))
