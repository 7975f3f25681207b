/* The thread of an instance: nothing that is queued at an awkward moment is left waiting. */
#include "serve/runner.h"

#include "infer/request.h"
#include "infer/response.h"
#include "model/config.h"
#include "os/mutex.h"
#include "serve/submit.h"
#include "serve/version.h"
#include "support/test_version.h"
#include "support/unit.h"

#include <time.h>

static const char one_instance[] =
    "name: 'm' backend: 'b' input [{ name: 'i' data_type: TYPE_INT32 dims: [ 1 ] }] "
    "output [{ name: 'o' data_type: TYPE_INT32 dims: [ 1 ] }]";

static const char batching[] = "name: 'm' backend: 'b' max_batch_size: 4 dynamic_batching { } "
                               "input [{ name: 'i' data_type: TYPE_INT32 dims: [ 1 ] }] "
                               "output [{ name: 'o' data_type: TYPE_INT32 dims: [ 1 ] }]";
static const char slow_batching[] =
    "name: 'm' backend: 'b' max_batch_size: 4 "
    "dynamic_batching { preferred_batch_size: 4 max_queue_delay_microseconds: 800000 } "
    "input [{ name: 'i' data_type: TYPE_INT32 dims: [ 1 ] }] "
    "output [{ name: 'o' data_type: TYPE_INT32 dims: [ 1 ] }]";

static struct mutex lock = MUTEX_INIT(MUTEX_RANK_LEAF);
static struct mutex_cond changed;
static bool gate_open;
static bool entered;
static unsigned answered;
static struct serve_version *version;

static void on_answer(struct response *r, void *owner)
{
    (void)owner;
    response_free(r);
    mutex_lock(&lock);
    answered++;
    mutex_cond_broadcast(&changed);
    mutex_unlock(&lock);
}

static struct request *make(request_respond_fn respond)
{
    static const int32_t value = 7;
    const struct tensor_piece piece = {.data = &value, .size = sizeof(value)};
    version_pin(version);
    struct request *r = request_new(&version->target, NULL, respond, NULL);
    uint32_t rank = version->config->max_batch_size ? 2 : 1;
    request_add_input(r, "i", 1, DATATYPE_INT32, (int64_t[]){1, 1}, rank, &piece, 1);
    unit_succeeds(request_prepare(r));
    r->times.start = clock_now_ns();
    return r;
}

static TRITONSERVER_Error *answer_all(TRITONBACKEND_ModelInstance *instance,
                                      TRITONBACKEND_Request **requests, uint32_t count)
{
    (void)instance;
    mutex_lock(&lock);
    entered = true;
    mutex_cond_broadcast(&changed);
    while (!gate_open)
        mutex_cond_wait(&changed, &lock);
    mutex_unlock(&lock);
    for (uint32_t i = 0; i < count; i++) {
        struct request *r = request_take(requests[i]);
        response_send(response_new(r), RESPONSE_FINAL, NULL);
        request_release(r);
    }
    return NULL;
}

/* Who gets the answer for the cancelled request asks again at once, on the very thread that would
 * have to run it and that has just found its queue empty. */
static void ask_again(struct response *r, void *owner)
{
    on_answer(r, owner);
    submit_now(make(on_answer));
}

static void wait_until_answered(unsigned n)
{
    time_ns until = clock_now_ns() + TIME_S(60);
    mutex_lock(&lock);
    while (answered < n)
        assert_true(mutex_cond_wait_until(&changed, &lock, until));
    mutex_unlock(&lock);
}

static void wait_until_entered(void)
{
    mutex_lock(&lock);
    while (!entered)
        mutex_cond_wait(&changed, &lock);
    mutex_unlock(&lock);
}

static void open_gate(void)
{
    mutex_lock(&lock);
    gate_open = true;
    mutex_cond_broadcast(&changed);
    mutex_unlock(&lock);
}

static void begin(struct plugin_backend *backend, const char *config)
{
    mutex_cond_init(&changed);
    gate_open = entered = false;
    answered = 0;
    version = test_version_new(backend, config, NULL);
}

static void end(void)
{
    version_drain(version);
    version_free(version);
    mutex_cond_fini(&changed);
}

static void queued_while_dropped_ones_are_answered(void **state)
{
    (void)state;
    struct plugin_backend backend = test_version_backend(answer_all);
    begin(&backend, one_instance);
    submit_now(make(on_answer));
    wait_until_entered();
    struct request *cancelled = make(ask_again);
    atomic_store(&cancelled->cancelled, true);
    submit_now(cancelled);
    open_gate();
    wait_until_answered(3);
    end();
}

/* A request whose client is gone before it is queued is put aside by whoever looks at the queue: it is answered all the same. */
static void cancelled_before_it_is_queued(void **state)
{
    (void)state;
    struct plugin_backend backend = test_version_backend(answer_all);
    begin(&backend, batching);
    gate_open = true;
    struct request *cancelled = make(on_answer);
    atomic_store(&cancelled->cancelled, true);
    submit_now(cancelled);
    wait_until_answered(1);
    end();
}

/* The second request of a pair is over only once the first one was answered. */
static TRITONSERVER_Error *wait_for_the_first(TRITONBACKEND_ModelInstance *instance,
                                              TRITONBACKEND_Request **requests, uint32_t count)
{
    static unsigned executions;
    if (++executions % 3 == 0)
        wait_until_answered(executions - 1);
    return answer_all(instance, requests, count);
}

/* Nobody knows how long the next run takes, so what is finished does not wait for it. */
static void answers_do_not_wait_for_the_next_run(void **state)
{
    (void)state;
    struct plugin_backend backend = test_version_backend(wait_for_the_first);
    begin(&backend, one_instance);
    for (unsigned i = 0; i < 20; i++) {
        mutex_lock(&lock);
        gate_open = entered = false;
        mutex_unlock(&lock);
        submit_now(make(on_answer));
        wait_until_entered();
        submit_now(make(on_answer));
        submit_now(make(on_answer));
        open_gate();
        wait_until_answered(3 * i + 3);
    }
    end();
}

static uint64_t process_cpu_ns(void)
{
    struct timespec t;
    assert_int_equal(clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t), 0);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* A thread that has nothing to do but wait for a batch to become due sleeps, also when it could have retired long ago. */
static void a_late_batch_is_waited_for_asleep(void **state)
{
    (void)state;
    struct plugin_backend backend = test_version_backend(answer_all);
    begin(&backend, slow_batching);
    version->instances.runners[0]->retire_after = 0;
    gate_open = true;
    uint64_t before = process_cpu_ns();
    submit_now(make(on_answer));
    wait_until_answered(1);
    assert_true(process_cpu_ns() - before < TIME_MS(200));
    end();
}

UNIT_MAIN(UNIT(queued_while_dropped_ones_are_answered), UNIT(cancelled_before_it_is_queued),
          UNIT(answers_do_not_wait_for_the_next_run), UNIT(a_late_batch_is_waited_for_asleep))
