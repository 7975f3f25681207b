/* What the backend `tensorrt` decides without TensorRT and without a GPU: which profile is chosen,
 * what it allows, the values of shape tensors, and how a configuration fits a plan. */
#include "base/log.h"
#include "tensorrt/check.h"
#include "tensorrt/complete.h"
#include "tensorrt/options.h"
#include "tensorrt/profile.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

static void assert_says(TRITONSERVER_Error *err, const char *words)
{
    assert_non_null(err);
    if (!strstr(TRITONSERVER_ErrorMessage(err), words))
        fail_msg("'%s' is not in '%s'", words, TRITONSERVER_ErrorMessage(err));
    TRITONSERVER_ErrorDelete(err);
}

/* The specification's model with shape tensors: input0 [ -1, -1 ], and input1 with two values, for
 * the batch and for the request. */
static const struct trt_tensor shapes[] = {
    {"input0", TRITONSERVER_TYPE_FP32, true, false, true, 2, {-1, -1}, 0, 0},
    {"input1", TRITONSERVER_TYPE_INT32, true, true, true, 1, {2}, 0, 0},
    {"output0", TRITONSERVER_TYPE_FP32, false, false, true, 2, {-1, -1}, 0, 0},
};
enum { SHAPES = sizeof shapes / sizeof *shapes };

static struct profile_range range(size_t count, int64_t min0, int64_t best0, int64_t max0,
                                  int64_t min1, int64_t best1, int64_t max1)
{
    return (struct profile_range){
        .count = count, .min = {min0, min1}, .best = {best0, best1}, .max = {max0, max1}};
}

/* Small shapes, large ones, and one that allows both and is made for those between. */
static struct profile_limits small[2], large[2], both[2];
static struct profile profiles[] = {{"0", 0, small}, {"2", 2, large}, {"5", 5, both}};

static int set_up(void **state)
{
    (void)state;
    small[0].dims = range(2, 1, 1, 4, 1, 8, 16);
    large[0].dims = range(2, 1, 8, 8, 64, 96, 128);
    both[0].dims = range(2, 1, 4, 8, 1, 40, 128);
    small[1] = large[1] = both[1] = (struct profile_limits){.dims = range(1, 2, 2, 2, 0, 0, 0)};
    small[1].values = range(2, 1, 1, 4, 1, 8, 16);
    large[1].values = range(2, 1, 8, 8, 64, 96, 128);
    both[1].values = range(2, 1, 4, 8, 1, 40, 128);
    return 0;
}

/* input0 [ rows, length ], and input1 with the value `length` of a request. */
static void give(struct profile_given given[2], int64_t rows, int32_t length)
{
    given[0] = (struct profile_given){.name = "input0", .rank = 2, .dims = {rows, length}};
    given[1] = (struct profile_given){.name = "input1", .rank = 1};
    assert_null(
        profile_read_values(&given[1], TRITONSERVER_TYPE_INT32, rows, &length, sizeof length));
    given[1].dims[0] = (int64_t)given[1].count;
}

/* MC-75, MC-72: a batch of x puts x in front of the values of a request, which has one; the plan
 * gets two, as its own type. */
static void rows_go_before_shape_values(void **state)
{
    struct profile_given given[2];
    int32_t narrow[2] = {0};
    int64_t wide[2] = {0}, value = 1 << 20;
    (void)state;
    give(given, 3, 7);
    assert_int_equal(given[1].count, 2);
    profile_write_values(&given[1], TRITONSERVER_TYPE_INT32, narrow);
    assert_int_equal(narrow[0], 3);
    assert_int_equal(narrow[1], 7);

    assert_null(profile_read_values(&given[1], TRITONSERVER_TYPE_INT64, 5, &value, sizeof value));
    profile_write_values(&given[1], TRITONSERVER_TYPE_INT64, wide);
    assert_int_equal(wide[0], 5);
    assert_int_equal(wide[1], 1 << 20);

    /* Without batching nothing is put there. */
    assert_null(profile_read_values(&given[1], TRITONSERVER_TYPE_INT64, 0, &value, sizeof value));
    assert_int_equal(given[1].count, 1);
    assert_int_equal(given[1].values[0], 1 << 20);
}

static void shape_values_that_are_none(void **state)
{
    struct profile_given given = {.name = "input1"};
    int64_t many[PROFILE_MOST_VALUES] = {0};
    (void)state;
    assert_says(profile_read_values(&given, TRITONSERVER_TYPE_FP32, 1, many, 4), "FP32");
    assert_says(profile_read_values(&given, TRITONSERVER_TYPE_INT64, 1, many, 12), "12 bytes");
    assert_says(profile_read_values(&given, TRITONSERVER_TYPE_INT64, 1, many, sizeof many),
                "at most 63 values");
    assert_null(
        profile_read_values(&given, TRITONSERVER_TYPE_INT64, 1, many, sizeof many - sizeof *many));
    assert_int_equal(given.count, PROFILE_MOST_VALUES);
}

/* PB-20, PB-21: of the profiles of a group, the one that was made for the nearest shapes. */
static void nearest_profile_is_chosen(void **state)
{
    static const struct {
        int64_t rows;
        int32_t length;
        size_t at;
    } cases[] = {{1, 1, 0},   {4, 16, 0}, {4, 17, 2}, {5, 16, 2},
                 {8, 128, 1}, {4, 64, 2}, {2, 70, 1}};
    struct profile_given given[2];
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        size_t at = SIZE_MAX;
        give(given, cases[i].rows, cases[i].length);
        assert_null(profile_choose(profiles, 3, given, 2, "m_0", &at));
        assert_int_equal(at, cases[i].at);
    }
}

/* Of two that are as near, the first; and the nearest by shapes loses if it does not allow the
 * values of a shape tensor. */
static void ties_and_values_decide(void **state)
{
    struct profile_given given[2];
    size_t at = SIZE_MAX;
    struct profile same[] = {{"1", 1, both}, {"3", 3, both}};
    (void)state;
    give(given, 4, 40);
    assert_null(profile_choose(same, 2, given, 2, "m_0", &at));
    assert_int_equal(at, 0);

    give(given, 1, 8);
    given[1].values[1] = 100;
    assert_null(profile_choose(profiles, 3, given, 2, "m_0", &at));
    assert_int_equal(at, 2);
}

static void no_profile_allows_it(void **state)
{
    struct profile_given given[2];
    size_t at = 77;
    (void)state;
    give(given, 9, 8);
    assert_says(profile_choose(profiles, 3, given, 2, "m_0", &at),
                "failed to find any Optimization Profile among 3");
    assert_says(profile_choose(profiles, 1, given, 2, "m_0", &at),
                "request specifies invalid shape for input 'input0' for m_0. Error details: model "
                "expected the shape of dimension 0 to be between 1 and 4 but received 9");
    give(given, 1, 8);
    given[1].values[1] = 17;
    assert_says(profile_choose(profiles, 1, given, 2, "m_0", &at),
                "The shape value at index 1 is expected to be in range from 1 to 16, Got: 17");
    given[1].count = 1;
    assert_says(profile_check(&profiles[0], given, 2, "m_0"),
                "mismatch between the number of shape values. Expecting 2. Got 1");
    given[0].rank = 1;
    assert_says(profile_check(&profiles[0], given, 2, "m_0"),
                "model expected 2 dimensions but received 1 dimensions");
    assert_int_equal(at, 77);
}

/* Differences of 2^63 twice are not 0 together. */
static void distances_do_not_overflow(void **state)
{
    struct profile_limits far = {.dims =
                                     range(2, INT64_MIN, -1, INT64_MAX, INT64_MIN, -1, INT64_MAX)};
    struct profile_limits near = far;
    struct profile two[] = {{"0", 0, &far}, {"1", 1, &near}};
    struct profile_given given = {.name = "x", .rank = 2, .dims = {INT64_MAX, INT64_MAX}};
    size_t at = 77;
    (void)state;
    near.dims.best[0] = near.dims.best[1] = INT64_MAX - 1;
    assert_null(profile_choose(two, 2, &given, 1, "m_0", &at));
    assert_int_equal(at, 1);
}

/* PB-22: a profile lies between 0 and the number of the plan's profiles - 1. */
static void profile_of_the_plan(void **state)
{
    static const char *const wrong[] = {"3", "-1", "", "1x", "99999999999999999999"};
    int32_t index = 77;
    (void)state;
    assert_null(profile_find("2", "m_0", 3, &index));
    assert_int_equal(index, 2);
    assert_null(profile_find("0", "m_0", 1, &index));
    assert_int_equal(index, 0);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_says(profile_find(wrong[i], "m_0", 3, &index),
                    "Expected optimization profile index range 0-2");
}

static void most_rows_of_a_profile(void **state)
{
    struct profile_limits scalar = {.dims = {.count = 0}};
    struct profile one = {"0", 0, &scalar};
    (void)state;
    assert_int_equal(profile_most_rows(&profiles[0], 2), 4);
    assert_int_equal(profile_most_rows(&profiles[1], 2), 8);
    /* the first value of a shape tensor is the batch too */
    large[1].values.max[0] = 6;
    assert_int_equal(profile_most_rows(&profiles[1], 2), 6);
    assert_int_equal(profile_most_rows(&one, 1), 0);
    assert_int_equal(profile_most_rows(&one, 0), 0);
}

#define SHAPE_MODEL(batch, input1, more)                                                   \
    "{\"max_batch_size\":" batch                                                           \
    ",\"input\":[{\"name\":\"input0\",\"data_type\":\"TYPE_FP32\",\"dims\":[-1]},{" input1 \
    "}],\"output\":[{\"name\":\"output0\",\"data_type\":\"TYPE_FP32\",\"dims\":[-1]}]" more "}"
#define INPUT1(type, dims, marked) \
    "\"name\":\"input1\",\"data_type\":\"" type "\",\"dims\":" dims ",\"is_shape_tensor\":" marked
#define EXAMPLE SHAPE_MODEL("8", INPUT1("TYPE_INT32", "[1]", "true"), "")

static TRITONSERVER_Error *check_text(const char *text, const struct trt_tensor *tensors,
                                      size_t count, struct check_role *roles)
{
    yyjson_doc *doc = yyjson_read(text, strlen(text), 0);
    assert_non_null(doc);
    memset(roles, 0, count * sizeof *roles);
    TRITONSERVER_Error *err = check_tensors("m", yyjson_doc_get_root(doc), tensors, count, roles);
    yyjson_doc_free(doc);
    return err;
}

/* MC-70, MC-71, MC-74: the example fits its plan; the shape tensor's dims are those of a
 * request, [ 1 ], and neither [ 2 ] nor [ -1 ]. */
static void example_of_shape_tensors(void **state)
{
    struct check_role roles[SHAPES];
    (void)state;
    assert_null(check_text(EXAMPLE, shapes, SHAPES, roles));
    assert_true(roles[0].configured && roles[1].configured && roles[2].served);
    static const char *const dims[] = {"[2]", "[-1]", "[1,1]", "[]"};
    for (size_t i = 0; i < sizeof dims / sizeof *dims; i++) {
        char text[512];
        snprintf(text, sizeof text, SHAPE_MODEL("8", INPUT1("TYPE_INT32", "%s", "true"), ""),
                 dims[i]);
        assert_says(check_text(text, shapes, SHAPES, roles),
                    "binding 'input1' shape expected by framework [2] doesn't match model "
                    "configuration shape");
    }
    assert_says(check_text(SHAPE_MODEL("8", INPUT1("TYPE_INT64", "[1]", "true"), ""), shapes,
                           SHAPES, roles),
                "unexpected datatype TYPE_INT32 for inference input 'input1', expecting "
                "TYPE_INT64");
    assert_says(
        check_text(SHAPE_MODEL("8", INPUT1("TYPE_FP32", "[1]", "true"), ""), shapes, SHAPES, roles),
        "unexpected datatype TYPE_FP32 in model configuration for shape input 'input1', "
        "expecting TYPE_INT32 or TYPE_INT64 for m");
}

/* A plan may leave the number of values open; a configuration may not. */
static void open_shape_tensor(void **state)
{
    static const struct trt_tensor open[] = {
        {"input0", TRITONSERVER_TYPE_FP32, true, false, true, 1, {-1}, 0, 0},
        {"input1", TRITONSERVER_TYPE_INT32, true, true, true, 1, {-1}, 0, 0},
        {"output0", TRITONSERVER_TYPE_FP32, false, false, true, 1, {-1}, 0, 0},
    };
    struct check_role roles[SHAPES];
    (void)state;
    assert_says(
        check_text(SHAPE_MODEL("0", INPUT1("TYPE_INT32", "[-1]", "true"), ""), open, SHAPES, roles),
        "shape expected by framework [-1] doesn't match model configuration shape [-1]");
}

/* MC-76, PB-37, PB-47: what is marked as a shape tensor has to be one, and what is one has to be
 * marked, input or output. */
static void marks_of_shape_tensors(void **state)
{
    struct check_role roles[SHAPES];
    struct trt_tensor other[SHAPES];
    (void)state;
    assert_says(check_text(SHAPE_MODEL("8", INPUT1("TYPE_INT32", "[1]", "false"), ""), shapes,
                           SHAPES, roles),
                "input 'input1' for model 'm' is a shape tensor but the model configuration "
                "doesn't mark it "
                "as a shape tensor.");
    memcpy(other, shapes, sizeof other);
    other[1].is_shape = false;
    assert_says(check_text(EXAMPLE, other, SHAPES, roles),
                "input 'input1' for model 'm' is incorrectly marked as a shape tensor");
    memcpy(other, shapes, sizeof other);
    other[2] =
        (struct trt_tensor){"output0", TRITONSERVER_TYPE_FP32, false, true, true, 1, {2}, 0, 0};
    assert_says(check_text(EXAMPLE, other, SHAPES, roles),
                "output 'output0' for model 'm' is a shape tensor but the model configuration "
                "doesn't mark it");
}

#define PLAIN(batch, type, dims)                                                     \
    "{\"max_batch_size\":" batch ",\"input\":[{\"name\":\"x\",\"data_type\":\"" type \
    "\",\"dims\":" dims                                                              \
    "}],\"output\":[{\"name\":\"y\",\"data_type\":\"TYPE_FP32\",\"dims\":[16]}]}"

static const struct trt_tensor plain[] = {
    {"x", TRITONSERVER_TYPE_FP32, true, false, true, 2, {-1, 16}, 0, 0},
    {"y", TRITONSERVER_TYPE_FP32, false, false, true, 2, {-1, 16}, 0, 0},
};

static void names_types_and_shapes(void **state)
{
    struct check_role roles[2];
    struct trt_tensor other[2];
    (void)state;
    assert_null(check_text(PLAIN("8", "TYPE_FP32", "[16]"), plain, 2, roles));
    assert_null(check_text(PLAIN("8", "TYPE_FP32", "[-1]"), plain, 2, roles));
    assert_says(check_text(PLAIN("0", "TYPE_FP32", "[16]"), plain, 2, roles),
                "model 'm', tensor 'x': the model expects 2 dimensions (shape [-1,16]) but the "
                "model configuration specifies 1 dimensions (shape [16])");
    assert_says(check_text(PLAIN("8", "TYPE_FP32", "[17]"), plain, 2, roles),
                "making complete shape [-1,17])");
    assert_says(check_text(PLAIN("8", "TYPE_FP16", "[16]"), plain, 2, roles),
                "unexpected datatype TYPE_FP32 for inference input 'x', expecting TYPE_FP16 for m");
    memcpy(other, plain, sizeof other);
    other[0].name = "z";
    assert_says(check_text(PLAIN("8", "TYPE_FP32", "[16]"), other, 2, roles),
                "unexpected inference input 'x', allowed inputs are: z");
    assert_says(check_text("{\"max_batch_size\":8,\"output\":[]}", plain, 2, roles),
                "the plan has an input 'x', which the configuration does not have");
}

#define SEQUENCE(rest) \
    "{\"max_batch_size\":8,\"input\":[],\"output\":[],\"sequence_batching\":{" rest "}}"

static void controls_and_states(void **state)
{
    static const struct trt_tensor tensors[] = {
        {"start", TRITONSERVER_TYPE_INT32, true, false, true, 2, {-1, 1}, 0, 0},
        {"sum", TRITONSERVER_TYPE_FP32, true, false, true, 2, {-1, 4}, 0, 0},
        {"new_sum", TRITONSERVER_TYPE_FP32, false, false, true, 2, {-1, 4}, 0, 0},
    };
    struct check_role roles[3];
    (void)state;
    assert_null(check_text(
        SEQUENCE(
            "\"control_input\":[{\"name\":\"start\",\"control\":[{\"int32_false_true\":[0,1]}]}"
            "],\"state\":[{\"input_name\":\"sum\",\"output_name\":\"new_sum\",\"data_type\":"
            "\"TYPE_FP32\",\"dims\":[4]}]"),
        tensors, 3, roles));
    assert_true(roles[0].configured && roles[1].configured && roles[2].is_state);
    assert_false(roles[2].served);
    assert_says(check_text(SEQUENCE("\"control_input\":[{\"name\":\"start\",\"control\":[{\"fp32_"
                                    "false_true\":[0,1]}]}]"),
                           tensors, 3, roles),
                "expecting TYPE_FP32");
    assert_says(check_text(SEQUENCE("\"control_input\":[{\"name\":\"sum\",\"control\":[{\"fp32_"
                                    "false_true\":[0,1]}]}]"),
                           tensors, 3, roles),
                "unexpected shape [-1,4] for control input 'sum'");
}

/* The completed configuration as text, in a buffer that the next call takes. */
static const char *completed(const char *text, const struct trt_tensor *tensors, size_t count,
                             int64_t most_rows)
{
    static char result[2048];
    yyjson_doc *doc = yyjson_read(text, strlen(text), 0);
    yyjson_mut_doc *made = NULL;
    TRITONSERVER_Error *err = complete_config("m", doc, tensors, count, most_rows, &made);
    if (err) {
        snprintf(result, sizeof result, "%s", TRITONSERVER_ErrorMessage(err));
        TRITONSERVER_ErrorDelete(err);
    } else {
        char *written = yyjson_mut_write(made, 0, NULL);
        snprintf(result, sizeof result, "%s", written);
        free(written);
    }
    yyjson_mut_doc_free(made);
    yyjson_doc_free(doc);
    return result;
}

/* MC-37: everything that is required comes from the plan. */
static void nothing_needs_to_be_configured(void **state)
{
    (void)state;
    assert_string_equal(
        completed("{\"max_batch_size\":0}", shapes, SHAPES, 8),
        "{\"max_batch_size\":8,\"dynamic_batching\":{},\"input\":["
        "{\"name\":\"input0\",\"data_type\":\"TYPE_FP32\",\"dims\":[-1],\"is_shape_tensor\":false,"
        "\"is_non_linear_format_io\":false},"
        "{\"name\":\"input1\",\"data_type\":\"TYPE_INT32\",\"dims\":[1],\"is_shape_tensor\":true,"
        "\"is_non_linear_format_io\":false}],"
        "\"output\":[{\"name\":\"output0\",\"data_type\":\"TYPE_FP32\",\"dims\":[-1],"
        "\"is_shape_tensor\":false,\"is_non_linear_format_io\":false}]}");
    assert_string_equal(
        completed("{\"max_batch_size\":0}", shapes, SHAPES, 0),
        "{\"max_batch_size\":0,\"input\":["
        "{\"name\":\"input0\",\"data_type\":\"TYPE_FP32\",\"dims\":[-1,-1],\"is_shape_tensor\":"
        "false,\"is_non_linear_format_io\":false},{\"name\":\"input1\",\"data_type\":\"TYPE_"
        "INT32\",\"dims\":[2],\"is_shape_tensor\":"
        "true,\"is_non_linear_format_io\":false}],\"output\":[{\"name\":\"output0\",\"data_type\":"
        "\"TYPE_FP32\",\"dims\":[-1,-1],"
        "\"is_shape_tensor\":false,\"is_non_linear_format_io\":false}]}");
}

static void what_is_given_stays(void **state)
{
    (void)state;
    assert_string_equal(
        completed("{\"max_batch_size\":4,\"input\":[{\"name\":\"x\",\"dims\":[-1]}]}", plain, 2, 8),
        "{\"max_batch_size\":4,\"input\":[{\"name\":\"x\",\"dims\":[-1],\"data_type\":\"TYPE_"
        "FP32\","
        "\"is_shape_tensor\":false,\"is_non_linear_format_io\":false}],\"dynamic_batching\":{},"
        "\"output\":[{\"name\":\"y\",\"data_"
        "type\":\"TYPE_FP32\",\"dims\":[16],\"is_shape_tensor\":false,\"is_non_linear_format_io\":"
        "false}]}");
    /* Shapes with as many dimensions as the plan's say that it does not batch. */
    assert_non_null(
        strstr(completed("{\"max_batch_size\":0,\"input\":[{\"name\":\"x\",\"dims\":[4,16]}]}",
                         plain, 2, 8),
               "\"max_batch_size\":0"));
}

static void what_contradicts_the_plan(void **state)
{
    (void)state;
    assert_string_equal(completed("{\"max_batch_size\":9}", plain, 2, 8),
                        "autofill failed for model 'm': configuration specified max-batch 9 but "
                        "TensorRT engine only supports max-batch 8");
    assert_non_null(
        strstr(completed("{\"max_batch_size\":0,\"input\":[{\"name\":\"x\",\"dims\":[16]}],"
                         "\"output\":[{\"name\":\"y\",\"dims\":[4,16]}]}",
                         plain, 2, 8),
               "contradicting each other"));
    assert_non_null(strstr(completed("{\"max_batch_size\":0,\"input\":[{\"name\":\"x\",\"dims\":["
                                     "16],\"is_shape_tensor\":true}]}",
                                     plain, 2, 8),
                           "'x' is incorrectly specified as a shape tensor."));
    assert_non_null(strstr(
        completed("{\"max_batch_size\":0,\"input\":[{\"name\":\"x\",\"dims\":[16]}]}", plain, 2, 0),
        "hints for dynamic batching but the underlying engine doesn't support batching."));
}

#define FORMATTED(batch, marked)                                                \
    "{\"max_batch_size\":" batch                                                \
    ",\"input\":[{\"name\":\"x\",\"data_type\":\"TYPE_INT8\",\"dims\":[3,2,2]," \
    "\"is_non_linear_format_io\":" marked                                       \
    "}],\"output\":[{\"name\":\"y\",\"data_type\":\"TYPE_INT8\",\"dims\":[3,2,2]}]}"

/* A format that is not linear has to be marked, and one that is must not be; those whose bytes
 * cannot be counted for each request are named. */
static void formats(void **state)
{
    static const struct trt_tensor tensors[] = {
        {"x", TRITONSERVER_TYPE_INT8, true, false, false, 4, {-1, 3, 2, 2}, 4, 1},
        {"y", TRITONSERVER_TYPE_INT8, false, false, true, 4, {-1, 3, 2, 2}, 0, 0},
    };
    struct trt_tensor other[2];
    struct check_role roles[2];
    (void)state;
    assert_null(check_text(FORMATTED("8", "true"), tensors, 2, roles));
    assert_says(check_text(FORMATTED("8", "false"), tensors, 2, roles),
                "input 'x' for model 'm' uses a non-linear IO format, but "
                "'is_non_linear_format_io' is incorrectly set to false");
    memcpy(other, tensors, sizeof other);
    other[0].is_linear = true;
    assert_says(check_text(FORMATTED("8", "true"), other, 2, roles),
                "input 'x' for model 'm' uses a linear IO format, but 'is_non_linear_format_io' "
                "is incorrectly set to true");
    memcpy(other, tensors, sizeof other);
    other[0].vector = TRT_PADDED;
    assert_says(check_text(FORMATTED("8", "true"), other, 2, roles),
                "not served: one of the deep learning accelerator's own");
    memcpy(other, tensors, sizeof other);
    other[0].vector_dim = 0;
    assert_says(check_text(FORMATTED("8", "true"), other, 2, roles),
                "not served: one that mixes the requests of a batch");
    assert_non_null(strstr(completed("{\"max_batch_size\":0}", tensors, 2, 8),
                           "\"dims\":[3,2,2],\"is_shape_tensor\":false,"
                           "\"is_non_linear_format_io\":true}"));
    assert_non_null(strstr(completed("{\"max_batch_size\":0,\"output\":[{\"name\":\"y\","
                                     "\"is_non_linear_format_io\":true}]}",
                                     tensors, 2, 8),
                           "'y' uses a linear IO format, but 'is_non_linear_format_io' is "
                           "incorrectly set to true"));
}

static TRITONSERVER_Error *read_options(const char *text, struct options *ret)
{
    yyjson_doc *doc = yyjson_read(text, strlen(text), 0);
    assert_non_null(doc);
    TRITONSERVER_Error *err = options_read("m", yyjson_doc_get_root(doc), ret);
    yyjson_doc_free(doc);
    return err;
}

/* reads PB-59, PB-60: PRIORITY_MAX is a stream of the highest priority, PRIORITY_MIN one of the
 * lowest. */
static void priorities(void **state)
{
    struct options options;
    (void)state;
    assert_null(read_options("{}", &options));
    assert_int_equal(options.priority, BCUDA_USUAL);
    assert_false(options.grows);
    assert_null(read_options("{\"optimization\":{\"priority\":\"PRIORITY_MAX\"}}", &options));
    assert_int_equal(options.priority, BCUDA_FIRST);
    assert_null(read_options("{\"optimization\":{\"priority\":\"PRIORITY_MIN\"}}", &options));
    assert_int_equal(options.priority, BCUDA_LAST);
    assert_null(read_options("{\"optimization\":{\"priority\":\"PRIORITY_DEFAULT\"}}", &options));
    assert_int_equal(options.priority, BCUDA_USUAL);
}

/* reads PB-61: CUDA graphs are recorded only if they are asked for. */
static void settings_of_cuda(void **state)
{
    struct options options;
    (void)state;
    assert_null(read_options("{}", &options));
    assert_false(options.graphs || options.busy);
    assert_null(read_options("{\"optimization\":{\"cuda\":{\"graphs\":false}}}", &options));
    assert_false(options.graphs || options.busy);
    assert_null(read_options("{\"optimization\":{\"cuda\":{\"graphs\":true}}}", &options));
    assert_true(options.graphs && !options.busy);
    assert_null(
        read_options("{\"optimization\":{\"cuda\":{\"busy_wait_events\":true}}}", &options));
    assert_true(!options.graphs && options.busy);
}

/* By name. */
static void what_is_not_served(void **state)
{
    struct options options;
    (void)state;
    assert_says(read_options("{\"batch_input\":[{}]}", &options), "'batch_input'");
    assert_says(read_options("{\"batch_output\":[{}]}", &options), "'batch_output'");
    assert_says(read_options("{\"input\":[{\"allow_ragged_batch\":true}]}", &options),
                "'allow_ragged_batch'");
    assert_says(read_options("{\"parameters\":{\"enable_multi_device\":{\"string_value\":\"True\"}}"
                             "}",
                             &options),
                "'enable_multi_device'");
}

#define STRATEGY(value)                                                                            \
    "{\"parameters\":{\"execution_context_allocation_strategy\":{\"string_value\":\"" value "\"}}" \
    "}"

static void strategies(void **state)
{
    struct options options;
    (void)state;
    assert_null(read_options(STRATEGY("ON_PROFILE_CHANGE"), &options));
    assert_true(options.grows);
    assert_null(read_options(STRATEGY("STATIC"), &options));
    assert_false(options.grows);
    assert_says(read_options(STRATEGY("LAZY"), &options),
                "Invalid value for 'execution_context_allocation_strategy': 'LAZY'");
}

static void settings_of_the_command_line(void **state)
{
    static const struct {
        const char *text;
        bool host_code;
    } cases[] = {{"{}", false},
                 {"{\"version-compatible\":\"true\"}", true},
                 {"{\"version-compatible\":\"0\"}", false}};
    struct runtime runtime;
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        yyjson_doc *doc = yyjson_read(cases[i].text, strlen(cases[i].text), 0);
        assert_null(options_of_backend(yyjson_doc_get_root(doc), &runtime));
        assert_int_equal(runtime.host_code, cases[i].host_code);
        yyjson_doc_free(doc);
    }
    const char *wrong = "{\"version-compatible\":\"perhaps\"}";
    yyjson_doc *doc = yyjson_read(wrong, strlen(wrong), 0);
    assert_says(options_of_backend(yyjson_doc_get_root(doc), &runtime),
                "version-compatible is true or false, not 'perhaps'");
    yyjson_doc_free(doc);
    assert_null(options_of_backend(NULL, &runtime));
}

static char logged[4096];

static void keep_line(int fd, const char *line, size_t len)
{
    (void)fd;
    strncat(logged, line, len);
}

static size_t logged_lines(void)
{
    size_t count = 0;
    for (const char *at = logged; (at = strchr(at, '\n')); at++)
        count++;
    return count;
}

/* Of the command line, and of a model: a line each, and none for what is so here. */
static void what_changes_nothing_is_said(void **state)
{
    static const char given[] = "{\"execution-policy\":\"DEVICE_BLOCKING\","
                                "\"coalesce-request-input\":\"true\"}";
    static const char as_here[] = "{\"execution-policy\":\"BLOCKING\","
                                  "\"coalesce-request-input\":\"false\"}";
    struct runtime runtime;
    struct options options;
    (void)state;
    log_set_writer(keep_line);
    yyjson_doc *doc = yyjson_read(as_here, strlen(as_here), 0);
    assert_null(options_of_backend(yyjson_doc_get_root(doc), &runtime));
    yyjson_doc_free(doc);
    assert_string_equal(logged, "");
    doc = yyjson_read(given, strlen(given), 0);
    assert_null(options_of_backend(yyjson_doc_get_root(doc), &runtime));
    yyjson_doc_free(doc);
    assert_int_equal(logged_lines(), 2);
    assert_non_null(strstr(logged, "backend 'tensorrt': 'execution-policy' is BLOCKING here, not "
                                   "DEVICE_BLOCKING: each instance"));
    assert_non_null(strstr(logged, "'coalesce-request-input' is false here, not true: the inputs"));
    assert_null(read_options("{\"parameters\":{\"coalesce-request-input\":{\"string_value\":"
                             "\"true\"}}}",
                             &options));
    assert_int_equal(logged_lines(), 3);
    assert_non_null(strstr(logged, "model 'm': 'coalesce-request-input' is false here"));
    assert_null(
        read_options("{\"optimization\":{\"cuda\":{\"output_copy_stream\":true}}}", &options));
    assert_int_equal(logged_lines(), 4);
    assert_non_null(strstr(logged, "model 'm': 'output_copy_stream' is false here, not true"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(rows_go_before_shape_values, set_up),
        cmocka_unit_test(shape_values_that_are_none),
        cmocka_unit_test_setup(nearest_profile_is_chosen, set_up),
        cmocka_unit_test_setup(ties_and_values_decide, set_up),
        cmocka_unit_test_setup(no_profile_allows_it, set_up),
        cmocka_unit_test(distances_do_not_overflow),
        cmocka_unit_test(profile_of_the_plan),
        cmocka_unit_test_setup(most_rows_of_a_profile, set_up),
        cmocka_unit_test(example_of_shape_tensors),
        cmocka_unit_test(open_shape_tensor),
        cmocka_unit_test(marks_of_shape_tensors),
        cmocka_unit_test(names_types_and_shapes),
        cmocka_unit_test(controls_and_states),
        cmocka_unit_test(nothing_needs_to_be_configured),
        cmocka_unit_test(what_is_given_stays),
        cmocka_unit_test(what_contradicts_the_plan),
        cmocka_unit_test(formats),
        cmocka_unit_test(priorities),
        cmocka_unit_test(settings_of_cuda),
        cmocka_unit_test(what_is_not_served),
        cmocka_unit_test(strategies),
        cmocka_unit_test(settings_of_the_command_line),
        cmocka_unit_test(what_changes_nothing_is_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
