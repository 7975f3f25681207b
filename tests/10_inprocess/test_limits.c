/* A program whose server limits rates: options through the C API, a load that is refused, a
 * request that is cancelled while its instance waits for a resource. */
#include "10_inprocess/host.h"

#include <pthread.h>

#define IDENTITY(more)                                               \
    "backend: \"identity\"\n"                                        \
    "input [{ name: \"INPUT0\" data_type: TYPE_FP32 dims: [-1] }]\n" \
    "output [{ name: \"OUTPUT0\" data_type: TYPE_FP32 dims: [-1] }]\n" more
#define NEEDS(count)                                                                            \
    "instance_group [{ kind: KIND_CPU count: 2 host_policy: \"mine\" rate_limiter { resources " \
    "[{ name: \"r\" global: true count: " #count " }] } }]\n"

/* A traced execution waits until the gate is open. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards the rest */
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static bool entered, gate_open;

static struct host_repository repository;

static int make_repository(void **state)
{
    (void)state;
    host_repository_make(&repository);
    host_repository_add(&repository, "holds", IDENTITY(NEEDS(1)));
    host_repository_add(&repository, "waits", IDENTITY(NEEDS(1)));
    host_repository_add(&repository, "greedy", IDENTITY(NEEDS(2)));
    return 0;
}

static int remove_repository(void **state)
{
    (void)state;
    host_repository_remove(&repository);
    return 0;
}

static TRITONSERVER_Server *start(void)
{
    TRITONSERVER_ServerOptions *o = host_options(repository.path, "backends");
    HOST_OK(TRITONSERVER_ServerOptionsSetModelControlMode(o, TRITONSERVER_MODEL_CONTROL_EXPLICIT));
    HOST_OK(TRITONSERVER_ServerOptionsSetRateLimiterMode(o, TRITONSERVER_RATE_LIMIT_EXEC_COUNT));
    HOST_OK(TRITONSERVER_ServerOptionsAddRateLimiterResource(o, "r", 1, -1));
    HOST_OK(TRITONSERVER_ServerOptionsSetHostPolicy(o, "mine", "cpu-cores", "0-1023"));
    HOST_OK(TRITONSERVER_ServerOptionsSetStartupModel(o, "holds"));
    HOST_OK(TRITONSERVER_ServerOptionsSetStartupModel(o, "waits"));
    HOST_OK(TRITONSERVER_ServerOptionsSetLogError(o, false));
    return host_server(o);
}

static void make_call(struct host_call *c, TRITONSERVER_Server *s, const char *model)
{
    static const float number = 5;
    host_call_make(c, s, model);
    host_call_input(c, "INPUT0", (int64_t[]){1}, 1, &number, 1);
}

static void refused(void **state)
{
    (void)state;
    TRITONSERVER_Server *s = start();
    HOST_FAILS(TRITONSERVER_ServerLoadModel(s, "greedy"), TRITONSERVER_ERROR_INVALID_ARG,
               "Resource count for \"r\" is limited to 1 which will prevent scheduling");
    HOST_OK(TRITONSERVER_ServerUnloadModel(s, "waits"));
    HOST_OK(TRITONSERVER_ServerLoadModel(s, "waits"));
    HOST_OK(TRITONSERVER_ServerDelete(s));
}

static void on_activity(TRITONSERVER_InferenceTrace *trace,
                        TRITONSERVER_InferenceTraceActivity activity, uint64_t when, void *userp)
{
    (void)trace;
    (void)when;
    (void)userp;
    if (activity != TRITONSERVER_TRACE_COMPUTE_START)
        return;
    pthread_mutex_lock(&lock);
    entered = true;
    pthread_cond_broadcast(&changed);
    while (!gate_open)
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
}

static void on_release(TRITONSERVER_InferenceTrace *trace, void *userp)
{
    (void)userp;
    HOST_OK(TRITONSERVER_InferenceTraceDelete(trace));
}

/* Sends it, and returns when it executes and stays there. */
static void send_and_hold(struct host_call *c, TRITONSERVER_Server *s)
{
    TRITONSERVER_InferenceTrace *trace;
    HOST_OK(TRITONSERVER_InferenceTraceNew(&trace, TRITONSERVER_TRACE_LEVEL_TIMESTAMPS, 0,
                                           on_activity, on_release, NULL));
    HOST_OK(TRITONSERVER_ServerInferAsync(s, c->request, trace));
    pthread_mutex_lock(&lock);
    while (!entered)
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
}

static void let_go(void)
{
    pthread_mutex_lock(&lock);
    gate_open = true;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

/* Both instances of the one model, and then that of the other, want the resource; who is
 * cancelled does not wait for it. */
static void cancelled(void **state)
{
    (void)state;
    TRITONSERVER_Server *s = start();
    struct host_call holds[2];
    struct host_call waits;
    for (int i = 0; i < 2; i++)
        make_call(&holds[i], s, "holds");
    send_and_hold(&holds[0], s);
    HOST_OK(TRITONSERVER_ServerInferAsync(s, holds[1].request, NULL));
    make_call(&waits, s, "waits");
    HOST_OK(TRITONSERVER_ServerInferAsync(s, waits.request, NULL));
    HOST_OK(TRITONSERVER_InferenceRequestCancel(waits.request));
    host_call_wait(&waits);
    HOST_FAILS(TRITONSERVER_InferenceResponseError(waits.responses[0]),
               TRITONSERVER_ERROR_CANCELLED, "cancelled");
    assert_int_equal(waits.allocated, 0);
    let_go();
    for (int i = 0; i < 2; i++)
        host_call_wait(&holds[i]);
    host_call_forget(&waits);
    host_call_run(&waits, s, NULL);
    size_t count;
    assert_true(*host_output(waits.responses[0], 0, &count) == 5);
    host_call_free(&waits);
    for (int i = 0; i < 2; i++)
        host_call_free(&holds[i]);
    HOST_OK(TRITONSERVER_ServerDelete(s));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(refused), cmocka_unit_test(cancelled)};
    return cmocka_run_group_tests(tests, make_repository, remove_repository);
}
