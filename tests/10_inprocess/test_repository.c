/* A program loads and unloads models of its server. */
#include "10_inprocess/host.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

#define IDENTITY                                                     \
    "backend: \"identity\"\n"                                        \
    "input [{ name: \"INPUT0\" data_type: TYPE_FP32 dims: [-1] }]\n" \
    "output [{ name: \"OUTPUT0\" data_type: TYPE_FP32 dims: [-1] }]\n"

static struct host_repository repository;

static int make_repository(void **state)
{
    (void)state;
    host_repository_make(&repository);
    host_repository_add(&repository, "first", IDENTITY);
    host_repository_add(&repository, "second", IDENTITY);
    return 0;
}

static int remove_repository(void **state)
{
    (void)state;
    host_repository_remove(&repository);
    return 0;
}

static bool serves(TRITONSERVER_Server *s, const char *model)
{
    bool ready = false;
    TRITONSERVER_Error *e = TRITONSERVER_ServerModelIsReady(s, model, -1, &ready);
    TRITONSERVER_ErrorDelete(e);
    return !e && ready;
}

static void run(TRITONSERVER_Server *s, const char *model)
{
    static const float number = 5;
    struct host_call c;
    host_call_make(&c, s, model);
    host_call_input(&c, "INPUT0", (int64_t[]){1}, 1, &number, 1);
    host_call_run(&c, s, NULL);
    size_t count;
    assert_true(*host_output(c.responses[0], 0, &count) == 5);
    host_call_free(&c);
}

/* What is said of a model that is known and not ready. */
static void unload_and_ask(TRITONSERVER_Server *s)
{
    static const float number = 5;
    TRITONSERVER_InferenceRequest *request;
    TRITONSERVER_Message *m;
    uint32_t flags;
    struct host_call any;
    struct host_call first;
    host_call_make_of(&any, s, "second", -1);
    host_call_make_of(&first, s, "second", 1);
    host_call_input(&any, "INPUT0", (int64_t[]){1}, 1, &number, 1);
    host_call_input(&first, "INPUT0", (int64_t[]){1}, 1, &number, 1);
    HOST_OK(TRITONSERVER_ServerUnloadModelAndDependents(s, "second"));
    while (serves(s, "second")) /* the call does not wait for the model to go */
        sched_yield();
    HOST_FAILS(TRITONSERVER_ServerInferAsync(s, any.request, NULL), TRITONSERVER_ERROR_NOT_FOUND,
               "second");
    HOST_FAILS(TRITONSERVER_ServerInferAsync(s, first.request, NULL),
               TRITONSERVER_ERROR_UNAVAILABLE, "second");
    host_call_free(&any);
    host_call_free(&first);
    HOST_FAILS(TRITONSERVER_InferenceRequestNew(&request, s, "second", 1),
               TRITONSERVER_ERROR_UNAVAILABLE, "second");
    HOST_FAILS(TRITONSERVER_ServerModelBatchProperties(s, "second", 1, &flags, NULL),
               TRITONSERVER_ERROR_UNAVAILABLE, "second");
    HOST_FAILS(TRITONSERVER_ServerModelTransactionProperties(s, "second", 1, &flags, NULL),
               TRITONSERVER_ERROR_UNAVAILABLE, "second");
    HOST_FAILS(TRITONSERVER_ServerModelMetadata(s, "second", 1, &m), TRITONSERVER_ERROR_UNAVAILABLE,
               "second");
    HOST_FAILS(TRITONSERVER_ServerModelConfig(s, "second", 1, 1, &m),
               TRITONSERVER_ERROR_UNAVAILABLE, "second");
}

static void test_load_and_unload(void **state)
{
    (void)state;
    TRITONSERVER_ServerOptions *o = host_options(repository.path, "backends");
    HOST_OK(TRITONSERVER_ServerOptionsSetModelControlMode(o, TRITONSERVER_MODEL_CONTROL_EXPLICIT));
    HOST_OK(TRITONSERVER_ServerOptionsSetStartupModel(o, "first"));
    HOST_OK(TRITONSERVER_ServerOptionsSetLogError(o, false));
    TRITONSERVER_Server *s = host_server(o);
    assert_true(serves(s, "first"));
    assert_false(serves(s, "second"));
    HOST_OK(TRITONSERVER_ServerLoadModel(s, "second"));
    run(s, "second");
    HOST_OK(TRITONSERVER_ServerUnloadModel(s, "first"));
    HOST_OK(TRITONSERVER_ServerUnloadModel(s, "nobody"));
    /* Loading again waits its turn behind the unload. */
    HOST_OK(TRITONSERVER_ServerLoadModel(s, "first"));
    run(s, "first");
    HOST_FAILS(TRITONSERVER_ServerLoadModel(s, "nobody"), TRITONSERVER_ERROR_INTERNAL, "nobody");
    HOST_FAILS(TRITONSERVER_ServerLoadModelWithParameters(s, "nobody", NULL, 0),
               TRITONSERVER_ERROR_INTERNAL, "nobody");
    unload_and_ask(s);
    HOST_FAILS(TRITONSERVER_ServerPollModelRepository(s), TRITONSERVER_ERROR_UNAVAILABLE,
               "polling is disabled");
    HOST_FAILS(TRITONSERVER_ServerRegisterModelRepository(s, "/other", NULL, 0),
               TRITONSERVER_ERROR_UNSUPPORTED, "/other");
    HOST_FAILS(TRITONSERVER_ServerUnregisterModelRepository(s, "/other"),
               TRITONSERVER_ERROR_UNSUPPORTED, "/other");
    HOST_OK(TRITONSERVER_ServerDelete(s));
}

/* A configuration of the program's own in place of the one on disk. */
static void test_load_with_a_configuration(void **state)
{
    (void)state;
    TRITONSERVER_ServerOptions *o = host_options(repository.path, "backends");
    HOST_OK(TRITONSERVER_ServerOptionsSetModelControlMode(o, TRITONSERVER_MODEL_CONTROL_EXPLICIT));
    TRITONSERVER_Server *s = host_server(o);
    const TRITONSERVER_Parameter *p[1] = {TRITONSERVER_ParameterNew(
        "config", TRITONSERVER_PARAMETER_STRING,
        "{\"backend\":\"identity\",\"max_batch_size\":8,"
        "\"input\":[{\"name\":\"INPUT0\",\"data_type\":\"TYPE_FP32\",\"dims\":[-1]}],"
        "\"output\":[{\"name\":\"OUTPUT0\",\"data_type\":\"TYPE_FP32\",\"dims\":[-1]}]}")};
    HOST_OK(TRITONSERVER_ServerLoadModelWithParameters(s, "first", p, 1));
    uint32_t flags = 0;
    HOST_OK(TRITONSERVER_ServerModelBatchProperties(s, "first", -1, &flags, NULL));
    assert_int_equal(flags, TRITONSERVER_BATCH_FIRST_DIM);
    TRITONSERVER_ParameterDelete((TRITONSERVER_Parameter *)(uintptr_t)p[0]);
    p[0] = TRITONSERVER_ParameterNew("colour", TRITONSERVER_PARAMETER_STRING, "blue");
    HOST_FAILS(TRITONSERVER_ServerLoadModelWithParameters(s, "first", p, 1),
               TRITONSERVER_ERROR_INVALID_ARG, "colour");
    TRITONSERVER_ParameterDelete((TRITONSERVER_Parameter *)(uintptr_t)p[0]);
    HOST_OK(TRITONSERVER_ServerDelete(s));
}

static void test_load_in_another_mode(void **state)
{
    (void)state;
    TRITONSERVER_Server *s = host_server(host_options(repository.path, "backends"));
    HOST_FAILS(TRITONSERVER_ServerLoadModel(s, "first"), TRITONSERVER_ERROR_UNAVAILABLE,
               "not allowed");
    HOST_FAILS(TRITONSERVER_ServerLoadModelWithParameters(s, "first", NULL, 0),
               TRITONSERVER_ERROR_UNAVAILABLE, "not allowed");
    HOST_FAILS(TRITONSERVER_ServerUnloadModel(s, "first"), TRITONSERVER_ERROR_UNAVAILABLE,
               "not allowed");
    HOST_FAILS(TRITONSERVER_ServerUnloadModelAndDependents(s, "first"),
               TRITONSERVER_ERROR_UNAVAILABLE, "not allowed");
    HOST_OK(TRITONSERVER_ServerDelete(s));
}

static TRITONSERVER_Server *server_of_two(const struct host_repository *other, bool apart)
{
    TRITONSERVER_ServerOptions *o = host_options(repository.path, "backends");
    HOST_OK(TRITONSERVER_ServerOptionsSetModelRepositoryPath(o, other->path));
    HOST_OK(TRITONSERVER_ServerOptionsSetModelControlMode(o, TRITONSERVER_MODEL_CONTROL_EXPLICIT));
    HOST_OK(TRITONSERVER_ServerOptionsSetLogError(o, false));
    HOST_OK(TRITONSERVER_ServerOptionsSetModelNamespacing(o, apart));
    return host_server(o);
}

/* "first" lies in two repositories, "second" in one. */
static void test_models_of_one_name(void **state)
{
    (void)state;
    struct host_repository other;
    host_repository_make(&other);
    host_repository_add(&other, "first", IDENTITY);
    TRITONSERVER_Server *s = server_of_two(&other, true);
    TRITONSERVER_Message *m;
    HOST_FAILS(TRITONSERVER_ServerModelMetadata(s, "second", -1, &m),
               TRITONSERVER_ERROR_INVALID_ARG, "Request for unknown model: 'second' is not found");
    HOST_OK(TRITONSERVER_ServerLoadModel(s, "first"));
    HOST_OK(TRITONSERVER_ServerLoadModel(s, "second"));
    run(s, "second");
    assert_false(serves(s, "first"));
    HOST_FAILS(TRITONSERVER_ServerModelMetadata(s, "first", -1, &m), TRITONSERVER_ERROR_INVALID_ARG,
               "There are 2 identifiers of model 'first' in global map");
    HOST_FAILS(TRITONSERVER_ServerModelStatistics(s, "first", -1, &m),
               TRITONSERVER_ERROR_INVALID_ARG, "requested model 'first' is not available");
    TRITONSERVER_InferenceRequest *request;
    HOST_FAILS(TRITONSERVER_InferenceRequestNew(&request, s, "first", -1),
               TRITONSERVER_ERROR_INVALID_ARG, "There are 2 identifiers of model 'first'");
    HOST_OK(TRITONSERVER_ServerUnloadModel(s, "first"));
    HOST_OK(TRITONSERVER_ServerDelete(s));

    s = server_of_two(&other, false);
    HOST_FAILS(TRITONSERVER_ServerLoadModel(s, "first"), TRITONSERVER_ERROR_INTERNAL,
               "model appears in two or more repositories");
    HOST_OK(TRITONSERVER_ServerDelete(s));
    host_repository_remove(&other);
}

static void test_a_poll_is_the_servers_own(void **state)
{
    (void)state;
    TRITONSERVER_ServerOptions *o = host_options(repository.path, "backends");
    HOST_OK(TRITONSERVER_ServerOptionsSetModelControlMode(o, TRITONSERVER_MODEL_CONTROL_POLL));
    TRITONSERVER_Server *s = host_server(o);
    HOST_FAILS(TRITONSERVER_ServerPollModelRepository(s), TRITONSERVER_ERROR_UNSUPPORTED,
               "looks at its repositories by itself");
    HOST_OK(TRITONSERVER_ServerDelete(s));
}

static void test_metrics_that_are_off(void **state)
{
    (void)state;
    TRITONSERVER_Metrics *metrics;
    TRITONSERVER_ServerOptions *o = host_options(repository.path, "backends");
    HOST_OK(TRITONSERVER_ServerOptionsSetMetrics(o, false));
    TRITONSERVER_Server *s = host_server(o);
    HOST_FAILS(TRITONSERVER_ServerMetrics(s, &metrics), TRITONSERVER_ERROR_UNSUPPORTED,
               "switched off");
    HOST_OK(TRITONSERVER_ServerDelete(s));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_poll_is_the_servers_own),
        cmocka_unit_test(test_metrics_that_are_off),
        cmocka_unit_test(test_load_and_unload),
        cmocka_unit_test(test_load_with_a_configuration),
        cmocka_unit_test(test_load_in_another_mode),
        cmocka_unit_test(test_models_of_one_name),
    };
    return cmocka_run_group_tests(tests, make_repository, remove_repository);
}
