/* net/turns: how much is read of a connection in a turn follows from what its turns take. */
#include "net/turns.h"

#include "support/unit.h"

#define MOST ((size_t)65536)

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

/* So much of a processor this thread uses up. */
static void use(time_ns span)
{
    time_ns end = clock_thread_ns() + span;
    while (clock_thread_ns() < end)
        ;
}

static void full_read(struct turns_share *share, time_ns span)
{
    turns_share_read(share, loop, share->bytes);
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
    turns_share_read(&share, loop, MOST - 1);
    assert_int_equal(share.full, 0);
    use(TURNS_SHARE_LONG + 1);
    turns_share_done(&share, loop, MOST);
    assert_int_equal(share.bytes, MOST);
    turns_share_read(&share, loop, MOST);
    share.full--; /* the turn before */
    use(TURNS_SHARE_LONG + 1);
    turns_share_done(&share, loop, MOST);
    assert_int_equal(share.bytes, MOST);
    assert_int_equal(share.full, 0);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, make, end)

UNIT_MAIN(TEST(long_turns_halve_it), TEST(short_ones_double_it), TEST(other_reads_tell_nothing))
