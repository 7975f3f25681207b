/* The backend's side of the C API: plugins/probe.c tries every function that a backend may call. */
#include "10_inprocess/host.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define IO                                                           \
    "input [{ name: \"INPUT0\" data_type: TYPE_FP32 dims: [-1] }]\n" \
    "output [{ name: \"OUTPUT0\" data_type: TYPE_FP32 dims: [-1] }]\n"
#define PROBE                                                     \
    "backend: \"probe\"\n" IO "instance_group [{ kind: KIND_CPU " \
    "secondary_devices [{ kind: KIND_NVDLA device_id: 3 }] }]\n"

static struct host_repository repository;
static TRITONSERVER_Server *server;
static const float numbers[4] = {1, 2, 3, 4};

/* The identity backend lies in the other directory; a library may also lie with the model. */
static void link_identity(void)
{
    char from[512];
    char to[512];
    snprintf(from, sizeof(from), "%s/backends/identity/libtriton_identity.so", TEST_BINARY_DIR);
    snprintf(to, sizeof(to), "%s/plain/libtriton_identity.so", repository.path);
    assert_int_equal(symlink(from, to), 0);
}

static int open_server(void **state)
{
    (void)state;
    host_repository_make(&repository);
    host_repository_add(&repository, "probed", PROBE);
    host_repository_add(&repository, "nested", PROBE);
    host_repository_add(&repository, "decoupled",
                        "model_transaction_policy { decoupled: true }\n" PROBE);
    host_repository_add(&repository, "plain", "backend: \"identity\"\n" IO);
    link_identity();
    TRITONSERVER_ServerOptions *o = host_options(repository.path, "tests/backends");
    HOST_OK(TRITONSERVER_ServerOptionsSetBackendConfig(o, "probe", "colour", "blue"));
    server = host_server(o);
    return 0;
}

static int close_server(void **state)
{
    (void)state;
    HOST_OK(TRITONSERVER_ServerDelete(server));
    host_repository_remove(&repository);
    return 0;
}

static void make(struct host_call *c, const char *model)
{
    host_call_make(c, server, model);
    TRITONSERVER_InferenceRequest *r = c->request;
    HOST_OK(TRITONSERVER_InferenceRequestSetId(r, "probed"));
    HOST_OK(TRITONSERVER_InferenceRequestSetTimeoutMicroseconds(r, 77000000));
    HOST_OK(TRITONSERVER_InferenceRequestSetCorrelationIdString(r, "sequence"));
    HOST_OK(TRITONSERVER_InferenceRequestSetFlags(r, TRITONSERVER_REQUEST_FLAG_SEQUENCE_START |
                                                         TRITONSERVER_REQUEST_FLAG_SEQUENCE_END));
    HOST_OK(TRITONSERVER_InferenceRequestSetStringParameter(r, "s", "text"));
    HOST_OK(TRITONSERVER_InferenceRequestSetIntParameter(r, "i", 7));
    HOST_OK(TRITONSERVER_InferenceRequestSetBoolParameter(r, "b", true));
    HOST_OK(TRITONSERVER_InferenceRequestSetDoubleParameter(r, "d", 0.5));
    host_call_input(c, "INPUT0", (int64_t[]){4}, 1, numbers, 2);
    HOST_OK(TRITONSERVER_InferenceRequestAppendInputData(r, "INPUT0", numbers + 2, 8,
                                                         TRITONSERVER_MEMORY_CPU, 0));
    HOST_OK(TRITONSERVER_InferenceRequestAppendInputDataWithHostPolicy(
        r, "INPUT0", numbers, 16, TRITONSERVER_MEMORY_CPU, 0, "special"));
}

static void expect_numbers(TRITONSERVER_InferenceResponse *r)
{
    size_t count;
    assert_memory_equal(host_output(r, 0, &count), numbers, sizeof(numbers));
    assert_int_equal(count, 4);
}

static void test_every_function(void **state)
{
    (void)state;
    struct host_call c;
    make(&c, "probed");
    host_call_run(&c, server, NULL);
    expect_numbers(c.responses[0]);
    assert_int_equal(c.queried, 1);
    const char *name;
    TRITONSERVER_ParameterType type;
    const void *value;
    HOST_OK(TRITONSERVER_InferenceResponseParameter(c.responses[0], 0, &name, &type, &value));
    assert_int_equal(type, TRITONSERVER_PARAMETER_STRING);
    assert_string_equal(value, "answer");
    HOST_OK(TRITONSERVER_InferenceResponseParameter(c.responses[0], 1, &name, &type, &value));
    assert_int_equal(*(const int64_t *)value, 42);
    HOST_OK(TRITONSERVER_InferenceResponseParameter(c.responses[0], 3, &name, &type, &value));
    assert_int_equal(type, TRITONSERVER_PARAMETER_DOUBLE);
    assert_true(*(const double *)value == 0.25);
    host_call_free(&c);
}

/* The backend waits, inside Execute, for a request that it sent itself. */
static void test_nested_request(void **state)
{
    (void)state;
    struct host_call c;
    make(&c, "nested");
    for (int i = 0; i < 20; i++) {
        host_call_run(&c, server, NULL);
        expect_numbers(c.responses[0]);
        host_call_forget(&c);
    }
    host_call_free(&c);
}

static void test_answers_after_release(void **state)
{
    (void)state;
    struct host_call c;
    make(&c, "decoupled");
    HOST_OK(TRITONSERVER_ResponseAllocatorSetQueryFunction(c.allocator, NULL));
    host_call_run(&c, server, NULL);
    assert_int_equal(c.callbacks, 4);
    assert_int_equal(c.finals, 1);
    expect_numbers(c.responses[0]);
    expect_numbers(c.responses[1]);
    assert_non_null(TRITONSERVER_InferenceResponseError(c.responses[2]));
    assert_null(c.responses[3]);
    assert_int_equal(c.flags[3], TRITONSERVER_RESPONSE_COMPLETE_FINAL);
    host_call_free(&c);
    TRITONSERVER_Message *m;
    HOST_OK(TRITONSERVER_ServerModelStatistics(server, "decoupled", -1, &m));
    char *text = host_text(m);
    assert_non_null(
        strstr(text, "\"response_stats\":{\"0\":{\"compute_infer\":{\"count\":1,\"ns\":10}"));
    assert_non_null(strstr(text, "\"empty_response\":{\"count\":1,\"ns\":30}"));
    assert_non_null(strstr(text, "\"fail\":{\"count\":1,\"ns\":30}"));
    /* What the model and its one instance reported. */
    assert_non_null(
        strstr(text, "\"memory_usage\":[{\"type\":\"CPU\",\"id\":0,\"byte_size\":2000}]"));
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_function),
        cmocka_unit_test(test_nested_request),
        cmocka_unit_test(test_answers_after_release),
    };
    return cmocka_run_group_tests(tests, open_server, close_server);
}
