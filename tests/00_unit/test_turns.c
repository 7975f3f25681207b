/* net/turns: how much is read of a connection in a turn follows from what its turns take. */
#include "net/turns.h"

#include "support/unit.h"

#define MOST ((size_t)65536)

static struct loop *loop;
static struct worker_reader reader;

static int make(void **state)
{
    (void)state;
    unit_succeeds(loop_new(&loop));
    reader = (struct worker_reader){0};
    return 0;
}

static int end(void **state)
{
    (void)state;
    loop_free(loop);
    return 0;
}

/* So much of a processor this thread uses up. */
static void use(time_ns span)
{
    time_ns end = clock_thread_ns() + span;
    while (clock_thread_ns() < end)
        ;
}

static void full_read(struct turns_share *share, time_ns span)
{
    turns_share_read(share, &reader, loop, share->bytes, MOST);
    assert_int_equal(share->full, loop_now(loop));
    use(span);
    turns_share_done(share, loop, MOST);
    assert_int_equal(share->full, 0);
}

static void long_turns_halve_it(void **state)
{
    (void)state;
    struct turns_share share = {.bytes = 4 * TURNS_SHARE_LEAST};
    for (size_t expected = 2; expected; expected /= 2) {
        full_read(&share, TURNS_SHARE_LONG + 1);
        assert_int_equal(share.bytes, expected * TURNS_SHARE_LEAST);
    }
    full_read(&share, TURNS_SHARE_LONG + 1);
    assert_int_equal(share.bytes, TURNS_SHARE_LEAST);
}

/* What is read of a long message is copied to fresh memory: that may be most of the turn. */
static void long_reads_halve_it(void **state)
{
    (void)state;
    struct turns_share share = {.bytes = MOST / 2};
    time_ns began = clock_thread_ns();
    use(TURNS_SHARE_LONG + 1);
    turns_share_read(&share, &reader, loop, share.bytes, MOST);
    turns_share_began(&share, began);
    turns_share_done(&share, loop, MOST);
    assert_int_equal(share.bytes, MOST / 4);
    turns_share_read(&share, &reader, loop, 1, MOST); /* not full: it does not count */
    turns_share_began(&share, began);
    turns_share_done(&share, loop, MOST);
    assert_int_equal(share.bytes, MOST / 4);
}

static void short_ones_double_it(void **state)
{
    (void)state;
    struct turns_share share = {.bytes = MOST / 4 + 1};
    full_read(&share, 0);
    full_read(&share, 0);
    assert_int_equal(share.bytes, MOST);
    full_read(&share, 0);
    assert_int_equal(share.bytes, MOST);
}

static void other_reads_tell_nothing(void **state)
{
    (void)state;
    struct turns_share share = {.bytes = MOST};
    turns_share_read(&share, &reader, loop, MOST - 1, MOST);
    assert_int_equal(share.full, 0);
    use(TURNS_SHARE_LONG + 1);
    turns_share_done(&share, loop, MOST);
    assert_int_equal(share.bytes, MOST);
    turns_share_read(&share, &reader, loop, MOST, MOST);
    share.full--; /* the turn before */
    use(TURNS_SHARE_LONG + 1);
    turns_share_done(&share, loop, MOST);
    assert_int_equal(share.bytes, MOST);
    assert_int_equal(share.full, 0);
}

/* A full read that took as long as here is neither long nor short. */
static struct turns_share after_a_full_read(time_ns took)
{
    struct turns_share share = {
        .bytes = MOST / 4, .full = loop_now(loop), .most = TURNS_SHARE_LONG};
    share.began = clock_thread_ns() - took;
    turns_share_done(&share, loop, MOST);
    assert_int_equal(share.bytes, MOST / 4);
    return share;
}

/* A client that sends a little more than is read of it, again and again. */
static void a_rest_that_is_quickly_done_is_read_with_the_first_part(void **state)
{
    (void)state;
    struct turns_share share = after_a_full_read(TURNS_SHARE_LONG / 2 + TIME_US(10));
    turns_share_read(&share, &reader, loop, MOST / 8, MOST);
    assert_int_equal(share.bytes, MOST / 2);
    turns_share_read(&share, &reader, loop, MOST / 8, MOST);
    assert_int_equal(share.bytes, MOST / 2);
}

static void a_long_rest_is_not(void **state)
{
    (void)state;
    struct turns_share share = after_a_full_read(TURNS_SHARE_LONG - TIME_US(40));
    turns_share_read(&share, &reader, loop, MOST / 8, MOST);
    assert_int_equal(share.bytes, MOST / 4);
}

static void more_full_reads_are_not_a_rest(void **state)
{
    (void)state;
    struct turns_share share = after_a_full_read(TURNS_SHARE_LONG / 2 + TIME_US(10));
    full_read(&share, TURNS_SHARE_LONG + 1);
    assert_int_equal(share.bytes, MOST / 8);
    turns_share_read(&share, &reader, loop, 1, MOST);
    assert_int_equal(share.bytes, MOST / 8);
}

/* The time of a turn that takes as long as here is long where others wait for it. */
static void a_connection_that_is_alone_may_take_longer(void **state)
{
    (void)state;
    const time_ns span = (TURNS_SHARE_LONG + TURNS_SHARE_ALONE) / 2;
    struct turns_share share = {.bytes = MOST / 4}, other = {.bytes = MOST};
    full_read(&share, span);
    assert_int_equal(share.bytes, MOST / 8);
    assert_ptr_equal(reader.last, &share);
    reader.since -= TURNS_ALONE_AFTER + 1;
    full_read(&share, span);
    assert_int_equal(share.bytes, MOST / 8);
    turns_share_read(&other, &reader, loop, 1, MOST);
    full_read(&share, span);
    assert_int_equal(share.bytes, MOST / 16);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, make, end)

UNIT_MAIN(TEST(long_turns_halve_it), TEST(long_reads_halve_it), TEST(short_ones_double_it),
          TEST(other_reads_tell_nothing),
          TEST(a_rest_that_is_quickly_done_is_read_with_the_first_part), TEST(a_long_rest_is_not),
          TEST(more_full_reads_are_not_a_rest), TEST(a_connection_that_is_alone_may_take_longer))
