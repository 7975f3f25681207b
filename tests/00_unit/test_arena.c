#include "base/arena.h"

#include "support/unit.h"

#include <string.h>

static void alignment_and_contents(void **state)
{
    (void)state;
    _Alignas(64) char first[200];
    struct arena a;
    uint64_t rng = 1;
    unsigned char *pieces[200];
    size_t sizes[200];
    arena_init(&a, first + 1, sizeof(first) - 1);
    for (int i = 0; i < 200; i++) {
        size_t align = (size_t)1 << unit_random(&rng) % 9;
        sizes[i] = unit_random(&rng) % (i % 50 == 0 ? 100000 : 300);
        pieces[i] = arena_try_alloc(&a, sizes[i], align);
        assert_non_null(pieces[i]);
        assert_int_equal((uintptr_t)pieces[i] % align, 0);
        memset(pieces[i], i, sizes[i]);
    }
    for (int i = 0; i < 200; i++)
        for (size_t k = 0; k < sizes[i]; k++)
            assert_int_equal(pieces[i][k], (unsigned char)i);
    arena_fini(&a);
}

static void first_memory_is_used_first(void **state)
{
    (void)state;
    _Alignas(16) char first[64];
    struct arena a;
    arena_init(&a, first, sizeof(first));
    char *p = arena_alloc(&a, 40);
    assert_ptr_equal(p, first);
    char *large = arena_alloc(&a, 5000);
    assert_true(large < first || large >= first + sizeof(first));
    assert_ptr_equal(arena_alloc(&a, 24),
                     first + 40); /* a large piece does not close what is left */
    char *beyond = arena_alloc(&a, 1);
    assert_true(beyond < first || beyond >= first + sizeof(first));
    arena_fini(&a);
}

static void sizes_that_cannot_be(void **state)
{
    (void)state;
    struct arena a;
    arena_init(&a, NULL, 0);
    assert_null(arena_try_alloc(&a, SIZE_MAX, 8));
    assert_null(arena_try_alloc(&a, SIZE_MAX - 64, 64));
    assert_null(arena_try_alloc(&a, SIZE_MAX / 2 + 1, 1));
    assert_non_null(arena_try_alloc(&a, 0, 1));
    arena_fini(&a);
}

static void zeros_and_copies(void **state)
{
    (void)state;
    struct arena a;
    arena_init(&a, NULL, 0);
    const char *z = arena_zalloc(&a, 100);
    for (int i = 0; i < 100; i++)
        assert_int_equal(z[i], 0);
    assert_string_equal(arena_strndup(&a, "abcdef", 3), "abc");
    assert_string_equal(arena_strndup(&a, NULL, 0), "");
    assert_memory_equal(arena_strndup(&a, "a\0b", 3), "a\0b", 4);
    arena_fini(&a);
}

static void note(void *arg)
{
    char *order = arg;
    order[strlen(order)] = order[8]++;
}

static void cleanups_run_last_first(void **state)
{
    (void)state;
    struct arena a;
    char first[10] = "";
    char second[10] = "";
    char order[10] = {[8] = 'a'};
    arena_init(&a, NULL, 0);
    arena_on_end(&a, note, order);
    arena_on_end(&a, note, order);
    arena_fini(&a);
    assert_string_equal(order, "ab");
    arena_fini(&a); /* again: nothing left to run */
    assert_string_equal(order, "ab");
    (void)first;
    (void)second;
}

UNIT_MAIN(UNIT(alignment_and_contents), UNIT(first_memory_is_used_first),
          UNIT(sizes_that_cannot_be), UNIT(zeros_and_copies), UNIT(cleanups_run_last_first))
