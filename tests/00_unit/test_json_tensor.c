/* The data of tensors in JSON: every type in and out, nesting, ranges, what does not fit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <math.h>

#include "codec/json_out.h"
#include "codec/json_tensor.h"

static const struct json_tensor_type f32 = {JSON_TENSOR_REAL, 4, false};
static const struct json_tensor_type f64 = {JSON_TENSOR_REAL, 8, false};
static const struct json_tensor_type fp16 = {JSON_TENSOR_FP16, 2, false};
static const struct json_tensor_type bf16 = {JSON_TENSOR_BF16, 2, false};
static const struct json_tensor_type strings = {JSON_TENSOR_BYTES, 0, false};

static struct json_tensor_type uint_of(uint8_t width)
{
    return (struct json_tensor_type){JSON_TENSOR_UINT, width, false};
}

static struct json_tensor_type int_of(uint8_t width)
{
    return (struct json_tensor_type){JSON_TENSOR_INT, width, false};
}

static enum json_tensor_result read_text(const char *text, struct json_tensor_type type,
                                         uint64_t count, void *to)
{
    yyjson_read_flag flags = YYJSON_READ_ALLOW_INF_AND_NAN | YYJSON_READ_ALLOW_INVALID_UNICODE;
    yyjson_doc *doc = yyjson_read(text, strlen(text), flags);
    assert_non_null(doc);
    enum json_tensor_result result = json_tensor_read(yyjson_doc_get_root(doc), type, count, to);
    yyjson_doc_free(doc);
    return result;
}

/* Reads the text, writes it back, compares. */
static void assert_round_trip(const char *text, struct json_tensor_type type, uint64_t count,
                              const char *expected)
{
    size_t bytes = count * type.width;
    char *tensor = malloc(bytes + 1);
    assert_int_equal(read_text(text, type, count, tensor), JSON_TENSOR_OK);
    size_t room;
    assert_true(json_tensor_room(type, count, bytes, &room));
    char *out = malloc(room + 1);
    char *end = json_tensor_write(out, type, count, tensor, bytes);
    assert_non_null(end);
    assert_true((size_t)(end - out) <= room);
    *end = '\0';
    assert_string_equal(out, expected);
    free(out);
    free(tensor);
}

static void every_type_makes_the_round_trip(void **state)
{
    (void)state;
    struct json_tensor_type boolean = {JSON_TENSOR_BOOL, 1, false};
    assert_round_trip("[true,false]", boolean, 2, "[true,false]");
    assert_round_trip("[0,255]", uint_of(1), 2, "[0,255]");
    assert_round_trip("[0,65535]", uint_of(2), 2, "[0,65535]");
    assert_round_trip("[4294967295]", uint_of(4), 1, "[4294967295]");
    assert_round_trip("[18446744073709551615]", uint_of(8), 1, "[18446744073709551615]");
    assert_round_trip("[-128,127]", int_of(1), 2, "[-128,127]");
    assert_round_trip("[-32768,32767]", int_of(2), 2, "[-32768,32767]");
    assert_round_trip("[-2147483648,2147483647]", int_of(4), 2, "[-2147483648,2147483647]");
    assert_round_trip("[-9223372036854775808,9223372036854775807]", int_of(8), 2,
                      "[-9223372036854775808,9223372036854775807]");
    assert_round_trip("[1,-2,2.5,0.1,1e39,NaN,-Infinity]", f32, 7,
                      "[1.0,-2.0,2.5,0.10000000149011612,Infinity,NaN,-Infinity]");
    assert_round_trip("[1,0.1,9007199254740993,18446744073709551615]", f64, 4,
                      "[1.0,0.1,9007199254740992.0,18446744073709552000.0]");
    assert_round_trip("[]", f32, 0, "[]");
    assert_round_trip("[1,-2.5,0.1,65504,NaN,-Infinity]", fp16, 6,
                      "[1.0,-2.5,0.0999755859375,65504.0,NaN,-Infinity]");
    assert_round_trip("[[1],[-2.5,0.1],1e38]", bf16, 4,
                      "[1.0,-2.5,0.10009765625,9.969209968386869e37]");
}

static void nesting_does_not_matter(void **state)
{
    (void)state;
    assert_round_trip("[[1,2],[3,4]]", int_of(4), 4, "[1,2,3,4]");
    assert_round_trip("[[[1]],2,[[],[3,[4]]]]", f32, 4, "[1.0,2.0,3.0,4.0]");
    assert_round_trip("[[],[[]]]", f32, 0, "[]");
}

static void depth_is_limited(void **state)
{
    (void)state;
    float f;
    for (unsigned depth = 99; depth <= 101; depth++) {
        char text[256] = {0};
        memset(text, '[', depth);
        text[depth] = '1';
        memset(text + depth + 1, ']', depth);
        assert_int_equal(read_text(text, f32, 1, &f),
                         depth <= 100 ? JSON_TENSOR_OK : JSON_TENSOR_TOO_DEEP);
    }
}

static void counts_must_agree(void **state)
{
    (void)state;
    int32_t to[2] = {0, 7};
    assert_int_equal(read_text("[1]", int_of(4), 2, to), JSON_TENSOR_TOO_FEW);
    assert_int_equal(read_text("[1,2]", int_of(4), 1, to), JSON_TENSOR_TOO_MANY);
    assert_int_equal(to[1], 7); /* nothing is written behind the end */
    assert_int_equal(read_text("[]", int_of(4), 1, to), JSON_TENSOR_TOO_FEW);
    assert_int_equal(read_text("5", int_of(4), 2, to), JSON_TENSOR_TOO_FEW);
    assert_int_equal(read_text("{}", int_of(4), 1, to), JSON_TENSOR_NOT_INT);
    assert_int_equal(read_text("5", int_of(4), 1, to), JSON_TENSOR_OK);
    assert_int_equal(to[0], 5);
}

static void types_must_agree(void **state)
{
    (void)state;
    static const char *const others[] = {"[null]", "[{}]", "[\"1\"]"};
    char to[8];
    for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++) {
        assert_int_equal(
            read_text(others[i], (struct json_tensor_type){JSON_TENSOR_BOOL, 1, false}, 1, to),
            JSON_TENSOR_NOT_BOOL);
        assert_int_equal(read_text(others[i], uint_of(4), 1, to), JSON_TENSOR_NOT_UINT);
        assert_int_equal(read_text(others[i], int_of(4), 1, to), JSON_TENSOR_NOT_INT);
        assert_int_equal(read_text(others[i], f32, 1, to), JSON_TENSOR_NOT_NUMBER);
    }
    assert_int_equal(read_text("[1]", (struct json_tensor_type){JSON_TENSOR_BOOL, 1, false}, 1, to),
                     JSON_TENSOR_NOT_BOOL);
    assert_int_equal(read_text("[true]", uint_of(1), 1, to), JSON_TENSOR_NOT_UINT);
    assert_int_equal(read_text("[1.0]", uint_of(1), 1, to), JSON_TENSOR_NOT_UINT);
    assert_int_equal(read_text("[-1]", uint_of(8), 1, to), JSON_TENSOR_NOT_UINT);
    assert_int_equal(read_text("[18446744073709551616]", uint_of(8), 1, to), JSON_TENSOR_NOT_UINT);
    assert_int_equal(read_text("[1.0]", int_of(4), 1, to), JSON_TENSOR_NOT_INT);
    assert_int_equal(read_text("[9223372036854775808]", int_of(8), 1, to), JSON_TENSOR_NOT_INT);
    assert_int_equal(read_text("[1]", strings, 1, to), JSON_TENSOR_NOT_STRING);
}

static void ranges_are_checked(void **state)
{
    (void)state;
    char to[8];
    assert_int_equal(read_text("[256]", uint_of(1), 1, to), JSON_TENSOR_RANGE);
    assert_int_equal(read_text("[65536]", uint_of(2), 1, to), JSON_TENSOR_RANGE);
    assert_int_equal(read_text("[4294967296]", uint_of(4), 1, to), JSON_TENSOR_RANGE);
    assert_int_equal(read_text("[128]", int_of(1), 1, to), JSON_TENSOR_RANGE);
    assert_int_equal(read_text("[-129]", int_of(1), 1, to), JSON_TENSOR_RANGE);
    assert_int_equal(read_text("[32768]", int_of(2), 1, to), JSON_TENSOR_RANGE);
    assert_int_equal(read_text("[-2147483649]", int_of(4), 1, to), JSON_TENSOR_RANGE);
    assert_int_equal(read_text("[18446744073709551615]", int_of(4), 1, to), JSON_TENSOR_RANGE);
    assert_int_equal(read_text("[65519.9]", fp16, 1, to), JSON_TENSOR_OK);
    assert_int_equal(read_text("[65520]", fp16, 1, to), JSON_TENSOR_RANGE);
    assert_int_equal(read_text("[-3.4e38]", bf16, 1, to), JSON_TENSOR_RANGE);
    assert_int_equal(read_text("[1e308]", fp16, 1, to), JSON_TENSOR_RANGE);
    assert_int_equal(read_text("[1e400]", fp16, 1, to),
                     JSON_TENSOR_OK); /* too large for a double: infinity */
}

static void strings_become_length_and_bytes(void **state)
{
    (void)state;
    static const char text[] = "[[\"a\",\"b\\u0000c\"],\"\",[\"\xff\"]]";
    yyjson_doc *doc = yyjson_read(text, sizeof(text) - 1, YYJSON_READ_ALLOW_INVALID_UNICODE);
    assert_non_null(doc);
    uint64_t bytes;
    assert_int_equal(json_tensor_bytes(yyjson_doc_get_root(doc), &bytes), JSON_TENSOR_OK);
    static const char expected[] = "\1\0\0\0a\3\0\0\0b\0c\0\0\0\0\1\0\0\0\xff";
    assert_int_equal(bytes, sizeof(expected) - 1);
    char *tensor = malloc(bytes);
    assert_int_equal(json_tensor_read(yyjson_doc_get_root(doc), strings, 4, tensor),
                     JSON_TENSOR_OK);
    assert_memory_equal(tensor, expected, bytes);
    yyjson_doc_free(doc);

    size_t room;
    assert_true(json_tensor_room(strings, 4, bytes, &room));
    char *out = malloc(room + 1);
    char *end = json_tensor_write(out, strings, 4, tensor, bytes);
    assert_non_null(end);
    assert_true((size_t)(end - out) <= room);
    *end = '\0';
    assert_string_equal(out, "[\"a\",\"b\\u0000c\",\"\",\"\xff\"]");
    for (uint64_t cut = 0; cut < bytes; cut++)
        assert_null(json_tensor_write(out, strings, 4, tensor, cut));
    free(out);
    free(tensor);
}

/* The bytes that a text has as strings; -1 if they cannot be read. */
static int64_t strings_of(const char *text, char *to, enum json_tensor_result expected)
{
    yyjson_doc *doc = yyjson_read(text, strlen(text), YYJSON_READ_ALLOW_INVALID_UNICODE);
    assert_non_null(doc);
    uint64_t bytes = 0;
    enum json_tensor_result result = json_tensor_bytes(yyjson_doc_get_root(doc), &bytes);
    assert_true(bytes <= 64);
    if (result == JSON_TENSOR_OK)
        result = json_tensor_read(yyjson_doc_get_root(doc), strings, 1, to);
    assert_int_equal(result, expected);
    yyjson_doc_free(doc);
    return result == JSON_TENSOR_OK ? (int64_t)bytes : -1;
}

static void base64_is_a_string(void **state)
{
    (void)state;
    char tensor[65];
    static const char text[] = "[\"a\",{\"b64\":\"/wA=\"},[{\"b64\":\"\"}],{\"b64\":\"_w\"},\"z\"]";
    static const char expected[] = "\1\0\0\0a\2\0\0\0\xff\0\0\0\0\0\1\0\0\0\xff\1\0\0\0z";
    int64_t bytes = strings_of(text, tensor, JSON_TENSOR_OK);
    assert_int_equal(bytes, sizeof(expected) - 1);
    assert_memory_equal(tensor, expected, sizeof(expected) - 1);
    struct json_tensor_type type = {JSON_TENSOR_BYTES, 0, true};
    size_t room;
    assert_true(json_tensor_room(type, 5, (uint64_t)bytes, &room));
    char *out = malloc(room + 1);
    *json_tensor_write(out, type, 5, tensor, (uint64_t)bytes) = '\0';
    assert_true(strlen(out) <= room);
    assert_string_equal(out, "[\"a\",{\"b64\":\"/wA=\"},\"\",{\"b64\":\"/w==\"},\"z\"]");
    free(out);
    static const char *const no_base64[] = {
        "A", "A===", "====", "==", "QQ=", "QQ==QQ==", "Q Q=", "\\n"};
    for (size_t i = 0; i < sizeof(no_base64) / sizeof(*no_base64); i++) {
        char bad[64];
        snprintf(bad, sizeof(bad), "[{\"b64\":\"%s\"}]", no_base64[i]);
        strings_of(bad, tensor, JSON_TENSOR_NOT_BASE64);
    }
    static const char *const no_string[] = {"{}", "{\"b64\":1}", "{\"B64\":\"\"}",
                                            "{\"b64\":\"\",\"a\":1}", "{\"b64\":[\"\"]}"};
    for (size_t i = 0; i < sizeof(no_string) / sizeof(*no_string); i++)
        strings_of(no_string[i], tensor, JSON_TENSOR_NOT_STRING);
    assert_int_equal(read_text("[{\"b64\":\"\"}]", f32, 1, tensor), JSON_TENSOR_NOT_NUMBER);
}

static void sizes_that_disagree_are_not_written(void **state)
{
    (void)state;
    char out[256];
    const float values[2] = {1, 2};
    assert_null(json_tensor_write(out, f32, 2, values, 7));
    assert_null(json_tensor_write(out, f32, 2, values, 4));
    assert_null(json_tensor_write(out, f32, UINT64_MAX / 2, values, 8));
    size_t room;
    assert_false(json_tensor_room(f32, UINT64_MAX / 2, 8, &room));
    assert_false(json_tensor_room(strings, 1, UINT64_MAX / 2, &room));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_type_makes_the_round_trip),
        cmocka_unit_test(nesting_does_not_matter),
        cmocka_unit_test(depth_is_limited),
        cmocka_unit_test(counts_must_agree),
        cmocka_unit_test(types_must_agree),
        cmocka_unit_test(ranges_are_checked),
        cmocka_unit_test(strings_become_length_and_bytes),
        cmocka_unit_test(base64_is_a_string),
        cmocka_unit_test(sizes_that_disagree_are_not_written),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
