/* Ensembles for a program that runs models in process: the caller's own memory, what a trace
 * tells of the steps, cancelling. */
#include "10_inprocess/host.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define IO(in, out)                                                  \
    "input [{ name: \"" in "\" data_type: TYPE_FP32 dims: [-1] }]\n" \
    "output [{ name: \"" out "\" data_type: TYPE_FP32 dims: [-1] }]\n"
#define STEP(model, from, to)                             \
    "step { model_name: \"" model "\" model_version: -1 " \
    "input_map { key: \"INPUT0\" value: \"" from "\" } "  \
    "output_map { key: \"OUTPUT0\" value: \"" to "\" } }\n"

static struct host_repository repository;
static TRITONSERVER_Server *server;
static const float numbers[4] = {1, 2, 3, 4};

static int open_server(void **state)
{
    (void)state;
    host_repository_make(&repository);
    host_repository_add(&repository, "plain", "backend: \"identity\"\n" IO("INPUT0", "OUTPUT0"));
    host_repository_add(&repository, "twice",
                        "platform: \"ensemble\"\n" IO("IN", "OUT") "ensemble_scheduling {\n" STEP(
                            "plain", "IN", "between") STEP("plain", "between", "OUT") "}\n");
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

static void expect_numbers(TRITONSERVER_InferenceResponse *r)
{
    size_t count;
    HOST_OK(TRITONSERVER_InferenceResponseError(r));
    const float *got = host_output(r, 0, &count);
    assert_int_equal(count, 4);
    assert_memory_equal(got, numbers, sizeof(numbers));
}

/* The answer lies in the caller's memory; what is between the steps does not. */
static void test_memory(void **state)
{
    (void)state;
    struct host_call c;
    host_call_make(&c, server, "twice");
    host_call_input(&c, "IN", (int64_t[]){4}, 1, numbers, 4);
    for (unsigned i = 0; i < 3; i++) {
        host_call_run(&c, server, NULL);
        assert_int_equal(c.callbacks, 1);
        assert_int_equal(c.finals, 1);
        expect_numbers(c.responses[0]);
        assert_int_equal(c.allocated, 1);
        host_call_forget(&c);
    }
    host_call_free(&c);
}

/* What was told, by the number of the trace; and whom to cancel while the first step runs. */
struct told {
    pthread_mutex_t lock; /* guards the rest: threads of the server tell */
    pthread_cond_t changed;
    TRITONSERVER_InferenceRequest *cancel; /* NULL = nobody */
    unsigned executions;
    unsigned releases;
    struct {
        uint64_t id, parent;
        char model[16];
        unsigned activities;
        bool released;
    } traces[8];
    unsigned count;
};

static unsigned find(struct told *t, TRITONSERVER_InferenceTrace *trace)
{
    uint64_t id;
    HOST_OK(TRITONSERVER_InferenceTraceId(trace, &id));
    for (unsigned i = 0; i < t->count; i++)
        if (t->traces[i].id == id)
            return i;
    assert_true(t->count < 8);
    const char *model;
    t->traces[t->count].id = id;
    HOST_OK(TRITONSERVER_InferenceTraceParentId(trace, &t->traces[t->count].parent));
    HOST_OK(TRITONSERVER_InferenceTraceModelName(trace, &model));
    strncpy(t->traces[t->count].model, model, sizeof(t->traces[0].model) - 1);
    return t->count++;
}

static void on_activity(TRITONSERVER_InferenceTrace *trace,
                        TRITONSERVER_InferenceTraceActivity activity, uint64_t when, void *userp)
{
    (void)when;
    struct told *t = userp;
    pthread_mutex_lock(&t->lock);
    t->traces[find(t, trace)].activities |= 1u << activity;
    if (activity == TRITONSERVER_TRACE_COMPUTE_START && t->executions++ == 0 && t->cancel)
        HOST_OK(TRITONSERVER_InferenceRequestCancel(t->cancel));
    pthread_mutex_unlock(&t->lock);
}

static void on_release(TRITONSERVER_InferenceTrace *trace, void *userp)
{
    struct told *t = userp;
    pthread_mutex_lock(&t->lock);
    t->traces[find(t, trace)].released = true;
    t->releases++;
    HOST_OK(TRITONSERVER_InferenceTraceDelete(trace));
    pthread_cond_signal(&t->changed);
    pthread_mutex_unlock(&t->lock);
}

/* A request that is traced from its beginning to its end; its responses are the caller's. */
static void run_traced(struct host_call *c, struct told *told)
{
    TRITONSERVER_InferenceTrace *trace;
    HOST_OK(TRITONSERVER_InferenceTraceNew(&trace, TRITONSERVER_TRACE_LEVEL_TIMESTAMPS, 0,
                                           on_activity, on_release, told));
    host_call_run(c, server, trace);
}

/* Traces are released with the last part of their requests, the answer. */
static void wait_for_releases(struct told *t, unsigned count)
{
    pthread_mutex_lock(&t->lock);
    while (t->releases < count)
        pthread_cond_wait(&t->changed, &t->lock);
    pthread_mutex_unlock(&t->lock);
}

#define TOLD_INIT                                                              \
    {                                                                          \
        .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER \
    }

static void test_traces_of_the_steps(void **state)
{
    (void)state;
    struct told told = TOLD_INIT;
    struct host_call c;
    host_call_make(&c, server, "twice");
    host_call_input(&c, "IN", (int64_t[]){4}, 1, numbers, 4);
    run_traced(&c, &told);
    expect_numbers(c.responses[0]);
    host_call_forget(&c);
    wait_for_releases(&told, 3);
    const unsigned whole = 1u << TRITONSERVER_TRACE_REQUEST_START |
                           1u << TRITONSERVER_TRACE_QUEUE_START |
                           1u << TRITONSERVER_TRACE_REQUEST_END;
    const unsigned compute =
        1u << TRITONSERVER_TRACE_COMPUTE_START | 1u << TRITONSERVER_TRACE_COMPUTE_INPUT_END |
        1u << TRITONSERVER_TRACE_COMPUTE_OUTPUT_START | 1u << TRITONSERVER_TRACE_COMPUTE_END;
    assert_int_equal(told.count, 3);
    assert_string_equal(told.traces[0].model, "twice");
    assert_int_equal(told.traces[0].activities, whole);
    for (unsigned i = 1; i < 3; i++) {
        assert_string_equal(told.traces[i].model, "plain");
        assert_int_equal(told.traces[i].parent, told.traces[0].id);
        assert_int_equal(told.traces[i].activities, whole | compute);
    }
    for (unsigned i = 0; i < 3; i++)
        assert_true(told.traces[i].released);
    host_call_free(&c);
}

/* It is cancelled while the first step runs: that one runs on, the second one is not run any
 * more. */
static void test_cancel(void **state)
{
    (void)state;
    struct told told = TOLD_INIT;
    struct host_call c;
    host_call_make(&c, server, "twice");
    host_call_input(&c, "IN", (int64_t[]){4}, 1, numbers, 4);
    told.cancel = c.request;
    run_traced(&c, &told);
    assert_int_equal(c.callbacks, 1);
    TRITONSERVER_Error *e = TRITONSERVER_InferenceResponseError(c.responses[0]);
    assert_non_null(e);
    assert_int_equal(TRITONSERVER_ErrorCode(e), TRITONSERVER_ERROR_CANCELLED);
    assert_string_equal(TRITONSERVER_ErrorMessage(e),
                        "in ensemble 'twice', request was cancelled before it was executed");
    host_call_forget(&c);
    wait_for_releases(&told, 3);
    assert_int_equal(told.executions, 1);
    host_call_free(&c);
    TRITONSERVER_Message *m;
    HOST_OK(TRITONSERVER_ServerModelStatistics(server, "twice", -1, &m));
    char *text = host_text(m);
    assert_non_null(strstr(text, "\"fail\":{\"count\":1,"));
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_memory),
        cmocka_unit_test(test_traces_of_the_steps),
        cmocka_unit_test(test_cancel),
    };
    return cmocka_run_group_tests(tests, open_server, close_server);
}
