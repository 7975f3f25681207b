/* Which executions of a plan are recorded as graphs of CUDA's, and which recording serves a batch:
 * what the backend `tensorrt` decides without TensorRT and without a GPU. */
#include "tensorrt/graph.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static void assert_says(TRITONSERVER_Error *err, const char *words)
{
    assert_non_null(err);
    if (!strstr(TRITONSERVER_ErrorMessage(err), words))
        fail_msg("'%s' is not in '%s'", words, TRITONSERVER_ErrorMessage(err));
    TRITONSERVER_ErrorDelete(err);
}

/* x [ -1, -1 ], best for two rows of eight; lengths with two values, of the batch and of a
 * request. */
static const struct trt_tensor tensors[] = {
    {"lengths", TRITONSERVER_TYPE_INT32, true, true, true, 1, {2}, 0, 0},
    {"y", TRITONSERVER_TYPE_FP32, false, false, true, 2, {-1, -1}, 0, 0},
    {"x", TRITONSERVER_TYPE_FP32, true, false, true, 2, {-1, -1}, 0, 0},
};
enum { TENSORS = 3, INPUTS = 2 };

static struct profile_limits limits[INPUTS] = {
    {.dims = {1, {2}, {2}, {2}}, .values = {2, {1, 1}, {2, 5}, {16, 9}}},
    {.dims = {2, {1, 1}, {2, 8}, {16, 16}}},
};
static const struct profile profile = {"0", 0, limits};

#define CUDA(specs) "{\"optimization\":{\"cuda\":{\"graphs\":true,\"graph_spec\":[" specs "]}}}"
#define SPEC(rows, lengths, x, more)                                                             \
    "{\"batch_size\":" rows ",\"input\":{\"lengths\":{\"dim\":[" lengths "]},\"x\":{\"dim\":[" x \
    "]}}" more "}"
#define BOUND(rows, lengths, x) ",\"graph_lower_bound\":" SPEC(rows, lengths, x, "")

/* The batch sizes that a configuration asks for, as text. */
static const char *sizes(const char *config, int64_t max_batch_size)
{
    static char text[256];
    struct graph_spec *specs = NULL;
    size_t count = 0, used = 0;
    yyjson_doc *doc = yyjson_read(config, strlen(config), 0);
    assert_null(graph_list(yyjson_doc_get_root(doc), max_batch_size, &specs, &count));
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(specs[i].rows, specs[i].least_rows);
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%lld", i ? " " : "",
                                 (long long)specs[i].rows);
    }
    free(specs);
    yyjson_doc_free(doc);
    return text;
}

/* Without graph_spec, the batch sizes of the reference, each once and none above the largest. */
static void usual_sizes(void **state)
{
    (void)state;
    assert_string_equal(sizes("{}", 0), "0");
    assert_string_equal(sizes("{\"dynamic_batching\":{\"preferred_batch_size\":[4]}}", 0), "0");
    assert_string_equal(sizes("{}", 1), "1");
    assert_string_equal(sizes("{}", 5), "1 2 3 4 5");
    assert_string_equal(sizes("{}", 64), "1 2 3 4 6 8 12 16 64");
    assert_string_equal(sizes("{\"dynamic_batching\":{}}", 8), "1 8");
    assert_string_equal(sizes("{\"dynamic_batching\":{\"preferred_batch_size\":[4,8,4,9]}}", 8),
                        "1 4 8");
    assert_string_equal(
        sizes("{\"sequence_batching\":{\"oldest\":{\"preferred_batch_size\":[3]}}}", 8), "1 3 8");
    assert_string_equal(sizes("{\"sequence_batching\":{\"direct\":{}}}", 2), "1 2");
    assert_string_equal(sizes(CUDA("{\"batch_size\":7},{\"batch_size\":2}"), 8), "7 2");
}

static TRITONSERVER_Error *list_error(const char *config, int64_t max_batch_size)
{
    struct graph_spec *specs = NULL;
    size_t count = 0;
    yyjson_doc *doc = yyjson_read(config, strlen(config), 0);
    assert_non_null(doc);
    TRITONSERVER_Error *err = graph_list(yyjson_doc_get_root(doc), max_batch_size, &specs, &count);
    free(specs);
    yyjson_doc_free(doc);
    return err;
}

static void specifications_that_cannot_be(void **state)
{
    static const struct {
        const char *config;
        int64_t max_batch_size;
        const char *says;
    } cases[] = {
        {CUDA("{\"batch_size\":1}"), 0, "'batch_size' to be 0 if 'max_batch_size' is 0"},
        {CUDA("{\"batch_size\":9}"), 8, "'batch_size' to be >= 1 and <= 8"},
        {CUDA("{}"), 8, "'batch_size' to be >= 1 and <= 8"},
        {CUDA("{\"batch_size\":2,\"graph_lower_bound\":{}}"), 8, "'batch_size' to be >= 1"},
        {CUDA("{\"batch_size\":2,\"graph_lower_bound\":{\"batch_size\":3}}"), 8,
         "graph lower bound spec expects 'batch_size' to be <= graph spec 'batch_size'"},
        {CUDA(SPEC("2", "5", "8", ",\"graph_lower_bound\":{\"batch_size\":1}")), 8,
         "graph lower bound spec expects shape for input 'lengths'"},
        {CUDA(SPEC("2", "5", "8", BOUND("1", "5", "8,1"))), 8,
         "expects to have 1 dimensions for input 'x', got 2"},
        {CUDA(SPEC("2", "5", "-1", "")), 8, "graph spec expects input 'x' to have dimension >= 0"},
        {CUDA(SPEC("2", "5", "\"8\"", BOUND("1", "5", "\"9\""))), 8,
         "graph lower bound spec expects input 'x' to have dimension <= 8"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_says(list_error(cases[i].config, cases[i].max_batch_size), cases[i].says);
}

/* Makes what the specifications of a configuration mean for a plan. */
static TRITONSERVER_Error *make(const char *config, const struct trt_tensor *of,
                                struct graph *graphs, size_t *ret_count)
{
    struct graph_spec *specs = NULL;
    size_t count = 0;
    TRITONSERVER_Error *err = NULL;
    yyjson_doc *doc = yyjson_read(config, strlen(config), 0);
    assert_non_null(doc);
    assert_null(graph_list(yyjson_doc_get_root(doc), 16, &specs, &count));
    for (*ret_count = 0; *ret_count < count && !err; *ret_count += !err)
        err = graph_init(&specs[*ret_count], &profile, of, TENSORS, "m_0", &graphs[*ret_count]);
    free(specs);
    yyjson_doc_free(doc);
    return err;
}

static void end(struct graph *graphs, size_t count)
{
    for (size_t i = 0; i < count; i++)
        graph_fini(&graphs[i], TENSORS);
}

/* Which recording serves a batch, as its rows times 1000 and its length; -1 if none does. */
static int64_t serves(const struct graph *graphs, size_t count, int64_t rows, int64_t value,
                      int64_t length)
{
    const struct profile_given given[INPUTS] = {
        {.name = "lengths", .rank = 1, .dims = {2}, .count = 2, .values = {rows, value}},
        {.name = "x", .rank = 2, .dims = {rows, length}},
    };
    const struct graph *found = graph_choose(graphs, count, given, INPUTS);
    return found ? found->rows * 1000 + found->most[1].dims[1] : -1;
}

/* Without shapes, those that the profile is best for, with each of the batch sizes. */
static void best_shapes(void **state)
{
    struct graph graphs[2];
    size_t count;
    (void)state;
    assert_null(make(CUDA("{\"batch_size\":4},{\"batch_size\":2}"), tensors, graphs, &count));
    assert_int_equal(count, 2);
    assert_int_equal(graphs[0].most[0].values[0], 4);
    assert_int_equal(graphs[0].most[0].values[1], 5);
    assert_int_equal(serves(graphs, 2, 4, 5, 8), 4008);
    assert_int_equal(serves(graphs, 2, 2, 5, 8), 2008);
    assert_int_equal(serves(graphs, 2, 3, 5, 8), -1);
    assert_int_equal(serves(graphs, 2, 4, 6, 8), -1);
    assert_int_equal(serves(graphs, 2, 4, 5, 9), -1);
    end(graphs, count);
}

/* reads PB-61: a batch of exactly this shape, or of one between the bounds; of several the smallest. */
static void bounds(void **state)
{
    static const struct {
        int64_t rows, value, length, serves;
    } cases[] = {
        {1, 5, 8, 8016},  {2, 5, 8, 4008}, {4, 5, 8, 4008}, {4, 5, 5, 4008}, {4, 5, 4, -1},
        {4, 4, 8, -1},    {4, 6, 8, -1},   {5, 5, 8, 8016}, {4, 5, 9, 8016}, {3, 5, 16, 8016},
        {8, 5, 16, 8016}, {9, 5, 16, -1},  {6, 5, 8, 6008}, {6, 5, 7, 8016}, {12, 7, 16, 12016},
        {11, 7, 16, -1},  {12, 7, 15, -1},
    };
    struct graph graphs[4];
    size_t count;
    (void)state;
    assert_null(
        make(CUDA(SPEC("8", "5", "16", BOUND("1", "5", "5")) "," SPEC("12", "7", "16", "") "," SPEC(
                 "4", "5", "8", BOUND("2", "5", "5")) "," SPEC("6", "5", "8", "")),
             tensors, graphs, &count));
    assert_int_equal(count, 4);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(serves(graphs, count, cases[i].rows, cases[i].value, cases[i].length),
                         cases[i].serves);
    assert_null(graph_choose(graphs, 0, graphs[0].most, INPUTS));
    assert_true(graph_same(&graphs[1], &graphs[1], INPUTS));
    assert_false(graph_same(&graphs[1], &graphs[2], INPUTS));
    end(graphs, count);
}

static void what_a_plan_does_not_allow(void **state)
{
    struct trt_tensor other[TENSORS];
    struct graph graphs[1];
    size_t count;
    (void)state;
    assert_says(
        make(CUDA("{\"batch_size\":2,\"input\":{\"x\":{\"dim\":[8]}}}"), tensors, graphs, &count),
        "the graph spec has no input 'lengths'");
    assert_says(make(CUDA(SPEC("2", "5", "17", "")), tensors, graphs, &count),
                "between 1 and 16 but received 17");
    assert_says(make(CUDA(SPEC("2", "5", "8,1", "")), tensors, graphs, &count),
                "expected 2 dimensions but received 3");
    assert_says(make(CUDA(SPEC("2", "5", "1,1,1,1,1,1,1,1", "")), tensors, graphs, &count),
                "the graph spec of input 'x' has 9 dimensions");
    assert_says(make(CUDA(SPEC("2", "10", "8", "")), tensors, graphs, &count),
                "in range from 1 to 9, Got: 10");
    memcpy(other, tensors, sizeof other);
    other[2].is_linear = false;
    assert_says(make(CUDA(SPEC("2", "5", "8", BOUND("1", "5", "7"))), other, graphs, &count),
                "not served for a non-linear IO format");
    assert_null(make(CUDA(SPEC("2", "5", "8", BOUND("1", "5", "8"))), other, graphs, &count));
    assert_int_equal(serves(graphs, count, 1, 5, 8), 2008);
    end(graphs, count);
}

/* Contents go to where they lie in a larger shape. */
static void contents_in_a_larger_shape(void **state)
{
    const int64_t small[] = {2, 1, 3, 2}, wide[] = {4, 2, 4, 2}, high[] = {4, 1, 3, 2};
    static const int64_t offsets[] = {0, 16};
    int64_t elements;
    (void)state;
    assert_int_equal(graph_block(small, small, 4, &elements), 1);
    assert_int_equal(elements, 12);
    assert_int_equal(graph_block(small, high, 4, &elements), 1);
    assert_int_equal(elements, 12);
    assert_int_equal(graph_block(small, wide, 4, &elements), 2);
    assert_int_equal(elements, 6);
    for (int64_t i = 0; i < 2; i++)
        assert_int_equal(graph_offset(small, wide, 4, i), offsets[i]);
    assert_int_equal(graph_block(NULL, NULL, 0, &elements), 1);
    assert_int_equal(elements, 1);

    const int64_t thin[] = {2, 2, 1}, thick[] = {2, 3, 4};
    static const int64_t places[] = {0, 4, 12, 16};
    assert_int_equal(graph_block(thin, thick, 3, &elements), 4);
    assert_int_equal(elements, 1);
    for (int64_t i = 0; i < 4; i++)
        assert_int_equal(graph_offset(thin, thick, 3, i), places[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(usual_sizes),
        cmocka_unit_test(specifications_that_cannot_be),
        cmocka_unit_test(best_shapes),
        cmocka_unit_test(bounds),
        cmocka_unit_test(what_a_plan_does_not_allow),
        cmocka_unit_test(contents_in_a_larger_shape),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
