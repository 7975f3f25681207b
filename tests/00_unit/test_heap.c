#include "os/heap.h"

#include "os/thread.h"
#include "support/unit.h"

#include <dlfcn.h>
#include <malloc.h>
#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

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
#define LAYER ((size_t)4 << 20)

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

/* Of one thread; another goes on with it where it says so. */
struct arena_end {
    void *last; /* a small piece that lies behind all the others */
    size_t before, after;
    sem_t freed, given_back;
};

/* Small pieces, linked, of which the first lies behind `piece`: they fill the gaps before. */
static void **pieces_until_behind(const void *piece)
{
    void **last = NULL;
    do {
        void **next = malloc(40);
        *next = last;
        last = next;
    } while ((uintptr_t)last < (uintptr_t)piece);
    return last;
}

static void free_all_but_the_last(void *arg)
{
    struct arena_end *a = arg;
    static void *pieces[CROWD];
    void *end = NULL;
    a->before = resident();
    for (size_t i = 0; i < CROWD; i++) {
        pieces[i] = memset(malloc(5000), 1, 5000);
        end = (uintptr_t)pieces[i] > (uintptr_t)end ? pieces[i] : end;
    }
    void **small = pieces_until_behind(end);
    a->last = small;
    for (small = *small; small;) {
        void **next = *small;
        free(small);
        small = next;
    }
    for (size_t i = 0; i < CROWD; i++)
        free(pieces[i]);
    heap_empty_own();
    sem_post(&a->freed);
    sem_wait(&a->given_back);
    heap_shorten_own();
    a->after = resident();
}

/* The last piece of an arena is freed by a thread that uses another one. What lies before it then
 * joins the arena's end when memory is given back, and is not given back itself. */
static void an_arena_that_another_thread_emptied_is_shortened(void **state)
{
    (void)state;
    struct arena_end a = {0};
    struct thread *t;
    sem_init(&a.freed, 0, 0);
    sem_init(&a.given_back, 0, 0);
    unit_succeeds(thread_start("crowd", free_all_but_the_last, &a, &t));
    sem_wait(&a.freed);
    free(a.last);
    heap_empty_own();
    heap_give_back();
    sem_post(&a.given_back);
    thread_join(t);
    sem_destroy(&a.freed);
    sem_destroy(&a.given_back);
    assert_in_range(a.after, 0, a.before + ((size_t)1 << 20));
}

struct layers {
    long large, small; /* page faults of rounds of each */
    size_t kept, left;
};

/* Page faults of this thread while it takes, fills and frees a piece again and again, as a runtime
 * does with what lies between two layers of a network. */
static long faults_of_rounds(size_t size)
{
    struct rusage before, after;
    for (int i = 0; i < 22; i++) {
        if (i == 2) /* the first two may find different places */
            getrusage(RUSAGE_THREAD, &before);
        free(memset(malloc(size), 1, size));
    }
    getrusage(RUSAGE_THREAD, &after);
    return after.ru_minflt - before.ru_minflt;
}

static void take_layers(void *arg)
{
    struct layers *layers = arg;
    size_t before = resident();
    layers->large = faults_of_rounds(LAYER);
    layers->small = faults_of_rounds(LAYER / 20);
    size_t during = resident();
    heap_empty_own();
    heap_give_back();
    heap_shorten_own();
    size_t after = resident();
    layers->kept = during > before ? during - before : 0;
    layers->left = after > before ? after - before : 0;
}

static void assert_kept_for_the_next(const struct layers *layers)
{
    assert_in_range(layers->large, 0, 20);
    assert_in_range(layers->small, 0, 20);
    assert_in_range(layers->kept, LAYER / 2, 2 * LAYER);
    assert_in_range(layers->left, 0, (size_t)256 << 10);
}

static void large_pieces_are_kept_for_the_next(void **state)
{
    (void)state;
    struct layers layers;
    heap_keep_large();
    for (int i = 0; i < 2; i++) { /* the first heap may be this thread's, or the other's */
        struct thread *t;
        unit_succeeds(thread_start("layers", take_layers, &layers, &t));
        thread_join(t);
        assert_kept_for_the_next(&layers);
    }
    take_layers(&layers);
    assert_kept_for_the_next(&layers);
}

struct idle_ends {
    sem_t left, seen;
};

static void leave_an_end_and_wait(void *arg)
{
    struct idle_ends *ends = arg;
    void *pieces[CROWD];
    for (size_t i = 0; i < CROWD; i++)
        pieces[i] = memset(malloc(5000), 1, 5000);
    for (size_t i = 0; i < CROWD; i++)
        free(pieces[i]);
    sem_post(&ends->left);
    sem_wait(&ends->seen);
}

/* Two threads, since the C library gives them arenas by turns: none of them gives anything back
 * itself. */
static void ends_of_threads_that_wait_are_given_back(void **state)
{
    (void)state;
    heap_begin();
    heap_keep_large();
    struct idle_ends ends;
    struct thread *t[2];
    sem_init(&ends.left, 0, 0);
    sem_init(&ends.seen, 0, 0);
    size_t before = resident();
    for (int i = 0; i < 2; i++)
        unit_succeeds(thread_start("waits", leave_an_end_and_wait, &ends, &t[i]));
    for (int i = 0; i < 2; i++)
        sem_wait(&ends.left);
    size_t during = resident();
    heap_give_back();
    size_t after = resident();
    for (int i = 0; i < 2; i++)
        sem_post(&ends.seen);
    for (int i = 0; i < 2; i++)
        thread_join(t[i]);
    sem_destroy(&ends.left);
    sem_destroy(&ends.seen);
    assert_in_range(during, before + ((size_t)8 << 20), SIZE_MAX);
    assert_in_range(after, 0, before + ((size_t)1 << 20));
}

/* How many threads have arenas shortened to nothing at the moment, and had at most. */
static atomic_int shortening, most_shortening;
static _Thread_local bool shortens;

/* In place of the C library's: who begins to shorten gives others the chance to do so, too. */
int mallopt(int what, int value)
{
    int (*real)(int, int);
    *(void **)&real = dlsym(RTLD_NEXT, "mallopt");
    if (what == M_TRIM_THRESHOLD && shortens != !value) {
        shortens = !value;
        int now = atomic_fetch_add(&shortening, shortens ? 1 : -1) + shortens;
        if (now > atomic_load(&most_shortening))
            atomic_store(&most_shortening, now);
        for (int i = 0; shortens && i < 10000 && atomic_load(&shortening) < 2; i++)
            sched_yield();
    }
    return real(what, value);
}

static void shorten_own(void *unused)
{
    (void)unused;
    heap_shorten_own();
}

/* What one sets for it the other would take back before it has freed its piece, and the end of its
 * arena would stay. */
static void threads_shorten_one_after_the_other(void **state)
{
    (void)state;
    heap_begin();
    struct thread *t[2];
    for (int i = 0; i < 2; i++)
        unit_succeeds(thread_start("shorten", shorten_own, NULL, &t[i]));
    for (int i = 0; i < 2; i++)
        thread_join(t[i]);
    assert_int_equal(most_shortening, 1);
}

#endif

static void idle_bytes_are_known(void **state)
{
    (void)state;
    void *pieces[200];
    for (size_t i = 0; i < 200; i++)
        pieces[i] = memset(malloc(60000), 1, 60000);
    int64_t before = heap_idle_bytes();
    for (size_t i = 0; i < 200; i += 2)
        free(pieces[i]);
    int64_t after = heap_idle_bytes();
    for (size_t i = 1; i < 200; i += 2)
        free(pieces[i]);
    assert_true(after > before + ((int64_t)5 << 20));
}

#if defined(__SANITIZE_ADDRESS__)
UNIT_MAIN(UNIT(idle_bytes_are_known))
#else
UNIT_MAIN(UNIT(threads_share_a_heap_that_need_not_grow), UNIT(what_a_crowd_leaves_is_given_back),
          UNIT(an_arena_that_another_thread_emptied_is_shortened),
          UNIT(large_pieces_are_kept_for_the_next), UNIT(ends_of_threads_that_wait_are_given_back),
          UNIT(threads_shorten_one_after_the_other), UNIT(idle_bytes_are_known))
#endif
