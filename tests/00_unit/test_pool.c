#include "os/pool.h"

#include "base/budget.h"
#include "os/thread.h"
#include "support/unit.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static struct buf *get(size_t size)
{
    struct buf *b = NULL;
    unit_succeeds(pool_buf(size, &b));
    assert_int_equal(b->size, size);
    assert_int_equal((uintptr_t)b->data % 64, 0);
    memset(b->data, 0x5a, size);
    return b;
}

static void sizes_and_charges(void **state)
{
    (void)state;
    const size_t sizes[] = {0,
                            1,
                            63,
                            64,
                            65,
                            4096,
                            POOL_MAPPED_BYTES - 1,
                            POOL_MAPPED_BYTES,
                            POOL_MAPPED_BYTES + 1,
                            100000,
                            (size_t)2 << 20,
                            ((size_t)2 << 20) + 1,
                            (size_t)5 << 20};
    struct buf *all[sizeof(sizes) / sizeof(sizes[0])];
    size_t sum = 0;
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        all[i] = get(sizes[i]);
        sum += sizes[i];
        assert_int_equal(budget_in_use(), sum);
    }
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
        buf_unref(all[i]);
    assert_int_equal(budget_in_use(), 0);
    assert_int_equal(pool_trim(TIME_NEVER), 0);
}

/* A mapped buffer stays warm, and is used again for its size class; trimming gives back what is
 * old only. */
static void warm_buffers(void **state)
{
    (void)state;
    struct buf *b = get(100000);
    void *data = b->data;
    time_ns before = clock_now_ns();
    buf_unref(b);
    assert_int_equal(pool_trim(before), 131072);
    b = get(120000);
    assert_ptr_equal(b->data, data);
    assert_int_equal(b->data[99999], 0x5a);
    buf_unref(b);
    assert_int_equal(pool_trim(clock_now_ns() + 1), 0);
}

static void assert_zeros(const struct buf *b)
{
    for (size_t i = 0; i < b->size; i++)
        assert_int_equal(b->data[i], 0);
}

/* Nothing of earlier users is left in it, also of those who had more or less of the same memory,
 * or were announced more. */
static void zeroed_buffers(void **state)
{
    (void)state;
    const size_t sizes[] = {1, 4096, POOL_MAPPED_BYTES - 1, 70000, 131072, (size_t)3 << 20};
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        const size_t before[] = {sizes[i], sizes[i] - sizes[i] / 3, sizes[i] + sizes[i] / 4};
        for (size_t k = 0; k < sizeof(before) / sizeof(before[0]); k++) {
            buf_unref(get(before[k]));
            struct buf *b = NULL;
            unit_succeeds(pool_buf_zeroed(sizes[i], &b));
            assert_int_equal(b->size, sizes[i]);
            assert_zeros(b);
            memset(b->data, 0x5a, b->size);
            buf_unref(b);
            unit_succeeds(pool_buf_arriving(before[k], &b));
            memset(b->data, 0x5a, b->size);
            buf_unref(b);
            unit_succeeds(pool_buf_zeroed(sizes[i], &b));
            assert_zeros(b);
            buf_unref(b);
        }
    }
    assert_int_equal(budget_in_use(), 0);
    pool_trim(TIME_NEVER);
}

/* As many slices as it takes, none of which takes long; what is on its way back is not used
 * again. */
static void given_back_by_slices(void **state)
{
    (void)state;
    enum { COUNT = 3 };
    const size_t slice = (size_t)4 << 20;
    struct buf *b[COUNT];
    for (int i = 0; i < COUNT; i++)
        b[i] = get((size_t)16 << 20);
    for (int i = 0; i < COUNT; i++)
        buf_unref(b[i]);
    size_t kept;
    size_t left = COUNT * 4 * slice;
    assert_false(pool_trim_some(0, slice, &kept));
    assert_int_equal(kept, left);
    assert_true(pool_trim_some(TIME_NEVER, slice, &kept));
    struct buf *meanwhile = get((size_t)16 << 20); /* whole, and no part of what is leaving */
    do {
        left -= slice;
        assert_int_equal(kept, left);
    } while (pool_trim_some(TIME_NEVER, slice, &kept));
    assert_int_equal(left, slice);
    assert_int_equal(kept, 0);
    meanwhile->data[((size_t)16 << 20) - 1] = 1;
    buf_unref(meanwhile);
    assert_int_equal(pool_trim(TIME_NEVER), 0);
}

/* What was only announced has no memory behind it: a slice of any size gives it back. */
static void announced_only(void **state)
{
    (void)state;
    struct buf *b;
    unit_succeeds(pool_buf_arriving((size_t)1 << 32, &b));
    buf_unref(b);
    size_t kept;
    assert_false(pool_trim_some(TIME_NEVER, (size_t)2 << 20, &kept));
    assert_int_equal(kept, 0);
}

static void huge_pages_are_aligned(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++) {
        struct buf *b = get((size_t)3 << 20);
        assert_int_equal((uintptr_t)b->data % ((size_t)2 << 20), 0);
        buf_unref(b);
        pool_trim(TIME_NEVER);
    }
}

/* Whether the mapping around an address was advised to have huge pages. */
static bool wants_huge_pages(const void *at)
{
    FILE *f = fopen("/proc/self/smaps", "re");
    assert_non_null(f);
    char line[512];
    bool here = false, huge = false;
    while (fgets(line, sizeof(line), f)) {
        unsigned long from, to;
        if (sscanf(line, "%lx-%lx ", &from, &to) == 2)
            here = from <= (uintptr_t)at && (uintptr_t)at < to;
        else if (here && strncmp(line, "VmFlags:", 8) == 0)
            huge = strstr(line, " hg");
    }
    fclose(f);
    return huge;
}

static bool next_is_huge(struct budget_account *a, size_t size)
{
    struct buf *b;
    unit_succeeds(pool_buf_of(a, size, 0, &b));
    bool huge = wants_huge_pages(b->data + size - 1);
    buf_unref(b);
    return huge;
}

/* Who has never sent a large message to its end makes no thread wait for a huge page, and gets
 * no mapping that has them from others. Each whole message is worth one. */
static void who_sends_whole_messages_has_huge_pages(void **state)
{
    (void)state;
    const size_t page = (size_t)2 << 20;
    const size_t size = 4 * page;
    struct budget_account *a = budget_account_new();
    struct buf *b = get(size);
    assert_true(wants_huge_pages(b->data + page));
    assert_false(wants_huge_pages(b->data));
    buf_unref(b);
    assert_false(next_is_huge(a, size));
    assert_false(next_is_huge(NULL, size));
    pool_whole(a, page);
    assert_false(next_is_huge(a, size));
    pool_whole(a, page + 1);
    assert_false(next_is_huge(a, page)); /* small ones leave it */
    pool_whole(a, size);
    assert_true(next_is_huge(a, size));
    assert_true(next_is_huge(a, size));
    assert_false(next_is_huge(a, size));
    pool_whole(NULL, size);
    budget_account_close(a);
    assert_int_equal(pool_trim(TIME_NEVER), 0);
}

static struct buf *coming(struct budget_account *a, size_t size, bool huge)
{
    struct buf *b;
    unit_succeeds(pool_buf_of(a, size, 0, &b));
    assert_int_equal(wants_huge_pages(b->data + size - 1), huge);
    return b;
}

/* A message that comes whole in a new mapping with huge pages. Returns where that is. */
static const void *came_whole(struct budget_account *a, size_t size)
{
    pool_whole(a, size);
    struct buf *b = coming(a, size, true);
    const void *data = b->data;
    unit_succeeds(pool_arrived(b, size));
    buf_unref(b);
    return data;
}

/* Who may have huge pages takes a mapping that was used without them rather than new memory. */
static void warm_memory_comes_before_huge_pages(void **state)
{
    (void)state;
    const size_t size = (size_t)6 << 20;
    struct budget_account *a = budget_account_new();
    struct buf *b = coming(a, size, false);
    const void *data = b->data;
    buf_unref(b);
    assert_ptr_equal(came_whole(a, size), data);
    b = get(size);
    assert_ptr_equal(b->data, data);
    assert_false(wants_huge_pages(b->data));
    buf_unref(b);
    budget_account_close(a);
    assert_int_equal(pool_trim(TIME_NEVER), 0);
}

/* Who may have no huge pages borrows those that came before, where all of them are there. Nobody
 * maps new ones meanwhile. */
static void huge_pages_that_came_are_lent(void **state)
{
    (void)state;
    const size_t size = (size_t)6 << 20;
    struct budget_account *a = budget_account_new();
    const void *data = came_whole(a, size);
    struct buf *b = coming(NULL, size, true);
    assert_ptr_equal(b->data, data);
    for (int i = 0; i < 2; i++) { /* new, then warm */
        pool_whole(a, size);
        buf_unref(coming(a, size, false));
    }
    buf_unref(b);
    assert_ptr_equal(came_whole(a, size), data);
    pool_trim(TIME_NEVER);
    buf_unref(get(size)); /* which is not known to have been filled */
    buf_unref(coming(NULL, size, false));
    pool_trim(TIME_NEVER);
    came_whole(a, size);
    came_whole(a, size - 1);
    buf_unref(coming(NULL, size, true));
    buf_unref(coming(NULL, size + 1, false));
    budget_account_close(a);
    assert_int_equal(pool_trim(TIME_NEVER), 0);
}

/* They are not lent where a buffer is taken without what is not charged for: that would take
 * the memory from those who have earned it. Nor are they once that has happened. */
static void what_is_scarce_is_not_lent(void **state)
{
    (void)state;
    const size_t size = (size_t)6 << 20;
    struct budget_account *a = budget_account_new();
    came_whole(a, size);
    budget_set_limit(8 * size);
    buf_unref(coming(NULL, size, true));
    budget_set_limit(8 * size - 1);
    buf_unref(coming(NULL, size, false));
    pool_whole(a, size);
    buf_unref(coming(a, size, true));
    budget_set_limit(SIZE_MAX);
    struct buf *small = coming(NULL, size, false);
    buf_unref(coming(NULL, size, false));
    buf_unref(small);
    budget_account_close(a);
    assert_int_equal(pool_trim(TIME_NEVER), 0);
}

static void budget_is_asked_first(void **state)
{
    (void)state;
    struct buf *b = NULL;
    budget_set_limit(1000);
    unit_fails(pool_buf(1001, &b), STATUS_UNAVAILABLE, "no room for 1001 bytes");
    unit_fails(pool_buf(SIZE_MAX, &b), STATUS_UNAVAILABLE, "no room for");
    assert_null(b);
    budget_set_limit(SIZE_MAX);
    assert_int_equal(budget_in_use(), 0);
}

/* What a peer only announces costs a page of the budget; what comes is charged, twice as much at
 * most up to the first huge page, and all of it is given back. */
static void announced_bytes_are_charged_as_they_come(void **state)
{
    (void)state;
    const size_t page = (size_t)2 << 20;
    struct buf *b = NULL;
    unit_succeeds(pool_buf_arriving(1000, &b));
    assert_int_equal(budget_in_use(), 1000);
    unit_succeeds(pool_arrived(b, 1000));
    assert_int_equal(budget_in_use(), 1000);
    buf_unref(b);
    budget_set_limit(3 * page);
    unit_succeeds(pool_buf_arriving(100 * page + 5, &b));
    assert_int_equal(b->size, 100 * page + 5);
    const size_t arrived[] = {1, 4096, 4097, 65536, 65537, page / 2 + 1, page};
    const size_t charged[] = {4096, 4096, 8192, 65536, 131072, page, page};
    for (size_t i = 0; i < sizeof(arrived) / sizeof(arrived[0]); i++) {
        unit_succeeds(pool_arrived(b, arrived[i]));
        assert_int_equal(budget_in_use(), charged[i]);
    }
    unit_succeeds(pool_arrived(b, page + 1));
    assert_int_equal(budget_in_use(), 2 * page);
    unit_fails(pool_arrived(b, 3 * page + 1), STATUS_UNAVAILABLE, "no room for");
    assert_int_equal(budget_in_use(), 2 * page);
    budget_set_limit(SIZE_MAX);
    unit_succeeds(pool_arrived(b, 100 * page + 5));
    assert_int_equal(budget_in_use(), 100 * page + 5);
    buf_unref(b);
    assert_int_equal(budget_in_use(), 0);
    pool_trim(TIME_NEVER);
}

/* For the beginning of a message there must be room, up to a huge page, but only what comes is
 * charged; what is there already is charged at once. */
static void room_for_the_beginning(void **state)
{
    (void)state;
    const size_t page = (size_t)2 << 20;
    struct buf *b = NULL;
    budget_set_limit(page + 4096);
    assert_true(budget_charge(4097));
    unit_fails(pool_buf_arriving(page, &b), STATUS_UNAVAILABLE, "no room for 2097152 bytes");
    unit_fails(pool_buf_arriving(page + 1, &b), STATUS_UNAVAILABLE, "no room for 2097153 bytes");
    budget_release(1);
    unit_succeeds(pool_buf_arriving(page + 1, &b));
    assert_int_equal(budget_in_use(), 2 * 4096);
    buf_unref(b);
    unit_succeeds(pool_buf_of(NULL, 100000, 100000, &b));
    assert_int_equal(budget_in_use(), 4096 + 100000);
    buf_unref(b);
    budget_release(4096);
    budget_set_limit(SIZE_MAX);
    pool_trim(TIME_NEVER);
}

/* Who writes before he knows whether he may keep it is told how far: to the end of a page that
 * is charged. */
static void room_is_charged_before_it_is_written(void **state)
{
    (void)state;
    const size_t page = (size_t)2 << 20;
    struct buf *b = NULL;
    budget_set_limit(2 * page);
    unit_succeeds(pool_buf_arriving(5 * page, &b));
    assert_int_equal(pool_room(b, page), page);
    assert_int_equal(pool_room(b, page + 1), 2 * page);
    assert_int_equal(budget_in_use(), 2 * page);
    assert_int_equal(pool_room(b, 2 * page + 1), 2 * page);
    assert_int_equal(budget_in_use(), 2 * page);
    unit_succeeds(pool_arrived(b, 2 * page));
    unit_fails(pool_arrived(b, 2 * page + 1), STATUS_UNAVAILABLE, "no room for");
    budget_set_limit(SIZE_MAX);
    assert_int_equal(pool_room(b, 4 * page + 1), 5 * page);
    buf_unref(b);
    assert_int_equal(budget_in_use(), 0);
    pool_trim(TIME_NEVER);
}

/* Where the budget is spent a peer still has its allowance for what is short, whatever becomes
 * of the peer meanwhile. */
static void short_ones_are_within_the_allowance(void **state)
{
    (void)state;
    struct budget_account *a = budget_account_new();
    struct buf *b = NULL;
    struct buf *more = NULL;
    budget_set_limit(BUDGET_STEP);
    assert_true(budget_charge(BUDGET_STEP));
    unit_fails(pool_buf_of(NULL, 100, 0, &b), STATUS_UNAVAILABLE, "no room for 100 bytes");
    unit_fails(pool_buf_of(a, BUDGET_STEP, 0, &b), STATUS_UNAVAILABLE, "no room for 16384 bytes");
    unit_succeeds(pool_buf_of(a, BUDGET_STEP - 1, 0, &b));
    assert_int_equal(b->size, BUDGET_STEP - 1);
    unit_succeeds(pool_arrived(b, BUDGET_STEP - 1));
    unit_fails(pool_buf_of(a, 1, 0, &more), STATUS_UNAVAILABLE, "no room for 1 bytes");
    assert_int_equal(budget_in_use(), BUDGET_STEP);
    budget_account_close(a);
    assert_int_equal(budget_in_use(), 2 * BUDGET_STEP - 1);
    buf_unref(b);
    assert_int_equal(budget_in_use(), BUDGET_STEP);
    budget_release(BUDGET_STEP);
    budget_set_limit(SIZE_MAX);
}

#if !defined(__SANITIZE_THREAD__) /* which keeps books of its own in memory */
static size_t resident_bytes(void)
{
    unsigned long all, resident;
    FILE *f = fopen("/proc/self/statm", "re");
    assert_non_null(f);
    assert_int_equal(fscanf(f, "%lu %lu", &all, &resident), 2);
    fclose(f);
    return resident * (size_t)sysconf(_SC_PAGESIZE);
}

/* Messages that are given up while they arrive, one after the other beside others that have
 * begun: what each of them had touched does not add up, though nobody is charged for it any
 * more. */
static void what_is_warm_stays_within_the_budget(void **state)
{
    (void)state;
    enum { BUFFERS = 8 };
    const size_t page = (size_t)2 << 20;
    const size_t limit = 32 * page;
    const size_t much = limit - (BUFFERS - 1) * page;
    struct buf *b[BUFFERS];
    size_t before = resident_bytes();
    budget_set_limit(limit);
    for (int i = 0; i < BUFFERS; i++)
        unit_succeeds(pool_buf_arriving((size_t)1 << 30, &b[i]));
    for (int i = 0; i < 3 * BUFFERS; i++) {
        struct buf **one = &b[i % BUFFERS];
        unit_succeeds(pool_arrived(*one, much));
        memset((*one)->data, 0x5a, much);
        buf_unref(*one);
        unit_succeeds(pool_buf_arriving((size_t)1 << 30, one));
        assert_in_range(resident_bytes() - before, 0, limit + limit / 4);
    }
    for (int i = 0; i < BUFFERS; i++)
        buf_unref(b[i]);
    budget_set_limit(SIZE_MAX);
    assert_int_equal(pool_trim(TIME_NEVER), 0);
}

/* Announcements that get what others had touched do not keep it: else whole messages and
 * announcements by turns would add up. */
static void announcements_keep_nothing_of_others(void **state)
{
    (void)state;
    enum { MIB = 1 << 20, LIMIT = 32, ROUNDS = 4 };
    struct buf *announced[ROUNDS * LIMIT];
    struct buf *b[LIMIT];
    size_t count = 0;
    size_t before = resident_bytes();
    budget_set_limit((size_t)(LIMIT + 1) * MIB);
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < LIMIT; i++)
            b[i] = get(MIB - 8192);
        for (int i = 0; i < LIMIT; i++)
            buf_unref(b[i]);
        assert_in_range(resident_bytes() - before, 0, (size_t)(LIMIT + LIMIT / 4) * MIB);
        for (int i = 0; i < LIMIT; i++)
            unit_succeeds(pool_buf_arriving(MIB - 8192, &announced[count++]));
    }
    while (count)
        buf_unref(announced[--count]);
    budget_set_limit(SIZE_MAX);
    assert_int_equal(pool_trim(TIME_NEVER), 0);
}
#endif

/* Sizes that no machine has are errors, and nothing stays charged. */
static void sizes_that_cannot_be(void **state)
{
    (void)state;
    const size_t sizes[] = {SIZE_MAX,         SIZE_MAX - 64, SIZE_MAX / 2 + 2,
                            SIZE_MAX / 2 + 1, SIZE_MAX / 2,  (size_t)1 << 62};
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        struct buf *b = NULL;
        unit_fails(pool_buf(sizes[i], &b), STATUS_UNAVAILABLE, "no memory for");
        assert_null(b);
        assert_int_equal(budget_in_use(), 0);
    }
}

static void get_and_drop(void *arg)
{
    uint64_t rng = (uintptr_t)arg;
    for (int i = 0; i < 500; i++) {
        struct buf *b;
        struct err *e = pool_buf(30000 + unit_random(&rng) % 100000, &b);
        err_free(e);
        if (e)
            continue;
        b->data[0] = 1;
        b->data[b->size - 1] = 2;
        buf_unref(b);
        if (i % 50 == 0)
            pool_trim(clock_now_ns());
    }
}

static void many_threads(void **state)
{
    (void)state;
    struct thread *threads[4];
    for (uintptr_t i = 0; i < 4; i++)
        unit_succeeds(thread_start("pool", get_and_drop, (void *)(i + 1), &threads[i]));
    for (int i = 0; i < 4; i++)
        thread_join(threads[i]);
    assert_int_equal(budget_in_use(), 0);
    assert_int_equal(pool_trim(TIME_NEVER), 0);
}

UNIT_MAIN(UNIT(sizes_and_charges), UNIT(warm_buffers), UNIT(zeroed_buffers),
          UNIT(given_back_by_slices), UNIT(announced_only), UNIT(huge_pages_are_aligned),
          UNIT(who_sends_whole_messages_has_huge_pages), UNIT(warm_memory_comes_before_huge_pages),
          UNIT(huge_pages_that_came_are_lent), UNIT(what_is_scarce_is_not_lent),
          UNIT(budget_is_asked_first), UNIT(announced_bytes_are_charged_as_they_come),
          UNIT(room_for_the_beginning), UNIT(room_is_charged_before_it_is_written),
          UNIT(short_ones_are_within_the_allowance),
#if !defined(__SANITIZE_THREAD__)
          UNIT(what_is_warm_stays_within_the_budget), UNIT(announcements_keep_nothing_of_others),
#endif
          UNIT(sizes_that_cannot_be), UNIT(many_threads))
