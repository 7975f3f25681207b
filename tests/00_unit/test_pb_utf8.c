/* UTF-8: the edges of RFC 3629. */
#include "codec/pb_utf8.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

static void valid(void **state)
{
    (void)state;
    const char *const texts[] = {
        "",
        "plain",
        "a longer plain text of more than eight bytes",
        "\xc2\x80",
        "\xdf\xbf",
        "\xe0\xa0\x80",
        "\xed\x9f\xbf",
        "\xee\x80\x80",
        "\xef\xbf\xbf",
        "\xf0\x90\x80\x80",
        "\xf4\x8f\xbf\xbf",
        "eight bytes, then \xe2\x82\xac and eight more",
    };
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        assert_true(pb_utf8_valid(texts[i], strlen(texts[i])));
    assert_true(pb_utf8_valid("a\0b", 3));
}

static void invalid(void **state)
{
    (void)state;
    const char *const texts[] = {
        "\x80",         "\xbf",         "\xc0\x80",         "\xc1\xbf",         "\xc2",
        "\xc2\x41",     "\xe0\x9f\xbf", "\xe2\x82",         "\xe2\x82\x41",     "\xed\xa0\x80",
        "\xed\xbf\xbf", "\xf0\x90\x80", "\xf0\x8f\xbf\xbf", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80",
        "\xff",         "12345678\xff", "1234567\xc3",
    };
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        assert_false(pb_utf8_valid(texts[i], strlen(texts[i])));
}

static void encode_every_code_point(void **state)
{
    (void)state;
    for (uint32_t code = 0; code <= 0x10FFFF; code++) {
        char bytes[4];
        size_t n = pb_utf8_encode(code, bytes);
        assert_int_equal(n, code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4);
        assert_int_equal(pb_utf8_valid(bytes, n), code < 0xD800 || code > 0xDFFF);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(valid),
        cmocka_unit_test(invalid),
        cmocka_unit_test(encode_every_code_point),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
