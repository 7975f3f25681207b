/* Custom backends (custom.h) in a host program: inputs that lie in pieces, outputs in memory of
 * the host's, errors. */
#include "10_inprocess/host.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static struct host_repository repository;
static TRITONSERVER_Server *server;

static int open_server(void **state)
{
    (void)state;
    char from[512];
    char to[512];
    host_repository_make(&repository);
    host_repository_add(&repository, "sums",
                        "platform: \"custom\"\n"
                        "input [{ name: \"INPUT0\" data_type: TYPE_INT32 dims: [-1] },"
                        "       { name: \"INPUT1\" data_type: TYPE_INT32 dims: [-1] }]\n"
                        "output [{ name: \"OUTPUT0\" data_type: TYPE_INT32 dims: [-1] },"
                        "        { name: \"OUTPUT1\" data_type: TYPE_INT32 dims: [-1] }]\n");
    snprintf(from, sizeof(from), "%s/tests/custom/libaddsub.so", TEST_BINARY_DIR);
    snprintf(to, sizeof(to), "%s/sums/1/libcustom.so", repository.path);
    assert_int_equal(symlink(from, to), 0);
    server = host_server(host_options(repository.path, "backends"));
    return 0;
}

static int close_server(void **state)
{
    (void)state;
    HOST_OK(TRITONSERVER_ServerDelete(server));
    host_repository_remove(&repository);
    return 0;
}

static void add_input(struct host_call *c, const char *name, const int32_t *first, size_t first_n,
                      const int32_t *second, size_t second_n)
{
    const int64_t shape[1] = {4};
    HOST_OK(
        TRITONSERVER_InferenceRequestAddInput(c->request, name, TRITONSERVER_TYPE_INT32, shape, 1));
    HOST_OK(TRITONSERVER_InferenceRequestAppendInputData(c->request, name, first, first_n * 4,
                                                         TRITONSERVER_MEMORY_CPU, 0));
    if (second_n)
        HOST_OK(TRITONSERVER_InferenceRequestAppendInputData(c->request, name, second, second_n * 4,
                                                             TRITONSERVER_MEMORY_CPU, 0));
}

static void expect(struct host_call *c, uint32_t index, const int32_t *values)
{
    const char *name;
    TRITONSERVER_DataType datatype;
    const int64_t *shape;
    uint64_t rank;
    const void *base;
    size_t bytes;
    TRITONSERVER_MemoryType type;
    int64_t id;
    void *userp;
    HOST_OK(TRITONSERVER_InferenceResponseOutput(c->responses[0], index, &name, &datatype, &shape,
                                                 &rank, &base, &bytes, &type, &id, &userp));
    assert_int_equal(datatype, TRITONSERVER_TYPE_INT32);
    assert_int_equal(rank, 1);
    assert_int_equal(bytes, 16);
    assert_memory_equal(base, values, 16);
}

/* MR-69. */
static void inputs_in_pieces(void **state)
{
    (void)state;
    const int32_t a[1] = {10}, b[3] = {20, 30, 40}, c[4] = {1, 2, 3, 4};
    const int32_t sums[4] = {11, 22, 33, 44}, differences[4] = {9, 18, 27, 36};
    struct host_call call;
    host_call_make(&call, server, "sums");
    add_input(&call, "INPUT0", a, 1, b, 3);
    add_input(&call, "INPUT1", c, 4, NULL, 0);
    host_call_run(&call, server, NULL);
    HOST_OK(TRITONSERVER_InferenceResponseError(call.responses[0]));
    expect(&call, 0, sums);
    expect(&call, 1, differences);
    assert_int_equal(call.allocated, 2);
    host_call_free(&call);
}

/* The host gives no memory: the library is told so, and the request fails. */
static void outputs_without_memory(void **state)
{
    (void)state;
    const int32_t values[4] = {1, 2, 3, 4};
    struct host_call call;
    host_call_make(&call, server, "sums");
    call.refuse = "no memory today";
    add_input(&call, "INPUT0", values, 4, NULL, 0);
    add_input(&call, "INPUT1", values, 4, NULL, 0);
    host_call_run(&call, server, NULL);
    TRITONSERVER_Error *e = TRITONSERVER_InferenceResponseError(call.responses[0]);
    assert_non_null(e);
    assert_non_null(strstr(TRITONSERVER_ErrorMessage(e), "(2) unable to get an output"));
    host_call_free(&call);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(inputs_in_pieces),
        cmocka_unit_test(outputs_without_memory),
    };
    return cmocka_run_group_tests(tests, open_server, close_server);
}
