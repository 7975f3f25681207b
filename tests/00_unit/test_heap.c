#include "os/heap.h"

#include "os/thread.h"
#include "support/unit.h"

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The address sanitizer has a heap of its own: what is proved of the C library's is proved where
 * that is in use. */
#if !defined(__SANITIZE_ADDRESS__)

#define GROWN ((size_t)24 << 20)

/* How much is writable of the mapping in which an address lies. */
static size_t writable_around(const void *address)
{
    FILE *maps = fopen("/proc/self/maps", "r");
    assert_non_null(maps);
    size_t found = 0;
    char line[512];
    while (fgets(line, sizeof line, maps)) {
        uintptr_t from, to;
        char mode[5];
        if (sscanf(line, "%lx-%lx %4s", &from, &to, mode) == 3 && from <= (uintptr_t)address &&
            (uintptr_t)address < to && mode[1] == 'w')
            found = to - from;
    }
    fclose(maps);
    return found;
}

/* Counted page by page: the kernel's own counters of a process may be behind by some dozens for
 * each processor. */
static size_t resident(void)
{
    char line[512];
    unsigned long kib = 0;
    FILE *rollup = fopen("/proc/self/smaps_rollup", "r");
    assert_non_null(rollup);
    while (!kib && fgets(line, sizeof line, rollup))
        (void)!sscanf(line, "Rss: %lu", &kib);
    fclose(rollup);
    assert_true(kib > 0);
    return kib << 10;
}

static void allocate(void *arg)
{
    void *small = malloc(100);
    assert_non_null(small);
    *(size_t *)arg = writable_around(small);
    free(small);
}

static void threads_share_a_heap_that_need_not_grow(void **state)
{
    (void)state;
    assert_true(mallopt(M_ARENA_MAX, 2));
    size_t before = resident();
    heap_begin();
    assert_in_range(resident(), 0, before + ((size_t)2 << 20));
    for (int i = 0; i < 2; i++) {
        struct thread *t;
        size_t there = 0;
        unit_succeeds(thread_start("allocate", allocate, &there, &t));
        thread_join(t);
        assert_in_range(there, GROWN, SIZE_MAX);
    }
}

#define CROWD 2000

/* Pieces of many sizes between which some stay, as of connections that come and go; the last
 * ones of each size are those of the end. */
static void come_and_go(void *arg)
{
    size_t *kept = arg;
    static void *pieces[CROWD][8];
    size_t before = resident();
    for (size_t i = 0; i < CROWD; i++)
        for (size_t k = 0; k < 8; k++)
            pieces[i][k] = memset(malloc(40 + k * 140), 1, 40 + k * 140);
    size_t during = resident();
    for (size_t i = 0; i < CROWD; i++)
        for (size_t k = 0; k < 8; k++)
            free(pieces[i][k]);
    heap_empty_own();
    heap_give_back();
    size_t after = resident();
    assert_true(during > before + ((size_t)6 << 20));
    *kept = after > before ? after - before : 0;
}

static void what_a_crowd_leaves_is_given_back(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) { /* the first heap may be this thread's, or the other's */
        struct thread *t;
        size_t kept = 0;
        unit_succeeds(thread_start("crowd", come_and_go, &kept, &t));
        thread_join(t);
        assert_in_range(kept, 0, (size_t)256 << 10);
    }
    size_t kept = 0;
    come_and_go(&kept);
    assert_in_range(kept, 0, (size_t)256 << 10);
}

#endif

static void free_bytes_are_known(void **state)
{
    (void)state;
    void *pieces[200];
    for (size_t i = 0; i < 200; i++)
        pieces[i] = memset(malloc(60000), 1, 60000);
    size_t before = heap_free_bytes();
    for (size_t i = 0; i < 200; i += 2)
        free(pieces[i]);
    size_t after = heap_free_bytes();
    for (size_t i = 1; i < 200; i += 2)
        free(pieces[i]);
    assert_true(after > before + ((size_t)5 << 20));
}

#if defined(__SANITIZE_ADDRESS__)
UNIT_MAIN(UNIT(free_bytes_are_known))
#else
UNIT_MAIN(UNIT(threads_share_a_heap_that_need_not_grow), UNIT(what_a_crowd_leaves_is_given_back),
          UNIT(free_bytes_are_known))
#endif
