/* What a model says, as strings of JSON. */
#include "http/openai/openai_text.h"

#include "base/strbuf.h"
#include "support/unit.h"

#include <string.h>

static void expect_text(const char *text, size_t len, const char *expected)
{
    struct strbuf sb = STRBUF_INIT;
    strbuf_puts(&sb, "x");
    openai_text_put(&sb, text, len);
    assert_string_equal(strbuf_str(&sb) + 1, expected);
    assert_int_equal(sb.len, strlen(expected) + 1);
    strbuf_fini(&sb);
}

static void text_is_escaped(void **state)
{
    (void)state;
    expect_text("", 0, "\"\"");
    expect_text("a\"b\n\xc3\xa9", 6, "\"a\\\"b\\n\xc3\xa9\"");
    expect_text("\xf0\x9f\xa6\x9c", 4, "\"\xf0\x9f\xa6\x9c\"");
}

#define BAD "\xef\xbf\xbd"

static void what_is_no_text_is_replaced(void **state)
{
    (void)state;
    expect_text("a\xff", 2, "\"a" BAD "\"");
    expect_text("\xe2\x98", 2, "\"" BAD BAD "\"");
    expect_text("\xc0\x80z", 3, "\"" BAD BAD "z\"");
    expect_text("\xed\xa0\x80", 3, "\"" BAD BAD BAD "\"");
    expect_text("\xf0\x9f\xa6z", 4, "\"" BAD BAD BAD "z\"");
}

/* Longer than what is written at a time, with characters at every place of the seam. */
static void long_texts_are_whole(void **state)
{
    (void)state;
    for (size_t shift = 0; shift < 4; shift++) {
        const size_t count = 10000;
        struct strbuf text = STRBUF_INIT, expected = STRBUF_INIT;
        strbuf_puts(&expected, "\"");
        strbuf_append(&text, "abc", shift);
        for (size_t i = 0; i < count; i++)
            strbuf_puts(&text, "\xf0\x9f\xa6\x9c");
        strbuf_append(&expected, text.data, text.len);
        strbuf_puts(&expected, BAD "\"");
        strbuf_putc(&text, '\x80');
        expect_text(text.data, text.len, expected.data);
        strbuf_fini(&text);
        strbuf_fini(&expected);
    }
}

static void characters_without_their_end_wait(void **state)
{
    (void)state;
    assert_int_equal(openai_text_whole("", 0), 0);
    assert_int_equal(openai_text_whole("abc", 3), 3);
    assert_int_equal(openai_text_whole("ab\xc3", 3), 2);
    assert_int_equal(openai_text_whole("ab\xc3\xa9", 4), 4);
    assert_int_equal(openai_text_whole("\xe2\x98", 2), 0);
    assert_int_equal(openai_text_whole("a\xf0\x9f\xa6", 4), 1);
    assert_int_equal(openai_text_whole("a\xf0\x9f\xa6\x9c", 5), 5);
    assert_int_equal(openai_text_whole("\x80\x80\x80\x80\x80", 5), 5); /* no beginning at all */
    assert_int_equal(openai_text_whole("a\xff", 2), 2);
}

UNIT_MAIN(UNIT(text_is_escaped), UNIT(what_is_no_text_is_replaced), UNIT(long_texts_are_whole),
          UNIT(characters_without_their_end_wait))
