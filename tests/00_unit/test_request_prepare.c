/* infer/request_prepare: what a request must be to fit a model's configuration. Messages are
 * those of the reference. */
#include "infer/request.h"
#include "model/config.h"
#include "support/test_version.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static const char batched[] = "name: 'm' backend: 'b' max_batch_size: 4 "
                              "input [{ name: 'a' data_type: TYPE_FP32 dims: [ 2 ] }, { name: 'b' "
                              "data_type: TYPE_FP32 dims: [ -1 ] }] "
                              "output [{ name: 'o' data_type: TYPE_FP32 dims: [ 2 ] }, { name: 'p' "
                              "data_type: TYPE_FP32 dims: [ 1 ] }]";
static const char plain[] =
    "name: 'm' backend: 'b' input [{ name: 's' data_type: TYPE_STRING dims: [ 4, -1 ] }] "
    "output [{ name: 'o' data_type: TYPE_STRING dims: [ 4, -1 ] }]";
static const char reshaped[] =
    "name: 'm' backend: 'b' max_batch_size: 4 "
    "input [{ name: 'in' data_type: TYPE_FP32 dims: [ 1 ] reshape: { shape: [ ] } }] "
    "output [{ name: 'o' data_type: TYPE_FP32 dims: [ 1 ] }]";
static const char variable[] = "name: 'm' backend: 'b' "
                               "input [{ name: 'in' data_type: TYPE_UINT8 dims: [ -1, 2, -1 ] "
                               "reshape: { shape: [ -1, 1, -1, 2 ] } }] "
                               "output [{ name: 'o' data_type: TYPE_UINT8 dims: [ 1 ] }]";
static const char optional_input[] =
    "name: 'm' backend: 'b' input [{ name: 'a' data_type: TYPE_INT8 dims: [ 1 ] }, "
    "{ name: 'b' data_type: TYPE_INT8 dims: [ 1 ] optional: true }] "
    "output [{ name: 'o' data_type: TYPE_INT8 dims: [ 1 ] }]";

static void no_unpin(struct request_target *t)
{
    (void)t;
}

struct fixture {
    struct request_target target;
    struct request *request;
};

static struct fixture begin(const char *config)
{
    struct fixture f = {.target = {.config = test_version_config(config), .unpin = no_unpin}};
    return f;
}

/* The target must not move while the request lives. */
static void start(struct fixture *f)
{
    f->request = request_new(&f->target, NULL, NULL, NULL);
}

static void end(struct fixture *f)
{
    request_release(f->request);
    config_unref((struct model_config *)(uintptr_t)f->target.config);
}

static void add(struct fixture *f, const char *name, enum datatype type, const int64_t *shape,
                uint32_t rank, const void *data, uint64_t size)
{
    struct tensor_piece piece = {.data = data, .size = size};
    assert_non_null(
        request_add_input(f->request, name, strlen(name), type, shape, rank, &piece, 1));
}

static void refuse(struct fixture *f, const char *message)
{
    struct err *e = request_prepare(f->request);
    assert_non_null(e);
    assert_int_equal(err_code(e), STATUS_INVALID_ARG);
    assert_string_equal(err_message(e), message);
    err_free(e);
    end(f);
}

static const float zeros[64];

static void add_a(struct fixture *f, int64_t rows)
{
    add(f, "a", DATATYPE_FP32, (int64_t[]){rows, 2}, 2, zeros, (uint64_t)rows * 8);
}

static void add_b(struct fixture *f, int64_t rows, int64_t n)
{
    add(f, "b", DATATYPE_FP32, (int64_t[]){rows, n}, 2, zeros, (uint64_t)(rows * n) * 4);
}

/* MC-24, MC-28, MC-92, PB-169. */
static void accepts_a_batch(void **state)
{
    (void)state;
    struct fixture f = begin(batched);
    start(&f);
    add_a(&f, 3);
    add_b(&f, 3, 0);
    assert_null(request_prepare(f.request));
    assert_int_equal(f.request->batch_size, 3);
    assert_int_equal(f.request->inputs[0].elements, 6);
    assert_int_equal(f.request->inputs[1].elements, 0);
    assert_int_equal(f.request->output_count, 2);
    assert_string_equal(f.request->outputs[1], "p");
    end(&f);
}

static void refuses_counts(void **state)
{
    (void)state;
    struct fixture f = begin(batched);
    start(&f);
    refuse(&f, "[request id: <id_unknown>] expected 2 inputs but got 0 inputs for model 'm'. Got "
               "input(s) [], but missing "
               "required input(s) ['a','b']. Please provide all required input(s).");
    f = begin(batched);
    start(&f);
    f.request->id = "7";
    add_a(&f, 1);
    refuse(&f, "[request id: 7] expected 2 inputs but got 1 inputs for model 'm'. Got input(s) "
               "['a'], but missing required "
               "input(s) ['b']. Please provide all required input(s).");
    f = begin(optional_input);
    start(&f);
    refuse(
        &f,
        "[request id: <id_unknown>] expected number of inputs between 1 and 2 but got 0 inputs for "
        "model 'm'. Got "
        "input(s) [], but missing required input(s) ['a']. Please provide all required input(s).");
}

static void refuses_names(void **state)
{
    (void)state;
    struct fixture f = begin(batched);
    start(&f);
    add_a(&f, 1);
    add(&f, "x", DATATYPE_FP32, (int64_t[]){1, 2}, 2, zeros, 8);
    refuse(&f, "unexpected inference input 'x' for model 'm'");
    f = begin(batched);
    start(&f);
    add_a(&f, 1);
    add_a(&f, 1);
    refuse(&f, "[request id: <id_unknown>] input 'a' already exists in request");
    f = begin(batched);
    start(&f);
    add_a(&f, 1);
    add_b(&f, 1, 1);
    request_add_output(f.request, "q", 1);
    refuse(&f, "unexpected inference output 'q' for model 'm'");
    f = begin(batched);
    start(&f);
    add_a(&f, 1);
    add_b(&f, 1, 1);
    request_add_output(f.request, "o", 1);
    request_add_output(f.request, "o", 1);
    refuse(&f, "[request id: <id_unknown>] output 'o' already exists in request");
}

/* MC-11, MC-12, PB-167. */
static void refuses_batches(void **state)
{
    (void)state;
    struct fixture f = begin(batched);
    start(&f);
    add_a(&f, 5);
    add_b(&f, 5, 1);
    refuse(&f, "[request id: <id_unknown>] inference request batch-size must be <= 4 for 'm'");
    f = begin(batched);
    start(&f);
    add_a(&f, 2);
    add_b(&f, 3, 1);
    refuse(&f,
           "[request id: <id_unknown>] input 'a' batch size does not match other inputs for 'm'");
    f = begin(batched);
    start(&f);
    add(&f, "a", DATATYPE_FP32, NULL, 0, zeros, 4);
    add_b(&f, 1, 1);
    refuse(&f, "[request id: <id_unknown>] input 'a' has no shape but model requires batch "
               "dimension for 'm'");
}

/* MC-30, PB-31, PB-33. */
static void refuses_types_shapes_and_sizes(void **state)
{
    (void)state;
    struct fixture f = begin(batched);
    start(&f);
    add(&f, "a", DATATYPE_INT32, (int64_t[]){1, 2}, 2, zeros, 8);
    add_b(&f, 1, 1);
    refuse(&f, "[request id: <id_unknown>] inference input 'a' data-type is 'INT32', but model 'm' "
               "expects 'FP32'");
    f = begin(batched);
    start(&f);
    add(&f, "a", DATATYPE_FP32, (int64_t[]){1, 3}, 2, zeros, 12);
    add_b(&f, 1, 1);
    refuse(&f, "[request id: <id_unknown>] unexpected shape for input 'a' for model 'm'. Expected "
               "[-1,2], got [1,3]. NOTE: Setting "
               "a non-zero max_batch_size in the model config requires a batch dimension to be "
               "prepended to each input shape. If "
               "you want to specify the full shape including the batch dim in your input dims "
               "config, try setting "
               "max_batch_size to zero. See the model configuration docs for more info on "
               "max_batch_size.");
    f = begin(batched);
    start(&f);
    add(&f, "a", DATATYPE_FP32, (int64_t[]){1, -1}, 2, zeros, 12);
    add_b(&f, 1, 1);
    refuse(&f, "[request id: <id_unknown>] All input dimensions should be specified for input 'a' "
               "for model 'm', got [1,-1]");
    f = begin(batched);
    start(&f);
    add(&f, "a", DATATYPE_FP32, (int64_t[]){1, 2}, 2, zeros, 7);
    add_b(&f, 1, 1);
    refuse(&f, "[request id: <id_unknown>] input byte size mismatch for input 'a' for model 'm'. "
               "Expected 8, got 7");
    f = begin(batched);
    start(&f);
    add_a(&f, 1);
    add(&f, "b", DATATYPE_FP32, (int64_t[]){1, INT64_MAX}, 2, zeros, 8);
    refuse(&f, "[request id: <id_unknown>] the shape of input 'b' for model 'm' has more elements "
               "than can be counted");
}

/* MC-25, MC-29, PB-168. */
static void refuses_strings(void **state)
{
    (void)state;
    static const char two[] = "\1\0\0\0a\0\0\0\0";
    const int64_t shape[] = {4, 0};
    struct fixture f = begin(plain);
    start(&f);
    add(&f, "s", DATATYPE_BYTES, shape, 2, two, 5);
    refuse(&f, "[request id: <id_unknown>] unexpected number of string elements 1 for inference "
               "input 's' for model 'm', "
               "expecting 0");
    const int64_t one[] = {4, 1};
    f = begin(plain);
    start(&f);
    add(&f, "s", DATATYPE_BYTES, one, 2, two, 9);
    refuse(&f, "[request id: <id_unknown>] expected 4 string elements for inference input 's' for "
               "model 'm', got 2");
    f = begin(plain);
    start(&f);
    add(&f, "s", DATATYPE_BYTES, one, 2, two, 7);
    refuse(&f, "[request id: <id_unknown>] incomplete string length indicator for inference input "
               "'s' for model 'm', expecting 4 "
               "bytes but only 2 bytes available. Please make sure the string length indicator is "
               "in one buffer.");
    static const char cut[] = "\0\0\0\0\0\0\0\0\0\0\0\0\3\0\0\0ab";
    f = begin(plain);
    start(&f);
    add(&f, "s", DATATYPE_BYTES, one, 2, cut, sizeof(cut) - 1);
    refuse(&f, "[request id: <id_unknown>] the last string of inference input 's' for model 'm' is "
               "1 bytes short");
}

/* MC-63, MC-64, PB-24, PB-34. */
static void reshapes(void **state)
{
    (void)state;
    struct fixture f = begin(reshaped);
    start(&f);
    add(&f, "in", DATATYPE_FP32, (int64_t[]){3, 1}, 2, zeros, 12);
    assert_null(request_prepare(f.request));
    assert_int_equal(f.request->inputs[0].model_rank, 1);
    assert_int_equal(f.request->inputs[0].model_shape[0], 3);
    end(&f);
    f = begin(variable);
    start(&f);
    add(&f, "in", DATATYPE_UINT8, (int64_t[]){3, 2, 5}, 3, zeros, 30);
    assert_null(request_prepare(f.request));
    const int64_t expected[] = {3, 1, 5, 2};
    assert_int_equal(f.request->inputs[0].model_rank, 4);
    assert_memory_equal(f.request->inputs[0].model_shape, expected, sizeof(expected));
    end(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(accepts_a_batch), cmocka_unit_test(refuses_counts),
        cmocka_unit_test(refuses_names),   cmocka_unit_test(refuses_batches),
        cmocka_unit_test(refuses_strings), cmocka_unit_test(refuses_types_shapes_and_sizes),
        cmocka_unit_test(reshapes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
