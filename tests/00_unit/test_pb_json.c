/* JSON over descriptors, for messages of the control plane; ModelConfig is compared with protobuf's
 * own in tests/50_config. */
#include "codec/pb_json.h"
#include "codec/pb_json_read.h"

#include "base/fault.h"
#include "codec/pb_field.h"
#include "proto/grpc_service.pb-c.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#define MIB ((size_t)1 << 20)

static ProtobufCMessage *read_json(const ProtobufCMessageDescriptor *type, const char *text)
{
    ProtobufCMessage *msg = NULL;
    struct err *e = pb_json_read_message(type, text, strlen(text), "t", MIB, &msg);
    assert_null(e);
    return msg;
}

static void assert_printed(const ProtobufCMessage *msg, struct pb_json_style style,
                           const char *text)
{
    struct strbuf out = STRBUF_INIT;
    pb_json_print(msg, style, &out);
    assert_string_equal(strbuf_str(&out), text);
    strbuf_fini(&out);
}

static void styles(void **state)
{
    (void)state;
    ProtobufCMessage *msg = read_json(&inference__statistic_duration__descriptor,
                                      "{\"count\":\"18446744073709551615\"}");
    assert_printed(msg, (struct pb_json_style){0}, "{\"count\":\"18446744073709551615\"}");
    assert_printed(msg, (struct pb_json_style){.plain_int64 = true, .defaults = true},
                   "{\"count\":18446744073709551615,\"ns\":0}");
    pb_field_free_message(msg);
    msg = read_json(&inference__model_statistics__descriptor, "{}");
    assert_printed(msg, (struct pb_json_style){0}, "{}");
    assert_printed(msg, (struct pb_json_style){.plain_int64 = true, .defaults = true},
                   "{\"name\":\"\",\"version\":\"\",\"last_inference\":0,\"inference_count\":0,"
                   "\"execution_count\":0,"
                   "\"batch_stats\":[],\"memory_usage\":[],\"response_stats\":{}}");
    pb_field_free_message(msg);
}

static void oneof_members_are_printed_when_chosen(void **state)
{
    (void)state;
    struct pb_json_style all = {.plain_int64 = true, .defaults = true};
    ProtobufCMessage *msg =
        read_json(&inference__infer_parameter__descriptor, "{\"bool_param\":false}");
    assert_printed(msg, all, "{\"bool_param\":false}");
    pb_field_free_message(msg);
    msg = read_json(&inference__infer_parameter__descriptor, "{}");
    assert_printed(msg, all, "{}");
    pb_field_free_message(msg);
}

static void numbers(void **state)
{
    (void)state;
    const char *text =
        "{\"fp32_contents\":[0.1,16777216,1e+30,-0.5,\"NaN\"],"
        "\"fp64_contents\":[0.1,1e+300,\"Infinity\",\"-Infinity\",3.141592653589793,0,-0.0]}";
    ProtobufCMessage *msg = read_json(&inference__infer_tensor_contents__descriptor, text);
    assert_printed(
        msg, (struct pb_json_style){0},
        "{\"fp32_contents\":[0.1,16777216,1e+30,-0.5,\"NaN\"],"
        "\"fp64_contents\":[0.1,1e+300,\"Infinity\",\"-Infinity\",3.141592653589793,0,-0.0]}");
    pb_field_free_message(msg);
}

static void bytes_as_base64(void **state)
{
    (void)state;
    const char *text =
        "{\"bytes_contents\":[\"\",\"YQ==\",\"YQ\",\"YWI=\",\"YWJj\",\"-_8\",\"+/8=\"]}";
    ProtobufCMessage *msg = read_json(&inference__infer_tensor_contents__descriptor, text);
    const Inference__InferTensorContents *c = (const Inference__InferTensorContents *)msg;
    assert_int_equal(c->n_bytes_contents, 7);
    assert_int_equal(c->bytes_contents[0].len, 0);
    assert_memory_equal(c->bytes_contents[2].data, "a", 1);
    assert_memory_equal(c->bytes_contents[4].data, "abc", 3);
    assert_memory_equal(c->bytes_contents[5].data, "\xfb\xff", 2);
    assert_printed(
        msg, (struct pb_json_style){0},
        "{\"bytes_contents\":[\"\",\"YQ==\",\"YQ==\",\"YWI=\",\"YWJj\",\"+/8=\",\"+/8=\"]}");
    pb_field_free_message(msg);
    const char *const wrong[] = {"Y", "YQ=", "Y===", "YQ==YQ==", "Y Q=", "Y\\u0000Q", "=", "YWJjZ"};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        char json[64];
        snprintf(json, sizeof(json), "{\"bytes_contents\":[\"%s\"]}", wrong[i]);
        struct err *e = pb_json_read_message(&inference__infer_tensor_contents__descriptor, json,
                                             strlen(json), "t", MIB, &msg);
        assert_non_null(e);
        assert_non_null(
            strstr(err_message(e), "t: bytes_contents[0]: expected a string of base64, found "));
        err_free(e);
    }
}

static void strings_are_escaped(void **state)
{
    (void)state;
    struct strbuf out = STRBUF_INIT;
    const char text[] = "a\"b\\c/\b\f\n\r\t\x01\x1f\x7f\xc3\xa4\0z";
    pb_json_print_string(text, sizeof(text) - 1, &out);
    assert_string_equal(strbuf_str(&out),
                        "\"a\\\"b\\\\c/\\b\\f\\n\\r\\t\\u0001\\u001f\\u007f\xc3\xa4\\u0000z\"");
    strbuf_fini(&out);
}

/* Names in the form of JSON are the same names; a part of one is none. */
static void names_in_two_forms(void **state)
{
    (void)state;
    ProtobufCMessage *msg = read_json(&inference__infer_tensor_contents__descriptor,
                                      "{\"boolContents\":[true],\"int_contents\":[1,2]}");
    const Inference__InferTensorContents *c = (const Inference__InferTensorContents *)msg;
    assert_int_equal(c->n_bool_contents, 1);
    assert_int_equal(c->n_int_contents, 2);
    pb_field_free_message(msg);
}

static void what_was_found_is_told(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"{\"count\":true}", "found true"},
        {"{\"count\":false}", "found false"},
        {"{\"count\":null,\"ns\":[]}", "found a list"},
        {"{\"count\":{}}", "found an object"},
        {"{\"count\":1.5}", "found 1.5"},
        {"{\"count\":-7}", "found -7"},
        {"{\"count\":\"seven\"}", "found \"seven\""},
        {"{\"count\":18446744073709551616.0}", "found 1.84467e+19"},
        {"{\"coun\":1}", "found \"coun\"; did you mean \"count\"?"},
        {"{\"counts\":1}", "found \"counts\"; did you mean \"count\"?"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        ProtobufCMessage *msg = NULL;
        struct err *e = pb_json_read_message(&inference__statistic_duration__descriptor,
                                             cases[i][0], strlen(cases[i][0]), "t", MIB, &msg);
        assert_non_null(e);
        if (!strstr(err_message(e), cases[i][1]))
            fail_msg("%s: %s", cases[i][0], err_message(e));
        err_free(e);
    }
}

static void every_failing_allocation_is_an_error(void **state)
{
    (void)state;
    const char *text =
        "{\"name\":\"x\",\"batch_stats\":[{\"batch_size\":1},{\"compute_infer\":{\"ns\":3}}],"
        "\"response_stats\":{\"0\":{\"success\":{\"count\":1}}}}";
    ProtobufCMessage *msg = NULL;
    long n = 0;
    while (!msg && n < 1000) {
        fault_arm(++n);
        struct err *e = pb_json_read_message(&inference__model_statistics__descriptor, text,
                                             strlen(text), "t", MIB, &msg);
        assert_true((e != NULL) == (msg == NULL));
        if (e)
            assert_int_equal(err_code(e), STATUS_UNAVAILABLE);
        err_free(e);
    }
    fault_arm(0);
    assert_true(n > 8 && n < 1000);
    pb_field_free_message(msg);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(styles),
        cmocka_unit_test(oneof_members_are_printed_when_chosen),
        cmocka_unit_test(numbers),
        cmocka_unit_test(bytes_as_base64),
        cmocka_unit_test(strings_are_escaped),
        cmocka_unit_test(names_in_two_forms),
        cmocka_unit_test(what_was_found_is_told),
        cmocka_unit_test(every_failing_allocation_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
