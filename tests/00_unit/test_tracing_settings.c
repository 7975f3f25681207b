/* tracing/tracing_settings: what holds after a change, what is traced, where traces go. */
#include "tracing/tracing_settings.h"

#include "support/unit.h"
#include "triton/core/tritonserver.h"

static const struct tracing_values usual = {.rate = 1000, .count = -1};

static struct tracing_change number(unsigned which, const char *text)
{
    struct tracing_change c = {0};
    assert_null(tracing_settings_number(&c, which, text, false));
    return c;
}

static void what_is_cleared_follows_again(void **state)
{
    (void)state;
    struct tracing_change c = number(TRACING_RATE, "7");
    struct tracing_choice one = tracing_settings_resolve(&usual, NULL, &c);
    assert_int_equal(one.specified, TRACING_RATE);
    assert_int_equal(one.values.rate, 7);
    assert_int_equal(one.values.count, -1);
    struct tracing_values behind = {.level = 4, .rate = 9, .count = 5, .frequency = 3};
    c = (struct tracing_change){0};
    one = tracing_settings_resolve(&behind, &one, &c);
    assert_int_equal(one.values.rate, 7);
    assert_int_equal(one.values.count, 5);
    assert_int_equal(one.values.level, 4);
    c.clear = TRACING_RATE;
    one = tracing_settings_resolve(&behind, &one, &c);
    assert_int_equal(one.specified, 0);
    assert_int_equal(one.values.rate, 9);
}

static void numbers_are_read_as_the_reference_does(void **state)
{
    (void)state;
    assert_int_equal(number(TRACING_RATE, " \t7x").to.rate, 7);
    assert_int_equal(number(TRACING_RATE, "-3").to.rate, UINT32_MAX - 2);
    assert_int_equal(number(TRACING_COUNT, "-1").to.count, -1);
    assert_int_equal(number(TRACING_FREQUENCY, "2147483647").to.frequency, INT32_MAX);
    static const char *const bad[] = {
        "", "x", " ", "-", "2147483648", "-2147483649", "99999999999999999999999"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        struct tracing_change c = {0};
        err_free(tracing_settings_number(&c, TRACING_RATE, bad[i], false));
        assert_int_equal(c.set, 0);
    }
}

static void off_stands_alone(void **state)
{
    (void)state;
    struct tracing_change c = {0};
    assert_null(tracing_settings_level(&c, "TENSORS", 3));
    assert_null(tracing_settings_level(&c, "nothing", 3));
    struct err *e = tracing_settings_level(&c, "OFF", 3);
    assert_non_null(e);
    err_free(e);
    assert_int_equal(c.to.level, TRITONSERVER_TRACE_LEVEL_TENSORS);
    c = (struct tracing_change){0};
    assert_null(tracing_settings_level(&c, "OFF", 1));
    assert_int_equal(c.set, TRACING_LEVEL);
    assert_int_equal(c.to.level, 0);
}

static void a_rate_and_a_count(void **state)
{
    (void)state;
    struct tracing_values v = {.level = 4, .rate = 3, .count = 2};
    struct tracing_drawn d = {0};
    unsigned drawn = 0;
    for (unsigned i = 1; i <= 30; i++)
        if (tracing_settings_draw(&v, &d, false)) {
            drawn++;
            assert_int_equal(i % 3, 0);
        }
    assert_int_equal(drawn, 2);
    assert_int_equal(v.count, 0);
    assert_int_equal(d.begun, 2);
}

static void a_context_is_followed_in_any_case(void **state)
{
    (void)state;
    struct tracing_drawn d = {0};
    struct tracing_values none = {.level = 4, .rate = 0, .count = -1};
    assert_false(tracing_settings_draw(&none, &d, false));
    assert_true(tracing_settings_draw(&none, &d, true));
    struct tracing_values over = {.level = 4, .rate = 1, .count = 0};
    assert_false(tracing_settings_draw(&over, &d, false));
    assert_true(tracing_settings_draw(&over, &d, true));
    assert_int_equal(d.begun, 0);
    struct tracing_values one = {.level = 4, .rate = 1, .count = 1};
    assert_true(tracing_settings_draw(&one, &d, true)); /* it counts where it was its turn */
    assert_int_equal(one.count, 0);
}

static void when_traces_are_written(void **state)
{
    (void)state;
    struct tracing_drawn d = {.begun = 5};
    struct tracing_values v = {.level = 4, .rate = 1, .count = -1};
    assert_int_equal(tracing_settings_flush(&v, &d, 1, 1, false), TRACING_FLUSH_PLAIN);
    v.frequency = 3;
    assert_int_equal(tracing_settings_flush(&v, &d, 2, 2, false), TRACING_FLUSH_LATER);
    assert_int_equal(tracing_settings_flush(&v, &d, 3, 3, false), TRACING_FLUSH_NUMBERED);
    assert_int_equal(tracing_settings_flush(&v, &d, 1, 1, true), TRACING_FLUSH_NUMBERED);
    v.count = 0; /* the last one that was begun has ended */
    assert_int_equal(tracing_settings_flush(&v, &d, 2, 4, false), TRACING_FLUSH_LATER);
    assert_int_equal(tracing_settings_flush(&v, &d, 2, 5, false), TRACING_FLUSH_NUMBERED);
    v.frequency = 0;
    assert_int_equal(tracing_settings_flush(&v, &d, 2, 5, false), TRACING_FLUSH_NUMBERED);
    assert_int_equal(tracing_settings_flush(&v, &d, 2, 4, false), TRACING_FLUSH_LATER);
    assert_int_equal(tracing_settings_flush(&v, &d, 2, 4, true), TRACING_FLUSH_PLAIN);
}

static void what_cannot_be_traced(void **state)
{
    (void)state;
    const char *reason;
    struct tracing_values v = {.level = 4, .rate = 1, .count = -1};
    assert_true(tracing_settings_valid(&v, true, &reason));
    assert_false(tracing_settings_valid(&v, false, &reason));
    assert_string_equal(reason, "trace file name is not given");
    v.count = 0;
    assert_false(tracing_settings_valid(&v, true, &reason));
    assert_string_equal(reason, "");
    v.rate = 0;
    assert_false(tracing_settings_valid(&v, true, &reason));
    assert_string_equal(reason, "sample rate must be non-zero");
}

UNIT_MAIN(UNIT(what_is_cleared_follows_again), UNIT(numbers_are_read_as_the_reference_does),
          UNIT(off_stands_alone), UNIT(a_rate_and_a_count), UNIT(a_context_is_followed_in_any_case),
          UNIT(when_traces_are_written), UNIT(what_cannot_be_traced))
