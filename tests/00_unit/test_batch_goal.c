/* batching/batch_goal: what the dynamic batcher and the oldest strategy of sequences choose by. */
#include "batching/batch_goal.h"

#include "support/unit.h"

static const int32_t sizes[] = {8, 4};

/* What is chosen of so many requests of one row, the first of which came at 1000. */
static uint32_t of_rows(const struct batch_goal *g, uint32_t rows, time_ns now, time_ns *ret_wake)
{
    struct batch_growth b = BATCH_GROWTH_NONE;
    for (uint32_t i = 0; i < rows && !batch_goal_settled(g, &b); i++)
        batch_goal_add(g, &b, 1, 1000 + i);
    return batch_goal_choose(g, &b, now, ret_wake);
}

/* MC-104, MC-105, MC-111: the largest preferred size that can be made; else all, once the delay
 * is over. */
static void the_largest_preferred_size(void **state)
{
    (void)state;
    struct batch_goal g;
    time_ns wake = 0;
    batch_goal_init(&g, 16, UINT32_MAX, sizes, 2, 5);
    assert_int_equal(g.sizes[0], 4);
    assert_int_equal(g.sizes[1], 8);
    assert_int_equal(of_rows(&g, 4, 1000, &wake), 4);
    assert_int_equal(of_rows(&g, 7, 1000, &wake), 4);
    assert_int_equal(of_rows(&g, 16, 1000, &wake), 8);
    assert_int_equal(wake, 0);
    assert_int_equal(of_rows(&g, 3, 5999, &wake), 0);
    assert_int_equal(wake, 6000);
    assert_int_equal(of_rows(&g, 3, 6000, &wake), 3);
    assert_int_equal(of_rows(&g, 0, 6000, &wake), 0);
    assert_true(wake == TIME_NEVER);
    batch_goal_fini(&g);
}

/* Nothing more can join, or what is there is past every preferred size: there is nothing to wait
 * for. */
static void nothing_to_wait_for(void **state)
{
    (void)state;
    struct batch_goal g;
    struct batch_growth b = BATCH_GROWTH_NONE;
    time_ns wake;
    batch_goal_init(&g, 16, UINT32_MAX, sizes, 2, 5);
    batch_goal_add(&g, &b, 3, 1000);
    b.closed = true;
    assert_true(batch_goal_settled(&g, &b));
    assert_int_equal(batch_goal_choose(&g, &b, 1000, &wake), 1);
    b = BATCH_GROWTH_NONE;
    batch_goal_add(&g, &b, 9, 1000);
    assert_false(batch_goal_settled(&g, &b));
    assert_int_equal(batch_goal_choose(&g, &b, 1000, &wake), 1);
    batch_goal_fini(&g);
}

/* PB-95, X-32: no preferred size means the maximum, which for 0 is one row. And the number of
 * requests has a limit. */
static void limits(void **state)
{
    (void)state;
    struct batch_goal g;
    time_ns wake;
    batch_goal_init(&g, 0, UINT32_MAX, NULL, 0, 5);
    assert_int_equal(of_rows(&g, 3, 1000, &wake), 1);
    batch_goal_fini(&g);
    batch_goal_init(&g, 6, 2, NULL, 0, 5);
    assert_int_equal(of_rows(&g, 1, 1000, &wake), 0);
    assert_int_equal(of_rows(&g, 3, 1000, &wake), 2);
    batch_goal_fini(&g);
}

UNIT_MAIN(UNIT(the_largest_preferred_size), UNIT(nothing_to_wait_for), UNIT(limits))
