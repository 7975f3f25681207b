/* The thread of an instance: nothing that is queued at an awkward moment is left waiting. */
#include "serve/runner.h"

#include "infer/request.h"
#include "infer/response.h"
#include "os/mutex.h"
#include "serve/submit.h"
#include "serve/version.h"
#include "support/test_version.h"
#include "support/unit.h"

static const char one_instance[] =
    "name: 'm' backend: 'b' input [{ name: 'i' data_type: TYPE_INT32 dims: [ 1 ] }] "
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
    request_add_input(r, "i", 1, DATATYPE_INT32, (int64_t[]){1}, 1, &piece, 1);
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

static void queued_while_dropped_ones_are_answered(void **state)
{
    (void)state;
    struct plugin_backend backend = test_version_backend(answer_all);
    mutex_cond_init(&changed);
    version = test_version_new(&backend, one_instance, NULL);
    submit_now(make(on_answer));
    mutex_lock(&lock);
    while (!entered)
        mutex_cond_wait(&changed, &lock);
    mutex_unlock(&lock);
    struct request *cancelled = make(ask_again);
    atomic_store(&cancelled->cancelled, true);
    submit_now(cancelled);
    mutex_lock(&lock);
    gate_open = true;
    mutex_cond_broadcast(&changed);
    mutex_unlock(&lock);
    wait_until_answered(3);
    version_drain(version);
    version_free(version);
    mutex_cond_fini(&changed);
}

UNIT_MAIN(UNIT(queued_while_dropped_ones_are_answered))
