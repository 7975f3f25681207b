#include "base/slab.h"

#include "os/thread.h"
#include "support/unit.h"

#include <pthread.h>
#include <semaphore.h>
#include <string.h>

static const struct slab small = {.kind = SLAB_TEST_SMALL, .object_bytes = 100};
static const struct slab large = {.kind = SLAB_TEST, .object_bytes = 5000};

static void reused_and_aligned(void **state)
{
    (void)state;
    slab_thread_begin();
    void *a = slab_alloc(&small);
    void *b = slab_alloc(&large);
    assert_int_equal((uintptr_t)a % 64, 0);
    assert_int_equal((uintptr_t)b % 64, 0);
    memset(a, 1, small.object_bytes);
    memset(b, 2, large.object_bytes);
    slab_free(&small, a);
    slab_free(&large, b);
    assert_ptr_equal(slab_alloc(&small), a);
    assert_ptr_equal(slab_alloc(&large), b);
    slab_free(&small, a);
    slab_free(&large, b);
    slab_thread_end();
}

/* More than a thread keeps goes back to the heap (the leak checker counts the rest). */
/* What a thread's lists do not take, and what they have when the thread ends, is free: the leak
 * checker would find it. */
static void full_lists_give_back(void **state)
{
    (void)state;
    slab_thread_begin();
    void *all[SLAB_KEEP * 2];
    for (size_t i = 0; i < SLAB_KEEP * 2; i++)
        all[i] = slab_alloc(&small);
    for (size_t i = 0; i < SLAB_KEEP * 2; i++)
        slab_free(&small, all[i]);
    slab_thread_end();
    slab_thread_end();
}

/* A thread that is not ours, such as a host's, keeps nothing: the leak checker would find it. */
static void *stranger(void *arg)
{
    (void)arg;
    slab_free(&small, slab_alloc(&small));
    return NULL;
}

static void strangers_keep_nothing(void **state)
{
    (void)state;
    pthread_t t;
    assert_int_equal(pthread_create(&t, NULL, stranger, NULL), 0);
    pthread_join(t, NULL);
}

/* Lists that other tests put down; they go after some trims. */
static void clear_shelves(void)
{
    for (int i = 0; i < 8; i++)
        slab_trim();
}

/* What was not needed since the last look goes back to the heap; what was in use meanwhile
 * stays. */
static void trimmed_to_what_is_needed(void **state)
{
    (void)state;
    clear_shelves();
    slab_thread_begin();
    void *all[20];
    for (size_t i = 0; i < 20; i++)
        all[i] = slab_alloc(&small);
    for (size_t i = 0; i < 20; i++)
        slab_free(&small, all[i]);
    assert_int_equal(slab_trim(), 0); /* all 20 were needed */
    for (size_t i = 0; i < 5; i++)
        all[i] = slab_alloc(&small);
    for (size_t i = 0; i < 5; i++)
        slab_free(&small, all[i]);
    assert_int_equal(slab_trim(), 15);
    assert_int_equal(slab_trim(), 5);
    assert_int_equal(slab_trim(), 0);
    slab_thread_end();
}

static void free_there(void *arg)
{
    void **objects = arg;
    for (int i = 0; i < 10; i++)
        slab_free(&small, objects[i]);
}

static void freed_by_another_thread(void **state)
{
    (void)state;
    void *objects[10];
    struct thread *t;
    for (int i = 0; i < 10; i++)
        objects[i] = slab_alloc(&small);
    unit_succeeds(thread_start("free", free_there, objects, &t));
    thread_join(t);
    slab_thread_end();
}

/* A thread that has no housekeeping, which works in periods that another thread ends. */
struct slow {
    void (*work)(struct slow *s, size_t period);
    size_t periods;
    size_t takes; /* of the thread itself, in each period */
    size_t kept;
    void *objects[SLAB_KEEP / 2];
    sem_t next, done;
};

static void work_slowly(void *arg)
{
    struct slow *s = arg;
    for (size_t i = 0; i < s->periods; i++) {
        sem_wait(&s->next);
        s->work(s, i);
        sem_post(&s->done);
    }
    s->kept = slab_trim();
    s->kept += slab_trim();
}

static void run_slow_work(struct slow *s)
{
    struct thread *t;
    sem_init(&s->next, 0, 0);
    sem_init(&s->done, 0, 0);
    unit_succeeds(thread_start("slow", work_slowly, s, &t));
    for (size_t i = 0; i < s->periods; i++) {
        sem_post(&s->next);
        sem_wait(&s->done);
        slab_trim();
    }
    thread_join(t);
}

static void free_one(struct slow *s, size_t period)
{
    void *own[SLAB_KEEP];
    for (size_t k = 0; k < s->takes; k++)
        own[k] = slab_alloc(&small);
    for (size_t k = 0; k < s->takes; k++)
        slab_free(&small, own[k]);
    slab_free(&small, s->objects[period]);
}

static size_t kept_of_frees(size_t takes)
{
    struct slow s = {.work = free_one, .periods = SLAB_KEEP / 2, .takes = takes};
    for (size_t i = 0; i < s.periods; i++)
        s.objects[i] = slab_alloc(&small);
    run_slow_work(&s);
    return s.kept;
}

static void take_one(struct slow *s, size_t period)
{
    s->objects[period] = slab_alloc(&small);
}

/* A thread that picks up a list and then takes an object now and then does not keep the rest. */
static void a_list_that_is_hardly_used_goes(void **state)
{
    (void)state;
    struct slow s = {.work = take_one, .periods = 3};
    void *all[SLAB_KEEP + 1];
    clear_shelves();
    slab_thread_begin();
    for (size_t i = 0; i < SLAB_KEEP + 1; i++)
        all[i] = slab_alloc(&small);
    for (size_t i = 0; i < SLAB_KEEP + 1; i++)
        slab_free(&small, all[i]); /* a list is put down */
    run_slow_work(&s);
    assert_int_equal(s.kept, 0);
    for (size_t i = 0; i < s.periods; i++)
        slab_free(&small, s.objects[i]);
    slab_thread_end();
}

/* A thread that has no housekeeping keeps what it needs, not all that it ever freed. */
static void slow_work_keeps_little(void **state)
{
    (void)state;
    clear_shelves();
    assert_in_range(kept_of_frees(0), 1, 2);
    assert_in_range(kept_of_frees(10), 11, 13);
}

struct trade {
    void *freed[SLAB_KEEP];
    size_t known; /* of the objects that the other thread took, how many are of those */
};

static void take_there(void *arg)
{
    struct trade *t = arg;
    void *taken[SLAB_KEEP];
    for (size_t i = 0; i < SLAB_KEEP; i++) {
        taken[i] = slab_alloc(&small);
        for (size_t k = 0; k < SLAB_KEEP; k++)
            t->known += taken[i] == t->freed[k];
    }
    for (size_t i = 0; i < SLAB_KEEP; i++)
        slab_free(&small, taken[i]);
}

/* A thread that frees more than it takes puts full lists down, and one that takes more than it
 * frees picks them up. */
static void full_lists_change_hands(void **state)
{
    (void)state;
    struct trade trade = {.known = 0};
    struct thread *t;
    clear_shelves();
    slab_thread_begin();
    for (size_t i = 0; i < SLAB_KEEP; i++)
        trade.freed[i] = slab_alloc(&small);
    void *one_more = slab_alloc(&small);
    for (size_t i = 0; i < SLAB_KEEP; i++)
        slab_free(&small, trade.freed[i]);
    slab_free(&small, one_more);
    unit_succeeds(thread_start("take", take_there, &trade, &t));
    thread_join(t);
    assert_int_equal(trade.known, SLAB_KEEP);
    slab_thread_end();
}

/* What was put down and nobody picks up goes after a few trims. */
static void nobody_picks_up(void **state)
{
    (void)state;
    void *all[SLAB_KEEP + 1];
    clear_shelves();
    slab_thread_begin();
    for (size_t i = 0; i < SLAB_KEEP + 1; i++)
        all[i] = slab_alloc(&small);
    for (size_t i = 0; i < SLAB_KEEP + 1; i++)
        slab_free(&small, all[i]);
    slab_thread_end(); /* the one that was not put down */
    assert_int_equal(slab_trim(), 0);
    assert_int_equal(slab_trim(), 0);
    assert_int_equal(slab_trim(), SLAB_KEEP);
    assert_int_equal(slab_trim(), 0);
}

/* Many of them go by and by. */
static void many_are_cleared_by_and_by(void **state)
{
    (void)state;
    static void *all[(SLAB_CLEAR + 3) * SLAB_KEEP];
    size_t count = sizeof(all) / sizeof(*all);
    clear_shelves();
    slab_thread_begin();
    for (size_t i = 0; i < count; i++)
        all[i] = slab_alloc(&small);
    for (size_t i = 0; i < count; i++)
        slab_free(&small, all[i]);
    slab_thread_end(); /* the last list */
    assert_int_equal(slab_trim(), 0);
    assert_int_equal(slab_trim_on(), 0);
    assert_int_equal(slab_trim(), 0);
    assert_int_equal(slab_trim(), SLAB_CLEAR * SLAB_KEEP);
    assert_int_equal(slab_trim_on(), 2 * SLAB_KEEP);
    assert_int_equal(slab_trim_on(), 0);
}

UNIT_MAIN(UNIT(reused_and_aligned), UNIT(full_lists_give_back), UNIT(strangers_keep_nothing),
          UNIT(trimmed_to_what_is_needed), UNIT(freed_by_another_thread),
          UNIT(slow_work_keeps_little), UNIT(a_list_that_is_hardly_used_goes),
          UNIT(full_lists_change_hands), UNIT(nobody_picks_up), UNIT(many_are_cleared_by_and_by))
