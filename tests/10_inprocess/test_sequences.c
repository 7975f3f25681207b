/* A program whose server has a model with a sequence batcher. */
#include "10_inprocess/host.h"

static struct host_repository repository;
static TRITONSERVER_Server *server;

static const float numbers[4] = {1.5f, -2, 3, 4};

static int open_server(void **state)
{
    (void)state;
    host_repository_make(&repository);
    host_repository_add(&repository, "sequence",
                        "backend: \"identity\"\nsequence_batching { }\n"
                        "input [{ name: \"INPUT0\" data_type: TYPE_FP32 dims: [-1] }]\n"
                        "output [{ name: \"OUTPUT0\" data_type: TYPE_FP32 dims: [-1] }]\n");
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

/* Wrong sequence flags are the call's error: the request stays the caller's, who gets no callback
 * and may send it again. */
static void test_requests_that_are_refused(void **state)
{
    (void)state;
    struct host_call c;
    host_call_make(&c, server, "sequence");
    host_call_input(&c, "INPUT0", (int64_t[]){4}, 1, numbers, 4);
    HOST_FAILS(TRITONSERVER_ServerInferAsync(server, c.request, NULL),
               TRITONSERVER_ERROR_INVALID_ARG, "must specify a non-zero or non-empty");
    HOST_OK(TRITONSERVER_InferenceRequestSetCorrelationId(c.request, 7));
    HOST_FAILS(TRITONSERVER_ServerInferAsync(server, c.request, NULL),
               TRITONSERVER_ERROR_INVALID_ARG, "must specify the START flag");
    assert_int_equal(c.releases + c.callbacks, 0);
    HOST_OK(TRITONSERVER_InferenceRequestSetFlags(c.request,
                                                  TRITONSERVER_REQUEST_FLAG_SEQUENCE_START |
                                                      TRITONSERVER_REQUEST_FLAG_SEQUENCE_END));
    host_call_run(&c, server, NULL);
    HOST_OK(TRITONSERVER_InferenceResponseError(c.responses[0]));
    host_call_free(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_requests_that_are_refused),
    };
    return cmocka_run_group_tests(tests, open_server, close_server);
}
