#include "base/fault.h"

#include "base/arena.h"
#include "base/mem.h"
#include "base/slab.h"
#include "support/unit.h"

static void the_nth_fails_once(void **state)
{
    (void)state;
    assert_false(fault_hit());
    fault_arm(3);
    assert_false(fault_hit());
    assert_false(fault_hit());
    assert_true(fault_hit());
    assert_false(fault_hit());
    assert_int_equal(fault_passed(), 4);
    fault_arm(0);
    for (int i = 0; i < 10; i++)
        assert_false(fault_hit());
}

/* Sizes that a peer chooses can fail; docs/decisions/0002-allocation-failure.md. */
static void sizes_of_peers(void **state)
{
    (void)state;
    struct arena a;
    arena_init(&a, NULL, 0);
    fault_arm(1);
    assert_null(mem_try_alloc(10, 8));
    fault_arm(1);
    assert_null(arena_try_alloc(&a, 10, 8));
    fault_arm(0);
    assert_non_null(arena_try_alloc(&a, 10, 8));
    arena_fini(&a);
}

/* Sizes that we choose never fail, so they are no fault points. */
static void sizes_of_ours(void **state)
{
    (void)state;
    static const struct slab objects = {.kind = SLAB_TEST, .object_bytes = 100};
    struct arena a;
    arena_init(&a, NULL, 0);
    fault_arm(1);
    void *object = slab_alloc(&objects);
    void *aligned = mem_alloc_aligned(100, 64);
    assert_int_equal((uintptr_t)aligned % 64, 0);
    assert_non_null(arena_alloc(&a, 10));
    assert_non_null(arena_strndup(&a, "abc", 3));
    assert_non_null(arena_alloc(&a, 100000));
    assert_int_equal(fault_passed(), 0);
    fault_arm(0);
    mem_free(aligned);
    slab_free(&objects, object);
    slab_thread_end();
    arena_fini(&a);
}

UNIT_MAIN(UNIT(the_nth_fails_once), UNIT(sizes_of_peers), UNIT(sizes_of_ours))
