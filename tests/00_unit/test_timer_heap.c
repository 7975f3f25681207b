#include "os/timer_heap.h"

#include "support/unit.h"

#define COUNT 400

static void earliest_first(void **state)
{
    (void)state;
    struct timer_heap h = {0};
    static struct loop_timer timers[COUNT];
    uint64_t rng = 11;
    assert_true(timer_heap_first(&h) == TIME_NEVER);
    assert_null(timer_heap_pop_due(&h, TIME_NEVER));
    for (int i = 0; i < COUNT; i++)
        timer_heap_set(&h, &timers[i], unit_random(&rng) % 1000);
    for (int i = 0; i < COUNT; i += 3)
        timer_heap_set(&h, &timers[i], 500 + unit_random(&rng) % 1000);
    for (int i = 1; i < COUNT; i += 3) {
        timer_heap_clear(&h, &timers[i]);
        timer_heap_clear(&h, &timers[i]);
        assert_int_equal(timers[i].heap_index, 0);
    }
    time_ns last = 0;
    int n = 0;
    while (h.count) {
        time_ns when = timer_heap_first(&h);
        assert_true(when == 0 || timer_heap_pop_due(&h, when - 1) == NULL);
        struct loop_timer *t = timer_heap_pop_due(&h, when);
        assert_true(t->when == when && when >= last);
        assert_int_equal(t->heap_index, 0);
        last = when;
        n++;
    }
    assert_int_equal(n, COUNT - (COUNT + 1) / 3);
    timer_heap_fini(&h);
}

static void room_of_a_crowd_goes_with_it(void **state)
{
    (void)state;
    struct timer_heap h = {0};
    static struct loop_timer timers[10 * COUNT];
    for (size_t i = 0; i < 10 * COUNT; i++)
        timer_heap_set(&h, &timers[i], i * 7919 % 1000);
    size_t most = h.cap;
    for (size_t i = 1; i < 10 * COUNT; i++) {
        timer_heap_clear(&h, &timers[i]);
        assert_true(h.cap > h.count && (h.cap <= 64 || h.cap <= 4 * (h.count + 1)));
    }
    assert_true(h.cap <= 64 && most >= 10 * COUNT);
    assert_ptr_equal(timer_heap_pop_due(&h, TIME_NEVER), &timers[0]);
    timer_heap_set(&h, &timers[1], 3);
    assert_int_equal(timer_heap_first(&h), 3);
    timer_heap_fini(&h);
}

static void fini_forgets(void **state)
{
    (void)state;
    struct timer_heap h = {0};
    struct loop_timer t = {0};
    timer_heap_set(&h, &t, 5);
    timer_heap_fini(&h);
    assert_int_equal(t.heap_index, 0);
    timer_heap_clear(&h, &t);
}

UNIT_MAIN(UNIT(earliest_first), UNIT(room_of_a_crowd_goes_with_it), UNIT(fini_forgets))
