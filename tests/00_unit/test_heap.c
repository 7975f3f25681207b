#include "os/heap.h"

#include "os/thread.h"
#include "support/unit.h"

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

static size_t resident(void)
{
    unsigned long all, here;
    FILE *statm = fopen("/proc/self/statm", "r");
    assert_non_null(statm);
    assert_int_equal(fscanf(statm, "%lu %lu", &all, &here), 2);
    fclose(statm);
    return here * 4096;
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
#if defined(__SANITIZE_THREAD__)
    skip(); /* its heap takes the C library's settings, and leaves them */
#endif
    if (!mallopt(M_ARENA_MAX, 2))
        skip(); /* the heap of another sanitizer */
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

UNIT_MAIN(UNIT(threads_share_a_heap_that_need_not_grow))
