/* cloud/web/retry: pauses that grow, an end by attempts and by time. Time is a parameter. */
#include "cloud/web/retry.h"

#include "support/unit.h"

static void pauses_grow_and_differ(void **state)
{
    (void)state;
    time_ns first[5];
    bool differ = false;
    for (uint64_t seed = 1; seed <= 5; seed++) {
        struct retry r;
        time_ns now = TIME_S(1000);
        time_ns at;
        retry_init(&r, now, TIME_S(600), seed);
        for (unsigned i = 0; i < RETRY_MAX_ATTEMPTS - 1; i++) {
            time_ns full = TIME_MS(100) << (i < 6 ? i : 6);
            full = full < TIME_S(5) ? full : TIME_S(5);
            assert_true(retry_next(&r, now, 0, &at));
            assert_in_range(at - now, full / 2, full);
            if (i == 0)
                first[seed - 1] = at - now;
            now = at;
        }
        assert_false(retry_next(&r, now, 0, &at));
        differ = differ || first[seed - 1] != first[0];
    }
    assert_true(differ);
}

static void time_is_a_limit(void **state)
{
    (void)state;
    struct retry r;
    time_ns at;
    retry_init(&r, 0, TIME_S(1), 7);
    assert_true(retry_next(&r, TIME_MS(100), 0, &at));
    assert_false(retry_next(&r, TIME_MS(990), 0, &at));
    assert_int_equal(retry_left(&r, TIME_MS(400)), TIME_MS(600));
    assert_int_equal(retry_left(&r, TIME_S(2)), 0);
}

static void what_the_server_asks_for_counts(void **state)
{
    (void)state;
    struct retry r;
    time_ns at;
    retry_init(&r, 0, TIME_S(30), 7);
    assert_true(retry_next(&r, TIME_S(1), TIME_S(4), &at));
    assert_int_equal(at, TIME_S(5));
    assert_false(retry_next(&r, TIME_S(5), TIME_S(26), &at)); /* past the end */
}

static void progress_begins_anew_but_not_for_ever(void **state)
{
    (void)state;
    struct retry r;
    time_ns at;
    time_ns now = 0;
    unsigned all = 0;
    retry_init(&r, now, TIME_S(30), 7);
    while (retry_next(&r, now, 0, &at)) {
        now = at;
        retry_progress(&r, now);
        assert_true(++all < 10000);
    }
    assert_true(all > 100);
}

UNIT_MAIN(UNIT(pauses_grow_and_differ), UNIT(time_is_a_limit),
          UNIT(what_the_server_asks_for_counts), UNIT(progress_begins_anew_but_not_for_ever))
