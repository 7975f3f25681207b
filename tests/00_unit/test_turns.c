/* net/turns: how much is read of a connection in a turn follows from what its turns take. */
#include "net/turns.h"

#include "support/unit.h"

#define MOST  ((size_t)65536)
#define TRIES 100000

static struct loop *loop;

static int make(void **state)
{
    (void)state;
    unit_succeeds(loop_new(&loop));
    return 0;
}

static int end(void **state)
{
    (void)state;
    loop_free(loop);
    return 0;
}

static void pass(time_ns span)
{
    while (clock_now_ns() < loop_now(loop) + span)
        ;
}

static void long_turns_halve_it(void **state)
{
    (void)state;
    struct turns_share share = {.bytes = 4 * TURNS_SHARE_LEAST};
    pass(TURNS_SHARE_LONG + 1);
    for (size_t expected = 2; expected; expected /= 2) {
        share.began = loop_now(loop);
        turns_share_done(&share, loop, MOST);
        assert_int_equal(share.bytes, expected * TURNS_SHARE_LEAST);
        assert_int_equal(share.began, 0);
    }
    share.began = loop_now(loop);
    turns_share_done(&share, loop, MOST);
    assert_int_equal(share.bytes, TURNS_SHARE_LEAST);
}

static void short_ones_double_it(void **state)
{
    (void)state;
    struct turns_share share = {.bytes = MOST / 4 + 1};
    for (int i = 0; share.bytes < MOST && i < TRIES;
         i++) { /* the machine may stop this thread in one */
        turns_share_read(&share, share.bytes);
        turns_share_done(&share, loop, MOST);
    }
    assert_int_equal(share.bytes, MOST);
}

static void other_reads_tell_nothing(void **state)
{
    (void)state;
    struct turns_share share = {.bytes = MOST};
    turns_share_read(&share, MOST - 1);
    assert_int_equal(share.began, 0);
    pass(TURNS_SHARE_LONG + 1);
    turns_share_done(&share, loop, MOST);
    assert_int_equal(share.bytes, MOST);
    share.began = loop_now(loop) - 1; /* the turn before */
    turns_share_done(&share, loop, MOST);
    assert_int_equal(share.bytes, MOST);
    assert_int_equal(share.began, 0);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, make, end)

UNIT_MAIN(TEST(long_turns_halve_it), TEST(short_ones_double_it), TEST(other_reads_tell_nothing))
