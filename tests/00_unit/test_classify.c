/* infer/classify: the order of classes, and shapes that no client means well with, which end
 * whatever the product of the other dimensions is. */
#include "infer/classify.h"

#include "infer/request.h"
#include "infer/response.h"
#include "support/test_version.h"
#include "support/unit.h"

#include <stdio.h>
#include <string.h>

#define MODEL                                                  \
    "name: 'm' backend: 'b' max_batch_size: 8 "                \
    "input [{ name: 'i' data_type: TYPE_FP32 dims: [ -1 ] }] " \
    "output [{ name: 'o' data_type: TYPE_FP32 dims: [ -1, -1 ] }] "
#define HUGE_ROWS ((int64_t)1 << 62)

static struct plugin_backend backend;
static struct serve_version *version;

static TRITONSERVER_Error *execute(TRITONBACKEND_ModelInstance *instance,
                                   TRITONBACKEND_Request **requests, uint32_t count)
{
    (void)instance;
    (void)requests;
    (void)count;
    return NULL;
}

static int set_up(void **state)
{
    (void)state;
    backend = test_version_backend(execute);
    version = test_version_new(&backend, MODEL, NULL);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    version_drain(version);
    version_free(version);
    return 0;
}

/* A response with one FP32 output of that shape and so many bytes. */
static struct response *made(const int64_t *shape, uint32_t rank, uint64_t bytes)
{
    version_pin(version);
    struct request *r = request_new(&version->target, NULL, NULL, NULL);
    struct response *response = response_new(r);
    struct tensor_output *o = response_add_output(response, "o", DATATYPE_FP32, shape, rank);
    unit_succeeds(response_output_buffer(response, o, bytes));
    memset(o->data, 0, bytes);
    request_release(r);
    return response;
}

static void test_rows_without_elements(void **state)
{
    (void)state;
    const int64_t shape[] = {HUGE_ROWS, 0};
    struct response *r = made(shape, 2, 0);
    unit_succeeds(classify_output(r, r->outputs, 3, true, NULL));
    assert_int_equal(r->outputs->datatype, DATATYPE_BYTES);
    assert_int_equal(r->outputs->byte_size, 0);
    assert_int_equal(r->outputs->rank, 2);
    assert_true(r->outputs->shape[0] == HUGE_ROWS && r->outputs->shape[1] == 0);
    response_free(r);
}

static void test_no_rows(void **state)
{
    (void)state;
    const int64_t elements[] = {1000, HUGE_ROWS};
    for (size_t i = 0; i < sizeof(elements) / sizeof(*elements); i++) {
        const int64_t shape[] = {0, elements[i]};
        struct response *r = made(shape, 2, 0);
        unit_succeeds(classify_output(r, r->outputs, 3, true, NULL));
        assert_int_equal(r->outputs->byte_size, 0);
        assert_true(r->outputs->shape[0] == 0 && r->outputs->shape[1] == 3);
        response_free(r);
    }
}

static void test_more_than_can_be_counted(void **state)
{
    (void)state;
    const int64_t shapes[][3] = {{HUGE_ROWS, 4, 0}, {0, HUGE_ROWS, 4}, {HUGE_ROWS, 4, 1}};
    for (size_t i = 0; i < sizeof(shapes) / sizeof(*shapes); i++) {
        struct response *r = made(shapes[i], 3, 0);
        unit_fails(classify_output(r, r->outputs, 3, true, NULL), STATUS_INTERNAL,
                   "output tensor shape does not match size of output for 'o'");
        response_free(r);
    }
}

/* What the classes of these values are, one behind the other. */
static void expect_classes(const float *values, uint32_t count, uint64_t classes, const char *text)
{
    const int64_t shape[] = {1, count};
    struct response *r = made(shape, 2, count * sizeof(*values));
    memcpy(r->outputs->data, values, count * sizeof(*values));
    unit_succeeds(classify_output(r, r->outputs, classes, true, NULL));
    char found[256] = "";
    const char *at = r->outputs->data;
    const char *end = at + r->outputs->byte_size;
    for (uint32_t len; at < end; at += len) {
        memcpy(&len, at, sizeof(len));
        at += sizeof(len);
        snprintf(found + strlen(found), sizeof(found) - strlen(found), "%.*s ", (int)len, at);
    }
    response_free(r);
    assert_string_equal(found, text);
}

/* The largest first, equal ones in their order; what is no number comes last, wherever it
 * stands. */
static void test_order(void **state)
{
    (void)state;
    const float nan = __builtin_nanf(""), inf = __builtin_inff();
    expect_classes((const float[]){1, 3, 2, 3}, 4, 3, "3.000000:1 3.000000:3 2.000000:2 ");
    expect_classes((const float[]){nan, -1, 2, nan}, 4, 2, "2.000000:2 -1.000000:1 ");
    expect_classes((const float[]){nan, -inf, nan, inf}, 4, 4, "inf:3 -inf:1 nan:0 nan:2 ");
    expect_classes((const float[]){0, -0.0f, nan}, 3, 1, "0.000000:0 ");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows_without_elements),
        cmocka_unit_test(test_no_rows),
        cmocka_unit_test(test_more_than_can_be_counted),
        cmocka_unit_test(test_order),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
