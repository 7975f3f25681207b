/* The text format reader. What it accepts is compared with protobuf's own parsers in
 * tests/50_config; here is what they cannot tell: ownership, limits, positions. */
#include "codec/pb_text.h"

#include "base/fault.h"
#include "base/strbuf.h"
#include "codec/pb_field.h"
#include "proto/grpc_service.pb-c.h"
#include "proto/model_config.pb-c.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define MIB ((size_t)1 << 20)

static struct err *read_text(const char *text, size_t max_bytes, Inference__ModelConfig **ret)
{
    /* On the heap and without NUL, so that a sanitizer sees a read past the end. */
    size_t len = strlen(text);
    char *copy = malloc(len ? len : 1);
    memcpy(copy, text, len);
    ProtobufCMessage *msg = NULL;
    struct err *e =
        pb_text_read(&inference__model_config__descriptor, copy, len, "f", max_bytes, &msg);
    free(copy);
    *ret = (Inference__ModelConfig *)msg;
    return e;
}

static void assert_error(const char *text, const char *message)
{
    Inference__ModelConfig *config = NULL;
    struct err *e = read_text(text, MIB, &config);
    assert_non_null(e);
    assert_null(config);
    assert_string_equal(err_message(e), message);
    assert_int_equal(err_code(e), STATUS_INVALID_ARG);
    err_free(e);
}

static void maps_keep_the_last_value_in_first_order(void **state)
{
    (void)state;
    Inference__ModelConfig *config;
    assert_null(read_text(
        "metric_tags [ { key: 'b' value: '1' }, { key: 'a' value: '2' }, { key: 'b' value: '3' } ]"
        "parameters { key: 'none' }",
        MIB, &config));
    assert_int_equal(config->n_metric_tags, 2);
    assert_string_equal(config->metric_tags[0]->key, "b");
    assert_string_equal(config->metric_tags[0]->value, "3");
    assert_string_equal(config->metric_tags[1]->key, "a");
    assert_non_null(config->parameters[0]->value); /* never NULL, so that readers need not ask */
    pb_field_free_message(&config->base);
}

static void oneofs_and_presence(void **state)
{
    (void)state;
    Inference__ModelConfig *config;
    assert_null(read_text(
        "dynamic_batching { } input { name: 'x' reshape { shape: [ ] } } output { name: 'y' }", MIB,
        &config));
    assert_int_equal(config->scheduling_choice_case,
                     INFERENCE__MODEL_CONFIG__SCHEDULING_CHOICE_DYNAMIC_BATCHING);
    assert_non_null(config->dynamic_batching);
    assert_non_null(config->input[0]->reshape);
    assert_int_equal(config->input[0]->reshape->n_shape, 0);
    assert_null(config->output[0]->reshape);
    pb_field_free_message(&config->base);
}

static void strings_and_enums(void **state)
{
    (void)state;
    Inference__ModelConfig *config;
    assert_null(read_text("name: '\\x0a'", MIB, &config));
    assert_string_equal(config->name, "\n");
    pb_field_free_message(&config->base);
    assert_null(read_text("name: 'a\\101\\x42\\u00e9\\U0001F600\\n' '\\ud83d\\ude00\\uD7FF\\'' "
                          "input { data_type: TYPE_FP32 format: 1 } input { data_type: 12 }",
                          MIB, &config));
    assert_string_equal(config->name, "aAB\xc3\xa9\xf0\x9f\x98\x80\n\xf0\x9f\x98\x80\xed\x9f\xbf'");
    assert_int_equal(config->input[0]->data_type, INFERENCE__DATA_TYPE__TYPE_FP32);
    assert_int_equal(config->input[0]->format, INFERENCE__MODEL_INPUT__FORMAT__FORMAT_NHWC);
    assert_int_equal(config->input[1]->data_type, INFERENCE__DATA_TYPE__TYPE_FP64);
    pb_field_free_message(&config->base);
    assert_error("name: '\\ud83d'", "f:1:7: name: expected a string in UTF-8");
    assert_error("input { data_type: fp32 }",
                 "f:1:20: input[0].data_type: expected a value of the enum DataType, found 'fp32'; "
                 "did you mean 'TYPE_FP32'?");
    assert_error("input { data_type: P32 }", "f:1:20: input[0].data_type: expected a value of the "
                                             "enum DataType, found 'P32'");
    assert_error("input { format: FORMAT_NHC }",
                 "f:1:17: input[0].format: expected a value of the enum Format, found "
                 "'FORMAT_NHC'; did you mean 'FORMAT_NHWC'?");
}

static Inference__InferTensorContents *read_numbers(const char *text)
{
    ProtobufCMessage *msg = NULL;
    assert_null(pb_text_read(&inference__infer_tensor_contents__descriptor, text, strlen(text), "f",
                             MIB, &msg));
    return (Inference__InferTensorContents *)msg;
}

static void numbers_of_all_kinds(void **state)
{
    (void)state;
    const double doubles[] = {1.5, .5, 2, 1e3, 1e-3, 3, 7, 0, 12, -2.5, HUGE_VAL, -HUGE_VAL};
    const int64_t integers[] = {15, 31, 0, -8, 90};
    const int truths[] = {1, 1, 1, 1, 0, 0, 0, 0};
    Inference__InferTensorContents *c = read_numbers(
        "fp64_contents: [ 1.5, .5, 2., 1e3, 1E-3f, 3F, 7, 0, 12, -2.5, inf, -Infinity, NaN ] "
        "int64_contents: [ 017, 0x1F, 0, -010, 90 ] "
        "bool_contents: [ true, True, t, 1, false, False, f, 0 ]");
    assert_int_equal(c->n_fp64_contents, 13);
    assert_memory_equal(c->fp64_contents, doubles, sizeof(doubles));
    assert_true(isnan(c->fp64_contents[12]));
    assert_int_equal(c->n_int64_contents, 5);
    assert_memory_equal(c->int64_contents, integers, sizeof(integers));
    assert_int_equal(c->n_bool_contents, 8);
    for (size_t i = 0; i < 8; i++)
        assert_int_equal(c->bool_contents[i], truths[i]);
    pb_field_free_message(&c->base);
}

static void what_is_no_number(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"fp64_contents: 1.5.2", "found a number with two points"},
        {"fp64_contents: 1e5.", "found a number with two points"},
        {"fp64_contents: 1e", "found a number whose exponent has no digits"},
        {"fp64_contents: 1e+ 5", "found a number whose exponent has no digits"},
        {"fp64_contents: 1.5x", "found a number and a name without a space between them"},
        {"fp64_contents: 017", "expected a decimal number, inf or nan, found '017'"},
        {"fp64_contents: none", "expected a decimal number, inf or nan, found 'none'"},
        {"int64_contents: 08", "that starts with 0, hence octal, with a digit over 7"},
        {"int64_contents: 0x", "found 0x without hexadecimal digits"},
        {"int64_contents: 0x1.5", "found a hexadecimal or octal number with a point"},
        {"int64_contents: 1.5", "found '1.5'"},
        {"bool_contents: yes", "expected true or false, found 'yes'"},
        {"bool_contents: 2", "expected true or false, found 2"},
        {"bytes_contents: 'a\n'", "found a string without its closing quote on the same line"},
        {"bytes_contents: 'a", "found a string without its closing quote"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        ProtobufCMessage *msg = NULL;
        struct err *e = pb_text_read(&inference__infer_tensor_contents__descriptor, cases[i][0],
                                     strlen(cases[i][0]), "f", MIB, &msg);
        assert_non_null(e);
        if (!strstr(err_message(e), cases[i][1]))
            fail_msg("%s: %s", cases[i][0], err_message(e));
        err_free(e);
    }
}

static void many_elements(void **state)
{
    (void)state;
    struct strbuf text = STRBUF_INIT;
    strbuf_puts(&text, "input { dims: [ 0");
    for (int i = 1; i < 200; i++)
        strbuf_printf(&text, ", %d", i);
    strbuf_puts(&text, " ] }");
    Inference__ModelConfig *config;
    assert_null(read_text(strbuf_str(&text), MIB, &config));
    strbuf_fini(&text);
    assert_int_equal(config->input[0]->n_dims, 200);
    for (int i = 0; i < 200; i++)
        assert_int_equal(config->input[0]->dims[i], i);
    pb_field_free_message(&config->base);
}

static void positions(void **state)
{
    (void)state;
    assert_error("\n\n   max_batch: 8", "f:3:4: expected a field of ModelConfig, found "
                                        "'max_batch'; did you mean 'max_batch_size'?");
    assert_error("# a comment\ninput [\n  { name: \"a\" },\n\t{ name: 7 }\n]",
                 "f:4:10: input[1].name: expected a quoted string, found '7'");
    assert_error("input { dims: [ 1,\n 2,\n x ] }",
                 "f:3:2: input[0].dims[2]: expected an integer from -9223372036854775808 to "
                 "9223372036854775807, found 'x'");
}

static void positions_at_the_end(void **state)
{
    (void)state;
    assert_error("name:", "f:1:6: name: expected a quoted string, found the end of the text");
    assert_error("input {\n", "f:2:1: input[0]: expected a field name or the end of the message, "
                              "found the end of the text");
}

/* A message that holds itself, which no schema of ours has. */
static const ProtobufCMessageDescriptor self_descriptor;

struct self {
    ProtobufCMessage base;
    struct self *inner;
};

static void self_init(ProtobufCMessage *msg)
{
    *(struct self *)(void *)msg = (struct self){.base = PROTOBUF_C_MESSAGE_INIT(&self_descriptor)};
}

static const ProtobufCFieldDescriptor self_fields[] = {{
    .name = "a",
    .id = 1,
    .label = PROTOBUF_C_LABEL_NONE,
    .type = PROTOBUF_C_TYPE_MESSAGE,
    .offset = offsetof(struct self, inner),
    .descriptor = &self_descriptor,
}};
static const unsigned self_by_name[] = {0};
static const ProtobufCIntRange self_ranges[] = {{1, 0}, {0, 1}};

static const ProtobufCMessageDescriptor self_descriptor = {
    .magic = PROTOBUF_C__MESSAGE_DESCRIPTOR_MAGIC,
    .name = "Self",
    .short_name = "Self",
    .sizeof_message = sizeof(struct self),
    .n_fields = 1,
    .fields = self_fields,
    .fields_sorted_by_name = self_by_name,
    .n_field_ranges = 1,
    .field_ranges = self_ranges,
    .message_init = self_init,
};

static struct err *read_nested(unsigned depth, ProtobufCMessage **ret)
{
    struct strbuf text = STRBUF_INIT;
    for (unsigned i = 0; i < depth; i++)
        strbuf_puts(&text, "a{");
    for (unsigned i = 0; i < depth; i++)
        strbuf_putc(&text, '}');
    struct err *e = pb_text_read(&self_descriptor, text.data, text.len, "f", MIB, ret);
    strbuf_fini(&text);
    return e;
}

static void nesting_has_a_limit(void **state)
{
    (void)state;
    ProtobufCMessage *msg = NULL;
    assert_null(read_nested(PB_TEXT_MAX_DEPTH, &msg));
    pb_field_free_message(msg);
    struct err *e = read_nested(PB_TEXT_MAX_DEPTH + 1, &msg);
    assert_non_null(strstr(err_message(e), "messages are nested deeper than 64"));
    assert_memory_equal(err_message(e), "f:1:130: a.a.", 13);
    err_free(e);
}

static void memory_has_a_limit(void **state)
{
    (void)state;
    Inference__ModelConfig *config = NULL;
    struct err *e = read_text("name: 'x' input { name: 'y' }", 300, &config);
    assert_non_null(e);
    assert_int_equal(err_code(e), STATUS_UNAVAILABLE);
    assert_null(config);
    err_free(e);
}

static void every_failing_allocation_is_an_error(void **state)
{
    (void)state;
    const char *text =
        "name: 'x' input [ { name: 'a' dims: [ 1, 2, 3 ] }, { name: 'b' reshape { shape: [ 1 ] } } "
        "]"
        "metric_tags { key: 'k' value: 'v' } parameters { key: 'p' value { string_value: 's' } }"
        "version_policy { specific { versions: [ 1, 2 ] } }";
    Inference__ModelConfig *config = NULL;
    long n = 0;
    struct err *e;
    do {
        fault_arm(++n);
        e = read_text(text, MIB, &config);
        bool failed = e != NULL;
        assert_true(failed == (config == NULL));
        if (failed)
            assert_int_equal(err_code(e), STATUS_UNAVAILABLE);
        err_free(e);
        if (!failed)
            break;
    } while (n < 1000);
    fault_arm(0);
    assert_true(n > 15 && n < 1000);
    pb_field_free_message(&config->base);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(maps_keep_the_last_value_in_first_order),
        cmocka_unit_test(oneofs_and_presence),
        cmocka_unit_test(strings_and_enums),
        cmocka_unit_test(numbers_of_all_kinds),
        cmocka_unit_test(what_is_no_number),
        cmocka_unit_test(many_elements),
        cmocka_unit_test(positions),
        cmocka_unit_test(positions_at_the_end),
        cmocka_unit_test(nesting_has_a_limit),
        cmocka_unit_test(memory_has_a_limit),
        cmocka_unit_test(every_failing_allocation_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
