/* grpc/grpc_keepalive under a clock of its own. */
#include "grpc/grpc_keepalive.h"

#include "support/unit.h"

static const struct grpc_keepalive_rules rules = {
    .silence = 1000,
    .answer_within = 100,
    .age = TIME_NEVER,
    .grace = TIME_NEVER,
    .min_interval = 300,
    .max_pings = 2,
    .max_strikes = 2,
};

static struct grpc_keepalive k;
static time_ns next;

static enum grpc_keepalive_action due(const struct grpc_keepalive_rules *r, time_ns now, bool calls)
{
    return grpc_keepalive_due(&k, r, now, calls, &next);
}

static void silence_is_pinged(void **state)
{
    (void)state;
    grpc_keepalive_init(&k, &rules, 5000, 0);
    assert_int_equal(due(&rules, 5000, true), GRPC_KEEPALIVE_WAIT);
    assert_int_equal(next, 6000);
    grpc_keepalive_heard(&k, 5500);
    assert_int_equal(due(&rules, 6000, true), GRPC_KEEPALIVE_WAIT);
    assert_int_equal(next, 6500);
    assert_int_equal(due(&rules, 6500, true), GRPC_KEEPALIVE_PING);
    assert_int_equal(next, 6600);
    assert_int_equal(due(&rules, 6599, true), GRPC_KEEPALIVE_WAIT);
    grpc_keepalive_heard(&k, 6599);
    assert_int_equal(due(&rules, 6600, true), GRPC_KEEPALIVE_WAIT);
    assert_int_equal(next, 7599);
    assert_int_equal(due(&rules, 7599, true), GRPC_KEEPALIVE_PING);
    assert_int_equal(due(&rules, 7699, true), GRPC_KEEPALIVE_DEAD);
}

static void only_so_many_pings_without_data(void **state)
{
    (void)state;
    grpc_keepalive_init(&k, &rules, 0, 0);
    for (time_ns now = 1000; now <= 2000; now += 1000) {
        assert_int_equal(due(&rules, now, true), GRPC_KEEPALIVE_PING);
        grpc_keepalive_heard(&k, now);
    }
    assert_int_equal(due(&rules, 3000, true), GRPC_KEEPALIVE_WAIT);
    assert_int_equal(next, 4000);
    grpc_keepalive_sent(&k);
    assert_int_equal(due(&rules, 4000, true), GRPC_KEEPALIVE_PING);
}

static void without_calls(void **state)
{
    (void)state;
    grpc_keepalive_init(&k, &rules, 0, 0);
    assert_int_equal(due(&rules, 1000, false), GRPC_KEEPALIVE_WAIT);
    assert_int_equal(next, 2000);
    struct grpc_keepalive_rules permitted = rules;
    permitted.without_calls = true;
    assert_int_equal(due(&permitted, 2000, false), GRPC_KEEPALIVE_PING);
}

static void strikes(void **state)
{
    (void)state;
    grpc_keepalive_init(&k, &rules, 0, 0);
    time_ns now = 1;
    assert_true(grpc_keepalive_was_pinged(&k, &rules, now, true));
    assert_true(grpc_keepalive_was_pinged(&k, &rules, now += 300, true)); /* not too soon */
    assert_true(grpc_keepalive_was_pinged(&k, &rules, now += 299, true));
    assert_true(grpc_keepalive_was_pinged(&k, &rules, now += 299, true));
    assert_false(grpc_keepalive_was_pinged(&k, &rules, now += 299, true));
    grpc_keepalive_sent(&k);
    for (int i = 0; i < 3; i++)
        assert_true(grpc_keepalive_was_pinged(&k, &rules, now, true));
    assert_false(grpc_keepalive_was_pinged(&k, &rules, now, true));
    struct grpc_keepalive_rules none = rules;
    none.max_strikes = 0;
    for (int i = 0; i < 100; i++)
        assert_true(grpc_keepalive_was_pinged(&k, &none, now, true));
}

static void idle_clients_may_hardly_ping(void **state)
{
    (void)state;
    grpc_keepalive_init(&k, &rules, 0, 0);
    time_ns now = TIME_S(1);
    for (int i = 0; i < 3; i++)
        assert_true(grpc_keepalive_was_pinged(&k, &rules, now += TIME_S(3600), false));
    assert_false(grpc_keepalive_was_pinged(&k, &rules, now += TIME_S(3600), false));
    grpc_keepalive_init(&k, &rules, 0, 0);
    for (int i = 0; i < 10; i++)
        assert_true(grpc_keepalive_was_pinged(&k, &rules, now += TIME_S(7200), false));
}

static void age_and_grace(void **state)
{
    (void)state;
    struct grpc_keepalive_rules old = rules;
    old.silence = TIME_NEVER;
    old.age = 100000;
    old.grace = 500;
    for (uint64_t random = 0; random < 1000; random++) {
        grpc_keepalive_init(&k, &old, 0, random);
        assert_in_range(k.end, 90000, 110000);
    }
    assert_int_equal(due(&old, k.end - 1, false), GRPC_KEEPALIVE_WAIT);
    assert_int_equal(next, k.end);
    time_ns end = k.end;
    assert_int_equal(due(&old, end, true), GRPC_KEEPALIVE_RETIRE);
    assert_int_equal(due(&old, end, true), GRPC_KEEPALIVE_WAIT);
    assert_int_equal(next, end + 500);
    assert_int_equal(due(&old, end + 500, true), GRPC_KEEPALIVE_CUT);
    old.grace = TIME_NEVER;
    grpc_keepalive_init(&k, &old, 0, 0);
    assert_int_equal(due(&old, k.end, true), GRPC_KEEPALIVE_RETIRE);
    assert_int_equal(due(&old, TIME_S(1000), true), GRPC_KEEPALIVE_WAIT);
    assert_int_equal(next, TIME_NEVER);
}

UNIT_MAIN(UNIT(silence_is_pinged), UNIT(only_so_many_pings_without_data), UNIT(without_calls),
          UNIT(strikes), UNIT(idle_clients_may_hardly_ping), UNIT(age_and_grace))
