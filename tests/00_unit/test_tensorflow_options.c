/* What the backend `tensorflow` tells TensorFlow of a configuration: the bytes of the
 * ConfigProto, read again. */
#include "common/blog.h"
#include "tensorflow/options.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

static char said[512];

/* The backend's own writes into the server's log. */
void blog_warn(const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    vsnprintf(said, sizeof said, fmt, args);
    va_end(args);
}

static const struct runtime machine = {.processors = 3, .soft_placement = true};

static TRITONSERVER_Error *read_for(const struct runtime *runtime, const char *text,
                                    struct options *ret_options)
{
    yyjson_doc *doc = yyjson_read(text, strlen(text), 0);
    assert_non_null(doc);
    said[0] = '\0';
    yyjson_val *config = yyjson_doc_get_root(doc);
    TRITONSERVER_Error *err = options_read(runtime, "m", config, ret_options);
    if (!err)
        options_tell("m", config, ret_options);
    yyjson_doc_free(doc);
    return err;
}

static TRITONSERVER_Error *read_text(const char *text, struct options *ret_options)
{
    return read_for(&machine, text, ret_options);
}

static struct wire wire_of(const struct wire_out *out)
{
    return (struct wire){.at = out->bytes, .end = out->bytes + out->size};
}

/* What a session is told that is not on the CPU alone. */
static struct wire whole(const struct options *options)
{
    return wire_of(&options->on_devices);
}

/* The n-th field of this number, from 0. */
static bool find(struct wire wire, uint32_t number, unsigned n, struct wire_field *ret_field)
{
    while (wire_next(&wire, ret_field))
        if (ret_field->number == number && n-- == 0)
            return true;
    return false;
}

static struct wire message(struct wire wire, uint32_t number, unsigned n)
{
    struct wire_field field;
    assert_true(find(wire, number, n, &field));
    return field.content;
}

/* -2 for a field that is not there. */
static int64_t value(struct wire wire, uint32_t number)
{
    struct wire_field field;
    return find(wire, number, 0, &field) ? (int64_t)field.value : -2;
}

static void what_is_usual(void **state)
{
    (void)state;
    struct options options = {0};
    assert_null(read_text("{}", &options));
    assert_string_equal(options.tag, "serve");
    assert_null(options.signature);
    assert_int_equal(options.share_count, 1);
    struct wire all = whole(&options);
    assert_int_equal(value(all, 2), 3);                /* threads of an operation: the machine's */
    assert_int_equal(value(all, 5), -1);               /* operations run on the caller's thread */
    assert_int_equal(value(all, 7), 1);                /* soft placement */
    assert_int_equal(value(all, 9), 0);                /* threads are shared */
    assert_int_equal(value(message(all, 6, 0), 4), 1); /* memory of GPUs grows */
    struct wire graph = message(all, 10, 0), optimizer = message(graph, 3, 0);
    assert_int_equal(value(optimizer, 5), 0);
    assert_int_equal(value(graph, 10), -2);
    options_free(&options);
}

#define GROUPS(kinds) "{\"instance_group\":[" kinds "]}"
#define ON_CPU        "{\"kind\":\"KIND_CPU\"}"
#define BY_MODEL      "{\"kind\":\"KIND_MODEL\"}"
#define ON_GPU        "{\"kind\":\"KIND_GPU\",\"gpus\":[2,1]}"

/* One session is made to read the model: it is that of the first instance. */
static void where_the_first_instance_is(void **state)
{
    (void)state;
    static const struct {
        const char *config;
        int32_t place;
    } cases[] = {{"{}", OPTIONS_ON_CPU},
                 {GROUPS(ON_CPU), OPTIONS_ON_CPU},
                 {GROUPS(BY_MODEL), OPTIONS_BY_MODEL},
                 {GROUPS(ON_GPU), 2},
                 {GROUPS(ON_GPU "," ON_CPU), OPTIONS_ON_CPU},
                 {GROUPS(ON_GPU "," BY_MODEL), OPTIONS_BY_MODEL},
                 {GROUPS(BY_MODEL "," ON_CPU), OPTIONS_ON_CPU}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct options options = {0};
        assert_null(read_text(cases[i].config, &options));
        assert_int_equal(options.place, cases[i].place);
        options_free(&options);
    }
}

/* On the CPU a session has no GPU; elsewhere as many as there are. */
static void sessions_on_the_cpu_have_no_gpu(void **state)
{
    (void)state;
    struct options options = {0};
    assert_null(read_text(GROUPS(ON_GPU "," ON_CPU), &options));
    struct wire on_cpu = wire_of(&options.on_cpu), entry = message(on_cpu, 1, 0);
    assert_true(wire_is(message(entry, 1, 0), "GPU"));
    assert_int_equal(value(entry, 2), 0);
    assert_int_equal(value(on_cpu, 2), 3);
    assert_int_equal(value(on_cpu, 7), 1);
    assert_int_equal(value(whole(&options), 1), -2);
    options_free(&options);
}

/* TensorFlow starts the parts of a run that has a GPU on threads. Those of the process may be a
 * single one; whoever asks for a number, or for threads of a session, gets that instead. */
static void threads_where_there_are_gpus(void **state)
{
    (void)state;
    static const struct runtime with_cuda = {.processors = 3, .has_cuda = true};
    static const char *const asked[] = {"TF_NUM_INTER_THREADS\":{\"string_value\":\"7\"}",
                                        "TF_USE_PER_SESSION_THREADS\":{\"string_value\":\"1\"}"};
    struct options options = {0};
    assert_null(read_for(&with_cuda, "{}", &options));
    struct wire pool = message(whole(&options), 12, 0);
    assert_int_equal(value(pool, 1), 3);
    assert_true(wire_is(message(pool, 2, 0), "nereid_devices"));
    assert_int_equal(value(wire_of(&options.on_cpu), 12), -2);
    for (size_t i = 0; i < sizeof asked / sizeof *asked; i++) {
        char text[128];
        snprintf(text, sizeof text, "{\"parameters\":{\"%s}}", asked[i]);
        assert_null(read_for(&with_cuda, text, &options));
        assert_int_equal(value(whole(&options), 12), -2);
    }
    options_free(&options);
}

/* 0 is a number of TensorFlow's own choice: the processors here. Below it, and when nothing is
 * said, the instance's thread runs the operations. */
static void operations_at_once(void **state)
{
    (void)state;
    static const struct {
        const char *asked;
        int64_t told;
    } cases[] = {{"0", 3}, {"-1", -1}, {"1", 1}, {"7", 7}}; /* the first: with a pool on GPUs */
    static const struct runtime with_cuda = {.processors = 3, .has_cuda = true};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[128];
        struct options options = {0};
        snprintf(text, sizeof text,
                 "{\"parameters\":{\"TF_NUM_INTER_THREADS\":{\"string_value\":\"%s\"}}}",
                 cases[i].asked);
        assert_null(read_text(text, &options));
        assert_int_equal(value(wire_of(&options.on_cpu), 5), cases[i].told);
        assert_int_equal(value(whole(&options), 5), cases[i].told);
        assert_null(read_for(&with_cuda, text, &options));
        assert_int_equal(value(whole(&options), 5), cases[i].told);
        struct wire_field pool;
        assert_int_equal(find(whole(&options), 12, 0, &pool), i == 0);
        options_free(&options);
    }
}

static void parameters_are_handed_on(void **state)
{
    (void)state;
    struct options options = {0};
    assert_null(read_text("{\"parameters\":{\"TF_NUM_INTRA_THREADS\":{\"string_value\":\"5\"},"
                          "\"TF_NUM_INTER_THREADS\":{\"string_value\":\"7\"},"
                          "\"TF_USE_PER_SESSION_THREADS\":{\"string_value\":\"Yes\"},"
                          "\"MAX_SESSION_SHARE_COUNT\":{\"string_value\":\"4\"}}}",
                          &options));
    struct wire all = whole(&options);
    assert_int_equal(value(all, 2), 5);
    assert_int_equal(value(all, 5), 7);
    assert_int_equal(value(all, 9), 1);
    assert_int_equal(options.share_count, 4);
    options_free(&options);
}

/* PB-57: and on CPU it compiles from level 1 on. */
static void levels_of_the_graph(void **state)
{
    (void)state;
    static const int levels[][3] = {/* level, what XLA is told, on CPU */
                                    {-7, -1, 0}, {-1, -1, 0}, {0, 0, 0},
                                    {1, 1, 1},   {2, 2, 1},   {9, 2, 1}};
    for (size_t i = 0; i < sizeof levels / sizeof *levels; i++) {
        char text[128];
        struct options options = {0};
        snprintf(text, sizeof text, "{\"optimization\":{\"graph\":{\"level\":%d}}}", levels[i][0]);
        assert_null(read_text(text, &options));
        struct wire optimizer = message(message(whole(&options), 10, 0), 3, 0);
        assert_int_equal(value(optimizer, 5), levels[i][1]);
        assert_int_equal(value(optimizer, 7), levels[i][2]);
        options_free(&options);
    }
}

#define TENSORRT(kind, parameters)                                                         \
    "{\"max_batch_size\":8,\"instance_group\":[{\"kind\":\"" kind "\"}],\"optimization\":" \
    "{\"execution_accelerators\":{\"gpu_execution_accelerator\":[{\"name\":\"tensorrt\","  \
    "\"parameters\":{" parameters "}},{\"name\":\"gpu_io\",\"parameters\":{}}]}}}"

/* A parameter of the optimizer, by its name. */
static struct wire parameter(struct wire optimizer, const char *name)
{
    struct wire_field entry;
    for (unsigned n = 0; find(optimizer, 2, n, &entry); n++)
        if (wire_is(message(entry.content, 1, 0), name))
            return message(entry.content, 2, 0);
    fail_msg("no parameter %s", name);
    return (struct wire){0};
}

static void check_tensorrt(const char *text, const char *precision, int64_t segment,
                           int64_t workspace, int64_t engines)
{
    struct options options = {0};
    assert_null(read_text(text, &options));
    assert_true(options.wants_tensorrt);
    struct wire rewrite = message(message(whole(&options), 10, 0), 10, 0);
    assert_true(wire_is(message(rewrite, 100, 0), "constfold"));
    assert_true(wire_is(message(rewrite, 100, 1), "layout"));
    struct wire optimizer = message(rewrite, 200, 0);
    assert_true(wire_is(message(optimizer, 1, 0), "TensorRTOptimizer"));
    assert_true(wire_is(message(parameter(optimizer, "precision_mode"), 2, 0), precision));
    assert_int_equal(value(parameter(optimizer, "is_dynamic_op"), 5), 1);
    assert_int_equal(value(parameter(optimizer, "max_batch_size"), 3), 8);
    assert_int_equal(value(parameter(optimizer, "minimum_segment_size"), 3), segment);
    assert_int_equal(value(parameter(optimizer, "max_workspace_size_bytes"), 3), workspace);
    assert_int_equal(value(parameter(optimizer, "max_cached_engines"), 3), engines);
    options_free(&options);
}

/* PB-70, PB-71, PB-72, PB-73: what is not given is FP32, 100 engines, 3 operations and 1 GiB. */
static void settings_of_tensorrt(void **state)
{
    (void)state;
    check_tensorrt(TENSORRT("KIND_MODEL", ""), "FP32", 3, 1 << 30, 100);
    check_tensorrt(TENSORRT("KIND_MODEL",
                            "\"precision_mode\":\"FP16\",\"max_cached_engines\":\"5\","
                            "\"minimum_segment_size\":\"4\",\"max_workspace_size_bytes\":"
                            "\"6442450944\""),
                   "FP16", 4, INT64_C(6442450944), 5);
}

/* PB-76: nor does anything else that is for GPUs. */
static void on_a_processor_it_has_no_effect(void **state)
{
    (void)state;
    struct options options = {0};
    assert_null(read_text(TENSORRT("KIND_CPU", ""), &options));
    assert_string_equal(said, "model 'm': GPU Execution Accelerator will be ignored for model "
                              "instance on CPU");
    assert_int_equal(value(message(wire_of(&options.on_cpu), 10, 0), 10), -2);
    options_free(&options);
}

/* Of instances in several places, those on a GPU have it, and the log tells of the others. */
static void where_it_has_an_effect(void **state)
{
    (void)state;
    struct options options = {0};
    assert_null(read_text(TENSORRT("KIND_GPU", ""), &options));
    assert_true(options.wants_tensorrt);
    assert_string_equal(said, "model 'm': 'gpu_io' changes nothing: inputs and outputs of "
                              "TensorFlow are in the memory of the host");
    assert_int_equal(value(message(wire_of(&options.on_cpu), 10, 0), 10), -2);
    struct wire rewrite = message(message(whole(&options), 10, 0), 10, 0);
    assert_true(wire_is(message(message(rewrite, 200, 0), 1, 0), "TensorRTOptimizer"));
    assert_null(read_text(TENSORRT("KIND_MODEL\"},{\"kind\":\"KIND_CPU", ""), &options));
    assert_true(options.wants_tensorrt);
    assert_string_equal(said, "model 'm': GPU Execution Accelerator will be ignored for model "
                              "instance on CPU");
    options_free(&options);
}

static void malformed_messages_end(void **state)
{
    (void)state;
    static const char *const bad[] = {"\x08",
                                      "\x0a\x05"
                                      "abc",
                                      "\x0d\x01\x02", "\x0b",
                                      "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        const unsigned char *at = (const unsigned char *)bad[i];
        struct wire wire = {.at = at, .end = at + strlen(bad[i])};
        struct wire_field field;
        assert_false(wire_next(&wire, &field));
        assert_true(wire.broken);
    }
}

static void messages_in_messages(void **state)
{
    (void)state;
    struct wire_out out = {0};
    char long_text[2000];
    memset(long_text, 'x', sizeof long_text);
    long_text[sizeof long_text - 1] = '\0';
    size_t outer = wire_begin(&out, 1);
    wire_put_number(&out, 1, 5);
    size_t inner = wire_begin(&out, 3);
    wire_put_text(&out, 2, long_text);
    wire_end(&out, inner);
    wire_end(&out, outer);
    wire_put_number(&out, 4, -1);
    assert_false(out.failed);
    struct wire all = {.at = out.bytes, .end = out.bytes + out.size};
    assert_int_equal(value(all, 4), -1);
    assert_int_equal(value(message(all, 1, 0), 1), 5);
    assert_true(wire_is(message(message(message(all, 1, 0), 3, 0), 2, 0), long_text));
    wire_free(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_usual),
        cmocka_unit_test(where_the_first_instance_is),
        cmocka_unit_test(sessions_on_the_cpu_have_no_gpu),
        cmocka_unit_test(threads_where_there_are_gpus),
        cmocka_unit_test(operations_at_once),
        cmocka_unit_test(parameters_are_handed_on),
        cmocka_unit_test(levels_of_the_graph),
        cmocka_unit_test(settings_of_tensorrt),
        cmocka_unit_test(on_a_processor_it_has_no_effect),
        cmocka_unit_test(where_it_has_an_effect),
        cmocka_unit_test(malformed_messages_end),
        cmocka_unit_test(messages_in_messages),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
