/* A program runs models in process: the server's life, requests, responses, traces, and what the
 * server tells. */
#include "10_inprocess/host.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define IDENTITY                                                     \
    "backend: \"identity\"\n"                                        \
    "input [{ name: \"INPUT0\" data_type: TYPE_FP32 dims: [-1] }]\n" \
    "output [{ name: \"OUTPUT0\" data_type: TYPE_FP32 dims: [-1] }]\n"

static struct host_repository repository;
static TRITONSERVER_Server *server;

static const float numbers[4] = {1.5f, -2, 3, 4};

static int open_server(void **state)
{
    (void)state;
    host_repository_make(&repository);
    host_repository_add(&repository, "plain", IDENTITY);
    host_repository_add(&repository, "batching", "max_batch_size: 4\n" IDENTITY);
    host_repository_add(&repository, "waiting",
                        "max_batch_size: 4\n"
                        "dynamic_batching { preferred_batch_size: [4] "
                        "max_queue_delay_microseconds: 3600000000 }\n" IDENTITY);
    host_repository_add(&repository, "full",
                        "max_batch_size: 4\n"
                        "dynamic_batching { preferred_batch_size: [4] "
                        "max_queue_delay_microseconds: 3600000000 "
                        "default_queue_policy { max_queue_size: 1 } }\n" IDENTITY);
    host_repository_add(&repository, "text",
                        "backend: \"identity\"\n"
                        "input [{ name: \"IN\" data_type: TYPE_STRING dims: [1] }]\n"
                        "output [{ name: \"OUT\" data_type: TYPE_STRING dims: [1] "
                        "label_filename: \"labels.txt\" }]\n");
    host_repository_write(&repository, "text/labels.txt", "zero\none\n");
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

static void test_health(void **state)
{
    (void)state;
    bool yes = false;
    HOST_OK(TRITONSERVER_ServerIsLive(server, &yes));
    assert_true(yes);
    yes = false;
    HOST_OK(TRITONSERVER_ServerIsReady(server, &yes));
    assert_true(yes);
    yes = false;
    HOST_OK(TRITONSERVER_ServerModelIsReady(server, "plain", 1, &yes));
    assert_true(yes);
    HOST_OK(TRITONSERVER_ServerModelIsReady(server, "nobody", -1, &yes));
    assert_false(yes);
    yes = true;
    HOST_OK(TRITONSERVER_ServerModelIsReady(server, "plain", 7, &yes));
    assert_false(yes);
    uint32_t flags = 0;
    void *extra = &flags;
    HOST_OK(TRITONSERVER_ServerModelBatchProperties(server, "batching", -1, &flags, &extra));
    assert_int_equal(flags, TRITONSERVER_BATCH_FIRST_DIM);
    assert_null(extra);
    HOST_OK(TRITONSERVER_ServerModelBatchProperties(server, "plain", -1, &flags, NULL));
    assert_int_equal(flags, TRITONSERVER_BATCH_UNKNOWN);
    HOST_OK(TRITONSERVER_ServerModelTransactionProperties(server, "plain", -1, &flags, NULL));
    assert_int_equal(flags, TRITONSERVER_TXN_ONE_TO_ONE);
    HOST_FAILS(TRITONSERVER_ServerModelTransactionProperties(server, "nobody", -1, &flags, NULL),
               TRITONSERVER_ERROR_NOT_FOUND, "nobody");
    HOST_FAILS(TRITONSERVER_ServerModelBatchProperties(server, "nobody", -1, &flags, NULL),
               TRITONSERVER_ERROR_NOT_FOUND, "nobody");
}

static void expect_text(TRITONSERVER_Message *m, const char *part)
{
    char *text = host_text(m);
    if (!strstr(text, part))
        print_error("%s\n  lacks %s\n", text, part);
    assert_non_null(strstr(text, part));
    free(text);
}

static void test_descriptions(void **state)
{
    (void)state;
    TRITONSERVER_Message *m;
    HOST_OK(TRITONSERVER_ServerMetadata(server, &m));
    expect_text(m, "\"name\":\"triton\"");
    HOST_OK(TRITONSERVER_ServerModelMetadata(server, "batching", -1, &m));
    expect_text(m, "\"inputs\":[{\"name\":\"INPUT0\",\"datatype\":\"FP32\",\"shape\":[-1,-1]}]");
    HOST_FAILS(TRITONSERVER_ServerModelMetadata(server, "nobody", -1, &m),
               TRITONSERVER_ERROR_NOT_FOUND, "nobody");
    HOST_OK(TRITONSERVER_ServerModelConfig(server, "batching", 1, 1, &m));
    expect_text(m, "\"max_batch_size\":4");
    HOST_FAILS(TRITONSERVER_ServerModelConfig(server, "nobody", -1, 1, &m),
               TRITONSERVER_ERROR_NOT_FOUND, "nobody");
    HOST_FAILS(TRITONSERVER_ServerModelConfig(server, "batching", 1, 2, &m),
               TRITONSERVER_ERROR_INVALID_ARG, "version 2 not supported");
    HOST_OK(TRITONSERVER_ServerModelStatistics(server, "plain", -1, &m));
    expect_text(m, "\"name\":\"plain\"");
    HOST_OK(TRITONSERVER_ServerModelStatistics(server, "", -1, &m));
    expect_text(m, "\"name\":\"batching\"");
    HOST_FAILS(TRITONSERVER_ServerModelStatistics(server, "nobody", -1, &m),
               TRITONSERVER_ERROR_INVALID_ARG, "requested model 'nobody' is not available");
    HOST_OK(TRITONSERVER_ServerModelIndex(server, TRITONSERVER_INDEX_FLAG_READY, &m));
    expect_text(m, "{\"name\":\"plain\",\"version\":\"1\",\"state\":\"READY\"}");
    TRITONSERVER_Metrics *metrics;
    const char *page;
    size_t len;
    HOST_OK(TRITONSERVER_ServerMetrics(server, &metrics));
    HOST_OK(TRITONSERVER_MetricsFormatted(metrics, TRITONSERVER_METRIC_PROMETHEUS, &page, &len));
    assert_non_null(strstr(page, "nv_inference_request_success{model=\"plain\""));
    HOST_FAILS(TRITONSERVER_MetricsFormatted(metrics, (TRITONSERVER_MetricFormat)7, &page, &len),
               TRITONSERVER_ERROR_INVALID_ARG, "format '7'");
    HOST_OK(TRITONSERVER_MetricsDelete(metrics));
}

/* One request again and again: what it was given stays until it is changed. */
static void test_request_is_reused(void **state)
{
    (void)state;
    struct host_call c;
    host_call_make(&c, server, "plain");
    host_call_input(&c, "INPUT0", (int64_t[]){4}, 1, numbers, 4);
    HOST_OK(TRITONSERVER_InferenceRequestSetId(c.request, "again"));
    for (int i = 0; i < 3; i++) {
        host_call_run(&c, server, NULL);
        assert_int_equal(c.callbacks, 1);
        assert_int_equal(c.flags[0], TRITONSERVER_RESPONSE_COMPLETE_FINAL);
        assert_int_equal(c.releases, 1);
        assert_int_equal(c.release_flags, TRITONSERVER_REQUEST_RELEASE_ALL);
        assert_int_equal(c.started, 1);
        assert_int_equal(c.allocated, 1);
        assert_int_equal(c.described, 1);
        size_t count;
        const float *out = host_output(c.responses[0], 0, &count);
        assert_int_equal(count, 4);
        assert_memory_equal(out, numbers, sizeof(numbers));
        const char *text;
        int64_t version;
        HOST_OK(TRITONSERVER_InferenceResponseId(c.responses[0], &text));
        assert_string_equal(text, "again");
        HOST_OK(TRITONSERVER_InferenceResponseModel(c.responses[0], &text, &version));
        assert_string_equal(text, "plain");
        assert_int_equal(version, 1);
        uint32_t outputs;
        HOST_OK(TRITONSERVER_InferenceResponseOutputCount(c.responses[0], &outputs));
        assert_int_equal(outputs, 1);
        HOST_OK(TRITONSERVER_InferenceResponseDelete(c.responses[0]));
        c.responses[0] = NULL;
        assert_int_equal(c.given_back, 1);
        host_call_forget(&c);
    }
    host_call_free(&c);
}

static void test_several_buffers_and_policies(void **state)
{
    (void)state;
    struct host_call c;
    host_call_make(&c, server, "batching");
    TRITONSERVER_InferenceRequest *r = c.request;
    TRITONSERVER_BufferAttributes *a;
    HOST_OK(TRITONSERVER_BufferAttributesNew(&a));
    HOST_OK(TRITONSERVER_BufferAttributesSetByteSize(a, 8));
    HOST_OK(TRITONSERVER_InferenceRequestAddInput(r, "INPUT0", TRITONSERVER_TYPE_FP32,
                                                  (int64_t[]){2, 2}, 2));
    HOST_FAILS(TRITONSERVER_InferenceRequestAddInput(r, "INPUT0", TRITONSERVER_TYPE_FP32, NULL, 0),
               TRITONSERVER_ERROR_INVALID_ARG, "input 'INPUT0' already exists in request");
    HOST_OK(TRITONSERVER_InferenceRequestAppendInputData(r, "INPUT0", numbers, 16,
                                                         TRITONSERVER_MEMORY_CPU, 0));
    HOST_OK(TRITONSERVER_InferenceRequestRemoveAllInputData(r, "INPUT0"));
    HOST_OK(TRITONSERVER_InferenceRequestAppendInputData(r, "INPUT0", numbers, 8,
                                                         TRITONSERVER_MEMORY_CPU, 0));
    HOST_OK(TRITONSERVER_InferenceRequestAppendInputDataWithBufferAttributes(r, "INPUT0",
                                                                             numbers + 2, a));
    HOST_OK(TRITONSERVER_InferenceRequestAppendInputDataWithHostPolicy(
        r, "INPUT0", numbers, 16, TRITONSERVER_MEMORY_CPU, 0, "gpu_0"));
    HOST_FAILS(TRITONSERVER_InferenceRequestAppendInputData(r, "INPUT0", numbers, 8,
                                                            TRITONSERVER_MEMORY_GPU, 1),
               TRITONSERVER_ERROR_UNSUPPORTED, "GPU 1");
    HOST_FAILS(TRITONSERVER_InferenceRequestAppendInputDataWithHostPolicy(
                   r, "INPUT0", numbers, 8, TRITONSERVER_MEMORY_GPU, 1, "gpu_0"),
               TRITONSERVER_ERROR_UNSUPPORTED, "GPU 1");
    HOST_FAILS(TRITONSERVER_InferenceRequestAppendInputData(r, "INPUT0", NULL, 8,
                                                            TRITONSERVER_MEMORY_CPU, 0),
               TRITONSERVER_ERROR_INVALID_ARG,
               "TRITONSERVER_InferenceRequestAppendInputData: 'base' must not be NULL");
    HOST_FAILS(TRITONSERVER_InferenceRequestAppendInputDataWithHostPolicy(
                   r, "INPUT0", NULL, 8, TRITONSERVER_MEMORY_CPU, 0, "gpu_0"),
               TRITONSERVER_ERROR_INVALID_ARG, "'base' must not be NULL");
    HOST_FAILS(
        TRITONSERVER_InferenceRequestAppendInputDataWithBufferAttributes(r, "INPUT0", NULL, a),
        TRITONSERVER_ERROR_INVALID_ARG, "'base' must not be NULL");
    HOST_OK(TRITONSERVER_InferenceRequestAppendInputData(r, "INPUT0", NULL, 0,
                                                         TRITONSERVER_MEMORY_CPU, 0));
    HOST_OK(TRITONSERVER_BufferAttributesSetMemoryType(a, TRITONSERVER_MEMORY_GPU));
    HOST_FAILS(
        TRITONSERVER_InferenceRequestAppendInputDataWithBufferAttributes(r, "INPUT0", numbers, a),
        TRITONSERVER_ERROR_UNSUPPORTED, "GPU");
    HOST_FAILS(TRITONSERVER_InferenceRequestAppendInputData(r, "NONE", numbers, 8,
                                                            TRITONSERVER_MEMORY_CPU, 0),
               TRITONSERVER_ERROR_INVALID_ARG, "input 'NONE' does not exist");
    HOST_OK(TRITONSERVER_InferenceRequestAddRequestedOutput(r, "OUTPUT0"));
    HOST_OK(TRITONSERVER_InferenceRequestAddRequestedOutput(r, "OTHER"));
    HOST_FAILS(TRITONSERVER_ServerInferAsync(server, r, NULL), TRITONSERVER_ERROR_INVALID_ARG,
               "unexpected inference output 'OTHER'");
    HOST_OK(TRITONSERVER_InferenceRequestRemoveRequestedOutput(r, "OTHER"));
    host_call_run(&c, server, NULL);
    size_t count;
    const float *out = host_output(c.responses[0], 0, &count);
    assert_int_equal(count, 4);
    assert_memory_equal(out, numbers, sizeof(numbers));
    host_call_forget(&c);
    HOST_OK(TRITONSERVER_InferenceRequestRemoveAllRequestedOutputs(r));
    HOST_OK(TRITONSERVER_InferenceRequestRemoveInput(r, "INPUT0"));
    HOST_FAILS(TRITONSERVER_InferenceRequestRemoveInput(r, "INPUT0"),
               TRITONSERVER_ERROR_INVALID_ARG, "does not exist");
    HOST_OK(TRITONSERVER_InferenceRequestRemoveAllInputs(r));
    HOST_FAILS(TRITONSERVER_ServerInferAsync(server, r, NULL), TRITONSERVER_ERROR_INVALID_ARG,
               "expected 1 inputs but got 0 inputs for model 'batching'");
    HOST_OK(TRITONSERVER_BufferAttributesDelete(a));
    host_call_free(&c);
}

static void test_raw_input(void **state)
{
    (void)state;
    struct host_call c;
    host_call_make(&c, server, "batching");
    HOST_OK(TRITONSERVER_InferenceRequestAddRawInput(c.request, "raw"));
    HOST_FAILS(TRITONSERVER_InferenceRequestAddRawInput(c.request, "more"),
               TRITONSERVER_ERROR_INVALID_ARG, "can't be added");
    HOST_OK(TRITONSERVER_InferenceRequestAppendInputData(c.request, "raw", numbers, 12,
                                                         TRITONSERVER_MEMORY_CPU, 0));
    host_call_run(&c, server, NULL);
    size_t count;
    assert_memory_equal(host_output(c.responses[0], 0, &count), numbers, 12);
    assert_int_equal(count, 3);
    host_call_free(&c);

    host_call_make(&c, server, "text");
    HOST_OK(TRITONSERVER_InferenceRequestAddRawInput(c.request, "raw"));
    HOST_OK(TRITONSERVER_InferenceRequestAppendInputData(c.request, "raw", "hello", 5,
                                                         TRITONSERVER_MEMORY_CPU, 0));
    host_call_run(&c, server, NULL);
    const char *label;
    HOST_OK(TRITONSERVER_InferenceResponseError(c.responses[0]));
    HOST_OK(TRITONSERVER_InferenceResponseOutputClassificationLabel(c.responses[0], 0, 1, &label));
    assert_string_equal(label, "one");
    HOST_OK(TRITONSERVER_InferenceResponseOutputClassificationLabel(c.responses[0], 0, 2, &label));
    assert_null(label);
    HOST_FAILS(
        TRITONSERVER_InferenceResponseOutputClassificationLabel(c.responses[0], 1, 0, &label),
        TRITONSERVER_ERROR_INVALID_ARG, "out of bounds index 1");
    host_call_free(&c);
}

static void test_properties_of_a_request(void **state)
{
    (void)state;
    struct host_call c;
    host_call_make(&c, server, "plain");
    TRITONSERVER_InferenceRequest *r = c.request;
    const char *text;
    uint32_t small;
    uint64_t big;
    bool yes;
    HOST_OK(TRITONSERVER_InferenceRequestId(r, &text));
    assert_string_equal(text, "");
    HOST_OK(TRITONSERVER_InferenceRequestSetFlags(r, TRITONSERVER_REQUEST_FLAG_SEQUENCE_START));
    HOST_OK(TRITONSERVER_InferenceRequestFlags(r, &small));
    assert_int_equal(small, TRITONSERVER_REQUEST_FLAG_SEQUENCE_START);
    HOST_OK(TRITONSERVER_InferenceRequestSetCorrelationId(r, 42));
    HOST_OK(TRITONSERVER_InferenceRequestCorrelationId(r, &big));
    assert_int_equal(big, 42);
    HOST_FAILS(TRITONSERVER_InferenceRequestCorrelationIdString(r, &text),
               TRITONSERVER_ERROR_INVALID_ARG, "is not a string");
    HOST_OK(TRITONSERVER_InferenceRequestSetCorrelationIdString(r, "seq"));
    HOST_OK(TRITONSERVER_InferenceRequestCorrelationIdString(r, &text));
    assert_string_equal(text, "seq");
    HOST_FAILS(TRITONSERVER_InferenceRequestCorrelationId(r, &big), TRITONSERVER_ERROR_INVALID_ARG,
               "is not an unsigned int");
    char longer[130];
    memset(longer, 'x', sizeof(longer) - 1);
    longer[129] = '\0';
    HOST_FAILS(TRITONSERVER_InferenceRequestSetCorrelationIdString(r, longer),
               TRITONSERVER_ERROR_UNSUPPORTED, "longer than 128");
    HOST_OK(TRITONSERVER_InferenceRequestSetCorrelationId(r, 0));
    HOST_OK(TRITONSERVER_InferenceRequestSetPriority(r, 3));
    HOST_OK(TRITONSERVER_InferenceRequestPriority(r, &small));
    assert_int_equal(small, 3);
    HOST_OK(TRITONSERVER_InferenceRequestSetPriorityUInt64(r, UINT64_C(1) << 40));
    HOST_OK(TRITONSERVER_InferenceRequestPriorityUInt64(r, &big));
    assert_int_equal(big, UINT64_C(1) << 40);
    HOST_FAILS(TRITONSERVER_InferenceRequestPriority(r, &small), TRITONSERVER_ERROR_INVALID_ARG,
               "overflows uint32_t");
    HOST_OK(TRITONSERVER_InferenceRequestSetTimeoutMicroseconds(r, 5000000));
    HOST_OK(TRITONSERVER_InferenceRequestTimeoutMicroseconds(r, &big));
    assert_int_equal(big, 5000000);
    HOST_OK(TRITONSERVER_InferenceRequestSetStringParameter(r, "s", "text"));
    HOST_OK(TRITONSERVER_InferenceRequestSetIntParameter(r, "i", 7));
    HOST_OK(TRITONSERVER_InferenceRequestSetBoolParameter(r, "b", true));
    HOST_OK(TRITONSERVER_InferenceRequestSetDoubleParameter(r, "d", 0.5));
    HOST_FAILS(TRITONSERVER_InferenceRequestCancel(r), TRITONSERVER_ERROR_INTERNAL,
               "not possible to cancel");
    HOST_FAILS(TRITONSERVER_InferenceRequestIsCancelled(r, &yes), TRITONSERVER_ERROR_INTERNAL,
               "not possible to query");
    host_call_input(&c, "INPUT0", (int64_t[]){4}, 1, numbers, 4);
    host_call_run(&c, server, NULL);
    HOST_OK(TRITONSERVER_InferenceRequestCancel(r));
    HOST_OK(TRITONSERVER_InferenceRequestIsCancelled(r, &yes));
    assert_false(yes);
    uint32_t count;
    HOST_OK(TRITONSERVER_InferenceResponseParameterCount(c.responses[0], &count));
    assert_int_equal(count, 0);
    TRITONSERVER_ParameterType type;
    const void *value;
    HOST_FAILS(TRITONSERVER_InferenceResponseParameter(c.responses[0], 0, &text, &type, &value),
               TRITONSERVER_ERROR_INVALID_ARG, "out of bounds index 0");
    host_call_free(&c);
}

/* The model waits an hour for more requests; who cancels does not. */
static void test_cancel_in_the_queue(void **state)
{
    (void)state;
    struct host_call c;
    host_call_make(&c, server, "waiting");
    host_call_input(&c, "INPUT0", (int64_t[]){1, 4}, 2, numbers, 4);
    for (int i = 0; i < 2; i++) {
        HOST_OK(TRITONSERVER_ServerInferAsync(server, c.request, NULL));
        HOST_FAILS(TRITONSERVER_ServerInferAsync(server, c.request, NULL),
                   TRITONSERVER_ERROR_INVALID_ARG, "has this request");
        HOST_FAILS(TRITONSERVER_InferenceRequestDelete(c.request), TRITONSERVER_ERROR_INVALID_ARG,
                   "cannot be deleted");
        bool yes = true;
        HOST_OK(TRITONSERVER_InferenceRequestIsCancelled(c.request, &yes));
        assert_false(yes);
        HOST_OK(TRITONSERVER_InferenceRequestCancel(c.request));
        host_call_wait(&c);
        HOST_OK(TRITONSERVER_InferenceRequestIsCancelled(c.request, &yes));
        assert_true(yes);
        TRITONSERVER_Error *e = TRITONSERVER_InferenceResponseError(c.responses[0]);
        assert_int_equal(TRITONSERVER_ErrorCode(e), TRITONSERVER_ERROR_CANCELLED);
        host_call_forget(&c);
    }
    host_call_free(&c);
}

/* Several threads send at once while another cancels what they have under way: each request is
 * answered once, right or CANCELLED. */
#define THREADS 4

static struct host_call busy[THREADS];
static atomic_uint running;

static void *send_many(void *arg)
{
    struct host_call *c = arg;
    for (int i = 0; i < 100; i++) {
        host_call_run(c, server, NULL);
        assert_int_equal(c->callbacks, 1);
        assert_int_equal(c->releases, 1);
        TRITONSERVER_Error *e = TRITONSERVER_InferenceResponseError(c->responses[0]);
        size_t count;
        if (e)
            assert_int_equal(TRITONSERVER_ErrorCode(e), TRITONSERVER_ERROR_CANCELLED);
        else
            assert_memory_equal(host_output(c->responses[0], 0, &count), numbers, 16);
        host_call_forget(c);
    }
    atomic_fetch_sub(&running, 1);
    return NULL;
}

static void test_many_threads(void **state)
{
    (void)state;
    pthread_t threads[THREADS];
    atomic_store(&running, THREADS);
    for (int i = 0; i < THREADS; i++) {
        host_call_make(&busy[i], server, "plain");
        host_call_input(&busy[i], "INPUT0", (int64_t[]){4}, 1, numbers, 4);
        host_call_run(&busy[i], server, NULL);
        host_call_forget(&busy[i]);
        assert_int_equal(pthread_create(&threads[i], NULL, send_many, &busy[i]), 0);
    }
    for (unsigned i = 0; atomic_load(&running); i++)
        HOST_OK(TRITONSERVER_InferenceRequestCancel(busy[i % THREADS].request));
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        host_call_free(&busy[i]);
    }
}

static void test_allocator_that_refuses(void **state)
{
    (void)state;
    struct host_call c;
    host_call_make(&c, server, "plain");
    host_call_input(&c, "INPUT0", (int64_t[]){4}, 1, numbers, 4);
    c.refuse = "no memory today";
    host_call_run(&c, server, NULL);
    TRITONSERVER_Error *e = TRITONSERVER_InferenceResponseError(c.responses[0]);
    assert_non_null(e);
    assert_non_null(strstr(TRITONSERVER_ErrorMessage(e), "no memory today"));
    TRITONSERVER_ErrorDelete(e); /* the response's own: this does nothing */
    e = TRITONSERVER_InferenceResponseError(c.responses[0]);
    assert_non_null(strstr(TRITONSERVER_ErrorMessage(e), "no memory today"));
    host_call_free(&c);
}

static void test_allocator_that_gives_no_memory_type(void **state)
{
    (void)state;
    struct host_call c;
    host_call_make(&c, server, "plain");
    host_call_input(&c, "INPUT0", (int64_t[]){4}, 1, numbers, 4);
    c.pretended = (TRITONSERVER_MemoryType)99;
    host_call_run(&c, server, NULL);
    HOST_FAILS(TRITONSERVER_InferenceResponseError(c.responses[0]), TRITONSERVER_ERROR_INVALID_ARG,
               "memory of type 99 for output 'OUTPUT0'");
    assert_int_equal(c.given_back, 1);
    host_call_free(&c);
}

static void on_refused_trace(TRITONSERVER_InferenceTrace *trace, void *released)
{
    ++*(int *)released;
    HOST_OK(TRITONSERVER_InferenceTraceDelete(trace));
}

/* What the scheduler refuses at once is the call's error: the request stays the caller's, who gets
 * no callback and may send it again. */
static void test_requests_that_are_refused(void **state)
{
    (void)state;
    struct host_call waits;
    struct host_call c;
    host_call_make(&waits, server, "full");
    host_call_input(&waits, "INPUT0", (int64_t[]){1, 4}, 2, numbers, 4);
    HOST_OK(TRITONSERVER_ServerInferAsync(server, waits.request, NULL));
    host_call_make(&c, server, "full");
    host_call_input(&c, "INPUT0", (int64_t[]){1, 4}, 2, numbers, 4);
    for (int i = 1; i <= 2; i++) {
        TRITONSERVER_InferenceTrace *trace;
        int released = 0;
        HOST_OK(TRITONSERVER_InferenceTraceNew(&trace, TRITONSERVER_TRACE_LEVEL_TIMESTAMPS, 0, NULL,
                                               on_refused_trace, &released));
        HOST_FAILS(TRITONSERVER_ServerInferAsync(server, c.request, trace),
                   TRITONSERVER_ERROR_UNAVAILABLE, "Exceeds maximum queue size");
        assert_int_equal(released, 1);
        assert_int_equal(c.releases + c.callbacks + c.finals, 0);
    }
    HOST_OK(TRITONSERVER_InferenceRequestCancel(waits.request));
    host_call_wait(&waits);
    HOST_OK(TRITONSERVER_ServerInferAsync(server, c.request, NULL));
    HOST_OK(TRITONSERVER_InferenceRequestCancel(c.request));
    host_call_wait(&c);
    assert_int_equal(c.releases, 1);
    host_call_free(&waits);
    host_call_free(&c);
}

static void test_requests_that_cannot_run(void **state)
{
    (void)state;
    TRITONSERVER_InferenceRequest *r;
    HOST_FAILS(TRITONSERVER_InferenceRequestNew(&r, server, "nobody", -1),
               TRITONSERVER_ERROR_NOT_FOUND, "nobody");
    HOST_OK(TRITONSERVER_InferenceRequestNew(&r, server, "plain", 1));
    HOST_FAILS(TRITONSERVER_ServerInferAsync(server, r, NULL), TRITONSERVER_ERROR_INVALID_ARG,
               "needs a response callback");
    HOST_OK(TRITONSERVER_InferenceRequestDelete(r));
    struct host_call c;
    host_call_make(&c, server, "plain");
    host_call_input(&c, "INPUT0", (int64_t[]){3}, 1, numbers, 4);
    HOST_FAILS(TRITONSERVER_ServerInferAsync(server, c.request, NULL),
               TRITONSERVER_ERROR_INVALID_ARG, "input byte size mismatch");
    assert_int_equal(c.callbacks + c.releases, 0);
    host_call_free(&c);
}

/* -- traces -- */

struct seen {
    TRITONSERVER_InferenceTraceActivity activities[32];
    uint64_t times[32];
    unsigned count;
    unsigned tensors;
    atomic_uint released; /* after all others */
};

static void on_activity(TRITONSERVER_InferenceTrace *trace,
                        TRITONSERVER_InferenceTraceActivity activity, uint64_t when, void *userp)
{
    (void)trace;
    struct seen *s = userp;
    s->activities[s->count] = activity;
    s->times[s->count++] = when;
}

static void on_tensor(TRITONSERVER_InferenceTrace *trace,
                      TRITONSERVER_InferenceTraceActivity activity, const char *name,
                      TRITONSERVER_DataType datatype, const void *base, size_t byte_size,
                      const int64_t *shape, uint64_t dim_count, TRITONSERVER_MemoryType memory_type,
                      int64_t memory_type_id, void *userp)
{
    (void)trace;
    (void)shape;
    (void)memory_type;
    (void)memory_type_id;
    struct seen *s = userp;
    bool out = activity == TRITONSERVER_TRACE_TENSOR_BACKEND_OUTPUT;
    s->tensors += datatype == TRITONSERVER_TYPE_FP32 && dim_count == 1 && byte_size == 16 &&
                  memcmp(base, numbers, 16) == 0 && strcmp(name, out ? "OUTPUT0" : "INPUT0") == 0;
}

static void on_release(TRITONSERVER_InferenceTrace *trace, void *userp)
{
    struct seen *s = userp;
    HOST_OK(TRITONSERVER_InferenceTraceDelete(trace));
    atomic_fetch_add(&s->released, 1);
}

static void test_trace(void **state)
{
    (void)state;
    struct seen seen = {0};
    TRITONSERVER_InferenceTrace *t;
    HOST_OK(TRITONSERVER_InferenceTraceTensorNew(
        &t, TRITONSERVER_TRACE_LEVEL_TIMESTAMPS | TRITONSERVER_TRACE_LEVEL_TENSORS, 5, on_activity,
        on_tensor, on_release, &seen));
    struct host_call c;
    host_call_make(&c, server, "plain");
    host_call_input(&c, "INPUT0", (int64_t[]){4}, 1, numbers, 4);
    host_call_run(&c, server, t);
    host_call_forget(&c); /* the response held the trace; or the thread that ran it still does */
    while (!atomic_load(&seen.released))
        sched_yield();
    assert_int_equal(seen.released, 1);
    static const TRITONSERVER_InferenceTraceActivity order[] = {
        TRITONSERVER_TRACE_REQUEST_START,        TRITONSERVER_TRACE_QUEUE_START,
        TRITONSERVER_TRACE_COMPUTE_START,        TRITONSERVER_TRACE_COMPUTE_INPUT_END,
        TRITONSERVER_TRACE_COMPUTE_OUTPUT_START, TRITONSERVER_TRACE_COMPUTE_END,
        TRITONSERVER_TRACE_REQUEST_END,
    };
    assert_int_equal(seen.count, 7);
    for (unsigned i = 0; i < 7; i++) {
        assert_int_equal(seen.activities[i], order[i]);
        assert_true(i == 0 || seen.times[i] >= seen.times[i - 1]);
    }
    assert_int_equal(seen.tensors, 3);

    /* Refused: the trace is released, the request stays ours. */
    seen.count = 0;
    atomic_store(&seen.released, 0);
    HOST_OK(TRITONSERVER_InferenceTraceNew(&t, TRITONSERVER_TRACE_LEVEL_MAX, 0, on_activity,
                                           on_release, &seen));
    HOST_OK(TRITONSERVER_InferenceRequestRemoveAllInputs(c.request));
    HOST_FAILS(TRITONSERVER_ServerInferAsync(server, c.request, t), TRITONSERVER_ERROR_INVALID_ARG,
               "expected 1 inputs");
    assert_int_equal(seen.released, 1);
    assert_int_equal(seen.count, 0);
    host_call_free(&c);
}

/* -- lives of servers -- */

static TRITONSERVER_Server *another(const char *path)
{
    return host_server(host_options(path, "backends"));
}

static void infer_once(TRITONSERVER_Server *s)
{
    struct host_call c;
    host_call_make(&c, s, "plain");
    host_call_input(&c, "INPUT0", (int64_t[]){4}, 1, numbers, 4);
    host_call_run(&c, s, NULL);
    size_t count;
    assert_memory_equal(host_output(c.responses[0], 0, &count), numbers, 16);
    host_call_free(&c);
}

static void test_servers_stop_in_either_order(void **state)
{
    (void)state;
    for (int first = 0; first < 2; first++) {
        TRITONSERVER_Server *both[2] = {another(repository.path), another(repository.path)};
        infer_once(both[0]);
        infer_once(both[1]);
        HOST_OK(TRITONSERVER_ServerStop(both[first]));
        bool ready = true;
        HOST_OK(TRITONSERVER_ServerIsReady(both[first], &ready));
        assert_false(ready);
        infer_once(both[!first]);
        HOST_OK(TRITONSERVER_ServerDelete(both[first]));
        infer_once(both[!first]);
        HOST_OK(TRITONSERVER_ServerDelete(both[!first]));
    }
}

/* A response that nobody deletes keeps its model: stopping says so when its time is over, and
 * goes on when it may. */
static void test_stop_waits_for_responses(void **state)
{
    (void)state;
    TRITONSERVER_Server *s = another(repository.path);
    struct host_call c;
    host_call_make(&c, s, "plain");
    host_call_input(&c, "INPUT0", (int64_t[]){4}, 1, numbers, 4);
    host_call_run(&c, s, NULL);
    HOST_OK(TRITONSERVER_ServerSetExitTimeout(s, 0));
    HOST_FAILS(TRITONSERVER_ServerStop(s), TRITONSERVER_ERROR_INTERNAL, "Exit timeout expired");
    HOST_FAILS(TRITONSERVER_ServerDelete(s), TRITONSERVER_ERROR_INTERNAL, "Exit timeout expired");
    host_call_free(&c);
    HOST_OK(TRITONSERVER_ServerSetExitTimeout(s, 60));
    HOST_OK(TRITONSERVER_ServerDelete(s));
}

static void test_servers_that_do_not_start(void **state)
{
    (void)state;
    TRITONSERVER_Server *s;
    TRITONSERVER_ServerOptions *o;
    HOST_OK(TRITONSERVER_ServerOptionsNew(&o));
    HOST_FAILS(TRITONSERVER_ServerNew(&s, o), TRITONSERVER_ERROR_INVALID_ARG,
               "--model-repository must be specified");
    HOST_OK(TRITONSERVER_ServerOptionsDelete(o));
    struct host_repository bad;
    host_repository_make(&bad);
    host_repository_add(&bad, "broken", "backend: \"no_such_backend\"");
    o = host_options(bad.path, "backends");
    HOST_OK(TRITONSERVER_ServerOptionsSetLogError(o, false));
    HOST_FAILS(TRITONSERVER_ServerNew(&s, o), TRITONSERVER_ERROR_INTERNAL,
               "failed to load all models: 1 could not be loaded, the log says why; without "
               "exit-on-error");
    HOST_OK(TRITONSERVER_ServerOptionsSetExitOnError(o, false));
    s = host_server(o);
    bool yes = true;
    HOST_OK(TRITONSERVER_ServerIsReady(s, &yes));
    assert_false(yes);
    HOST_OK(TRITONSERVER_ServerIsLive(s, &yes));
    assert_true(yes);
    HOST_OK(TRITONSERVER_ServerDelete(s));
    host_repository_remove(&bad);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_health),
        cmocka_unit_test(test_descriptions),
        cmocka_unit_test(test_request_is_reused),
        cmocka_unit_test(test_several_buffers_and_policies),
        cmocka_unit_test(test_raw_input),
        cmocka_unit_test(test_properties_of_a_request),
        cmocka_unit_test(test_cancel_in_the_queue),
        cmocka_unit_test(test_many_threads),
        cmocka_unit_test(test_allocator_that_refuses),
        cmocka_unit_test(test_allocator_that_gives_no_memory_type),
        cmocka_unit_test(test_requests_that_are_refused),
        cmocka_unit_test(test_requests_that_cannot_run),
        cmocka_unit_test(test_trace),
        cmocka_unit_test(test_servers_stop_in_either_order),
        cmocka_unit_test(test_stop_waits_for_responses),
        cmocka_unit_test(test_servers_that_do_not_start),
    };
    return cmocka_run_group_tests(tests, open_server, close_server);
}
