/* tracing/tracing_context: the W3C trace context. */
#include "tracing/tracing_context.h"

#include "support/unit.h"

#include <string.h>

#define WHOLE "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

static bool parse(const char *text, struct tracing_context *ret)
{
    return tracing_context_parse(text, strlen(text), ret);
}

static void what_is_read_is_written_again(void **state)
{
    (void)state;
    struct tracing_context c;
    char text[TRACING_CONTEXT_BYTES];
    assert_true(parse(WHOLE, &c));
    assert_int_equal(c.trace_id[0], 0x0a);
    assert_int_equal(c.span_id[7], 0x31);
    assert_int_equal(c.flags, 1);
    tracing_context_format(&c, text);
    assert_string_equal(text, WHOLE);
}

static void what_is_none(void **state)
{
    (void)state;
    static const char *const none[] = {
        "",
        "00",
        "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        "00-00000000000000000000000000000000-b7ad6b7169203331-01",
        "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
        "00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01",
        "00-0af7651916cd43dd8448eb211c80319c_b7ad6b7169203331-01",
        "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-0",
        "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-0g",
        WHOLE "-",
        WHOLE " ",
        "01-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01x",
    };
    struct tracing_context c;
    for (size_t i = 0; i < sizeof(none) / sizeof(*none); i++)
        assert_false(parse(none[i], &c));
}

static void later_versions_may_say_more(void **state)
{
    (void)state;
    struct tracing_context c;
    assert_true(parse("01-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-03-more", &c));
    assert_int_equal(c.flags, 3);
}

static void a_state_that_may_be_passed_on(void **state)
{
    (void)state;
    char longest[TRACING_MAX_STATE_BYTES + 1];
    memset(longest, 'a', sizeof(longest));
    assert_true(tracing_context_state_fits("rojo=00f067aa0ba902b7", 21));
    assert_true(tracing_context_state_fits(longest, sizeof(longest) - 1));
    assert_false(tracing_context_state_fits(longest, sizeof(longest)));
    assert_false(tracing_context_state_fits("", 0));
    assert_false(tracing_context_state_fits("a=\n", 3));
    assert_false(tracing_context_state_fits("a=\xc3\xa9", 4));
}

UNIT_MAIN(UNIT(what_is_read_is_written_again), UNIT(what_is_none),
          UNIT(later_versions_may_say_more), UNIT(a_state_that_may_be_passed_on))
