/* JSON text by hand: numbers read back as the same value, strings are escaped as the reference
 * does it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>

#include "base/strbuf.h"
#include "codec/json_out.h"

static void assert_real(double d, const char *expected)
{
    char text[64];
    *json_out_real(text, d) = '\0';
    assert_string_equal(text, expected);
}

static void reals_are_written_as_the_reference_does(void **state)
{
    (void)state;
    assert_real(1, "1.0");
    assert_real(0, "0.0");
    assert_real(-0.0, "-0.0");
    assert_real(2.5, "2.5");
    assert_real(-124.75, "-124.75");
    assert_real(0.0001, "0.0001");
    assert_real(0.00011, "0.00011");
    assert_real(10.01, "10.01");
    assert_real(0.1 + 0.2, "0.30000000000000004");
    assert_real(99999999999.9999, "99999999999.9999");
    assert_real(-0.5, "-0.5");
    assert_real(1234.5678, "1234.5678");
    assert_real(1234.567, "1234.567");
    assert_real(100.0001, "100.0001");
    assert_real(-17, "-17.0");
    assert_real((double)0.1f, "0.10000000149011612");
    assert_real((double)(1.0f / 3), "0.3333333432674408");
    assert_real((double)1e30f, "1.0000000150474662e30");
    assert_real((double)1e-45f, "1.401298464324817e-45");
    assert_real(123456792, "123456792.0");
    assert_real(999999999, "999999999.0");
    assert_real(1000000000, "1000000000.0");
    assert_real(9223372036854775808.0, "9223372036854776000.0");
    assert_real(1e308, "1e308");
    assert_real((double)INFINITY, "Infinity");
    assert_real(-(double)INFINITY, "-Infinity");
    assert_real((double)NAN, "NaN");
}

static void integers_are_written_whole(void **state)
{
    (void)state;
    static const uint64_t numbers[] = {0,   1,     9,          10,        99,        100,
                                       101, 12345, UINT32_MAX, INT64_MAX, UINT64_MAX};
    for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++) {
        char text[32], expected[32];
        *json_out_uint(text, numbers[i]) = '\0';
        snprintf(expected, sizeof(expected), "%llu", (unsigned long long)numbers[i]);
        assert_string_equal(text, expected);
        *json_out_int(text, (int64_t)numbers[i]) = '\0';
        snprintf(expected, sizeof(expected), "%lld", (long long)numbers[i]);
        assert_string_equal(text, expected);
    }
    char text[32];
    *json_out_int(text, INT64_MIN) = '\0';
    assert_string_equal(text, "-9223372036854775808");
}

static uint64_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static void lists_of_any_length_read_back(void **state)
{
    (void)state;
    uint64_t seed = 88172645463325252u;
    for (size_t n = 1; n < 200; n += 7) {
        double *values = malloc(n * sizeof(*values));
        for (size_t i = 0; i < n; i++) {
            uint64_t bits = next_random(&seed);
            memcpy(&values[i], &bits, sizeof(bits));
            bool few_digits = n % 3 == 0 || (n % 3 == 1 && i % 32 < 20);
            if (!isfinite(values[i]) || few_digits)
                values[i] = ((double)(int64_t)(bits % 2000000) - 1000000) / 1000;
        }
        char *text = malloc(n * JSON_OUT_NUMBER_BYTES + 1);
        *json_out_doubles(text, values, n) = '\0';
        assert_true(strlen(text) < n * JSON_OUT_NUMBER_BYTES);
        char *at = text;
        for (size_t i = 0; i < n; i++) {
            char *end;
            assert_true(strtod(at, &end) == values[i]);
            assert_true(end > at);
            assert_int_equal(*end, i + 1 < n ? ',' : '\0');
            at = end + 1;
        }
        free(text);
        free(values);
    }
}

static void floats_need_no_alignment(void **state)
{
    (void)state;
    char bytes[1 + 3 * sizeof(float)];
    const float values[3] = {1.5f, -2, 0.1f};
    memcpy(bytes + 1, values, sizeof(values));
    char text[3 * JSON_OUT_NUMBER_BYTES];
    *json_out_floats(text, bytes + 1, 3) = '\0';
    assert_string_equal(text, "1.5,-2.0,0.10000000149011612");
}

static void assert_text(const char *s, size_t len, const char *expected)
{
    char text[128];
    char *end = json_out_string(text, s, len);
    assert_true((size_t)(end - text) <= json_out_string_bytes(len));
    *end = '\0';
    assert_string_equal(text, expected);
}

static void strings_are_escaped_as_the_reference_does(void **state)
{
    (void)state;
    assert_text("", 0, "\"\"");
    assert_text("a/b", 3, "\"a/b\"");
    assert_text("b\xc3\xa9\0\n\"\\\x7f", 8, "\"b\xc3\xa9\\u0000\\n\\\"\\\\\x7f\"");
    assert_text("\b\f\r\t\x1f\x0b", 6, "\"\\b\\f\\r\\t\\u001F\\u000B\"");
    assert_text("\xff\xfe", 2, "\"\xff\xfe\"");
}

static void a_string_put_last_ends_the_text(void **state)
{
    (void)state;
    struct strbuf sb = STRBUF_INIT;
    strbuf_puts(&sb, "left from before: xxxxxxxx");
    sb.len = 0;
    json_out_put(&sb, "a\"");
    assert_int_equal(sb.len, 5);
    assert_string_equal(strbuf_str(&sb), "\"a\\\"\"");
    strbuf_fini(&sb);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reals_are_written_as_the_reference_does),
        cmocka_unit_test(integers_are_written_whole),
        cmocka_unit_test(lists_of_any_length_read_back),
        cmocka_unit_test(floats_need_no_alignment),
        cmocka_unit_test(strings_are_escaped_as_the_reference_does),
        cmocka_unit_test(a_string_put_last_ends_the_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
