/* Classifications of shapes that no client means well with: they end, whatever the product of the other dimensions is. */
#include "infer/classify.h"

#include "infer/request.h"
#include "infer/response.h"
#include "support/test_version.h"
#include "support/unit.h"

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
    const int64_t shape[] = {0, 1000};
    struct response *r = made(shape, 2, 0);
    unit_succeeds(classify_output(r, r->outputs, 3, true, NULL));
    assert_int_equal(r->outputs->byte_size, 0);
    response_free(r);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows_without_elements),
        cmocka_unit_test(test_no_rows),
        cmocka_unit_test(test_more_than_can_be_counted),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
