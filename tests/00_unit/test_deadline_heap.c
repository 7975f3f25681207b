#include "batching/deadline_heap.h"

#include "support/fake_request.h"
#include "support/unit.h"

#define COUNT 300

static struct request *with_deadline(time_ns when)
{
    struct request *r = fake_request_new(1);
    r->queue_deadline = when;
    return r;
}

static void earliest_first_and_stable(void **state)
{
    (void)state;
    struct deadline_heap h = {0};
    struct request *all[COUNT];
    uint64_t rng = 1;
    assert_true(deadline_heap_first(&h) == TIME_NEVER);
    for (int i = 0; i < COUNT; i++) {
        all[i] = with_deadline(1 + unit_random(&rng) % 20);
        all[i]->timeout_us = (uint64_t)i; /* its place in the order of arrival */
        deadline_heap_add(&h, all[i]);
    }
    time_ns last = 0;
    uint64_t last_place = 0;
    for (int i = 0; i < COUNT; i++) {
        assert_null(deadline_heap_pop_due(&h, deadline_heap_first(&h) - 1));
        struct request *r = deadline_heap_pop_due(&h, 100);
        assert_non_null(r);
        assert_int_equal(r->queue_heap, 0);
        assert_true(r->queue_deadline > last ||
                    (r->queue_deadline == last && (i == 0 || r->timeout_us > last_place)));
        last = r->queue_deadline;
        last_place = r->timeout_us;
        fake_request_free(r);
    }
    assert_null(deadline_heap_pop_due(&h, TIME_NEVER));
    deadline_heap_fini(&h);
}

static void any_can_leave(void **state)
{
    (void)state;
    struct deadline_heap h = {0};
    struct request *all[COUNT];
    uint64_t rng = 7;
    for (int i = 0; i < COUNT; i++) {
        all[i] = with_deadline(unit_random(&rng) % 1000);
        deadline_heap_add(&h, all[i]);
    }
    for (int i = 0; i < COUNT; i += 2)
        deadline_heap_remove(&h, all[i]);
    deadline_heap_remove(&h, all[0]); /* is in none any more */
    time_ns last = 0;
    int n = 0;
    for (struct request *r; (r = deadline_heap_pop_due(&h, 1000)) != NULL; n++) {
        assert_true(r->queue_deadline >= last);
        last = r->queue_deadline;
    }
    assert_int_equal(n, COUNT / 2);
    for (int i = 0; i < COUNT; i++)
        fake_request_free(all[i]);
    deadline_heap_fini(&h);
}

/* The memory of a burst goes back. */
static void shrinks(void **state)
{
    (void)state;
    struct deadline_heap h = {0};
    struct request *all[COUNT];
    for (int i = 0; i < COUNT; i++) {
        all[i] = with_deadline((time_ns)i);
        deadline_heap_add(&h, all[i]);
    }
    size_t most = h.cap;
    while (deadline_heap_pop_due(&h, COUNT))
        ;
    assert_true(h.cap < most / 8);
    for (int i = 0; i < COUNT; i++)
        fake_request_free(all[i]);
    deadline_heap_fini(&h);
}

UNIT_MAIN(UNIT(earliest_first_and_stable), UNIT(any_can_leave), UNIT(shrinks))
