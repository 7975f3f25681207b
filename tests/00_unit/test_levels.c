#include "batching/levels.h"

#include "support/fake_request.h"
#include "support/unit.h"

static struct request *add(struct levels *l, uint64_t level)
{
    struct request *r = fake_request_new(1);
    r->queue_level = level;
    levels_add(l, r);
    return r;
}

static void running_order(void **state)
{
    (void)state;
    struct levels l = {0};
    struct levels_cursor at = {0};
    assert_null(levels_next(&l, &at));
    struct request *last = add(&l, UINT64_MAX);
    struct request *late = add(&l, 70);
    struct request *second = add(&l, 70);
    struct request *first = add(&l, 1);
    levels_make_late(&l, late);
    struct request *order[] = {first, second, late, last};
    for (size_t i = 0; i < 4; i++)
        assert_ptr_equal(levels_next(&l, &at), order[i]);
    assert_null(levels_next(&l, &at));
    assert_null(levels_next(&l, &at));
    assert_int_equal(l.waiting, 4);
    for (size_t i = 0; i < 4; i++) {
        levels_remove(&l, order[i]);
        assert_int_equal(order[i]->queue_level, 0);
        fake_request_free(order[i]);
    }
    assert_int_equal(l.waiting, 0);
    at = (struct levels_cursor){0};
    assert_null(levels_next(&l, &at));
    levels_fini(&l);
}

static void only_late_ones_in_a_level(void **state)
{
    (void)state;
    struct levels l = {0};
    struct request *late = add(&l, 2);
    levels_make_late(&l, late);
    struct levels_cursor at = {0};
    assert_ptr_equal(levels_next(&l, &at), late);
    assert_true(at.late);
    levels_remove(&l, late);
    fake_request_free(late);
    levels_fini(&l);
}

/* What is appended to a level comes after a cursor at or above it, unless the cursor is among
 * the late ones of that level. */
static void after_a_cursor(void **state)
{
    (void)state;
    struct list node;
    const struct levels_queue two = {.level = 2};
    const struct levels_cursor start = {0};
    const struct levels_cursor in_time = {&node, &two, false};
    const struct levels_cursor late = {&node, &two, true};
    assert_true(levels_after(&start, 1));
    assert_false(levels_after(&in_time, 1));
    assert_true(levels_after(&in_time, 2));
    assert_true(levels_after(&in_time, 3));
    assert_false(levels_after(&late, 2));
    assert_true(levels_after(&late, 3));
}

/* However many levels come and go, what is kept is as much as was there at a time. */
static void levels_come_and_go(void **state)
{
    (void)state;
    struct levels l = {0};
    uint64_t random = 3;
    struct request *waits[100] = {NULL};
    for (unsigned i = 0; i < 100000; i++) {
        struct request **at = &waits[unit_random(&random) % 100];
        if (*at) {
            levels_remove(&l, *at);
            fake_request_free(*at);
            *at = NULL;
        } else {
            *at = add(&l, 1 + unit_random(&random) % UINT64_MAX);
        }
        for (size_t k = 1; k < l.count; k++)
            assert_true(l.queues[k - 1]->level < l.queues[k]->level);
    }
    assert_true(l.cap <= 128);
    for (size_t i = 0; i < 100; i++)
        if (waits[i]) {
            assert_int_equal(levels_waiting(&l, waits[i]->queue_level), 1);
            levels_remove(&l, waits[i]);
            fake_request_free(waits[i]);
        }
    assert_int_equal(l.count, 0);
    levels_fini(&l);
}

UNIT_MAIN(UNIT(levels_come_and_go), UNIT(running_order), UNIT(only_late_ones_in_a_level),
          UNIT(after_a_cursor))
