/* Runners under the rate limiter, with threads as they are. A test opens and shuts the gate in
 * Execute, so nothing depends on time. */
#include "limits/limits.h"

#include "infer/request.h"
#include "infer/response.h"
#include "model/config.h"
#include "os/mutex.h"
#include "plugin/instance.h"
#include "plugin/model.h"
#include "serve/instances.h"
#include "serve/scheduler.h"
#include "serve/runner.h"
#include "serve/submit.h"
#include "serve/version.h"
#include "support/test_version.h"
#include "support/unit.h"

#include <stdio.h>
#include <string.h>

#define MODELS    4
#define MAX_ORDER 400
#define IO                                                                            \
    "name: 'm' backend: 'b' input [{ name: 'i' data_type: TYPE_INT32 dims: [ 1 ] }] " \
    "output [{ name: 'o' data_type: TYPE_INT32 dims: [ 1 ] }] "
#define GROUP(count, limiter) \
    "instance_group [{ kind: KIND_CPU count: " #count " rate_limiter { " limiter " } }] "
#define RESOURCE(name, count) "resources [{ name: '" name "' global: true count: " #count " }] "

/* What all threads of a test share. */
static struct mutex lock = MUTEX_INIT(MUTEX_RANK_LEAF);
static struct mutex_cond changed;
static bool gate_open;
static struct serve_version *models[MODELS];
static unsigned executing[MODELS];
static unsigned order[MAX_ORDER]; /* which model, one execution after the other */
static unsigned executions;
static unsigned most_at_once;
static unsigned answered;
static unsigned refused;
static struct limits *limits;

/* As test_version_new, with the rate limiter of a server. */
static struct err *limited_version(struct plugin_backend *b, const char *text, struct limits *l,
                                   struct serve_version **ret)
{
    struct serve_version *v = test_version_made(b, text, NULL);
    limits_wrap(l, v);
    struct err *e = version_start(v);
    if (e)
        version_free(v);
    else
        *ret = v;
    return e;
}
static struct plugin_backend backend;

static void on_answer(struct response *r, void *owner)
{
    (void)owner;
    mutex_lock(&lock);
    answered++;
    refused += r->error != NULL;
    mutex_cond_broadcast(&changed);
    mutex_unlock(&lock);
    response_free(r);
}

static struct request *make(struct serve_version *v)
{
    static const int32_t value = 7;
    const struct tensor_piece piece = {.data = &value, .size = sizeof(value)};
    version_pin(v);
    struct request *r = request_new(&v->target, NULL, on_answer, NULL);
    request_add_input(r, "i", 1, DATATYPE_INT32, (int64_t[]){1}, 1, &piece, 1);
    unit_succeeds(request_prepare(r));
    r->times.start = clock_now_ns();
    return r;
}

static void ask(unsigned model, unsigned times)
{
    while (times--)
        submit_now(make(models[model]));
}

static unsigned model_of(const struct request *r)
{
    unsigned m = 0;
    while (&models[m]->target != r->target)
        m++;
    return m;
}

static TRITONSERVER_Error *answer_all(TRITONBACKEND_ModelInstance *instance,
                                      TRITONBACKEND_Request **requests, uint32_t count)
{
    (void)instance;
    unsigned at_once = 0;
    mutex_lock(&lock);
    struct request *first = request_take(requests[0]);
    unsigned m = model_of(first);
    executing[m]++;
    order[executions++ % MAX_ORDER] = m;
    for (unsigned k = 0; k < MODELS; k++)
        at_once += executing[k];
    most_at_once = at_once > most_at_once ? at_once : most_at_once;
    mutex_cond_broadcast(&changed);
    while (!gate_open)
        mutex_cond_wait(&changed, &lock);
    executing[m]--;
    mutex_unlock(&lock);
    for (uint32_t i = 0; i < count; i++) {
        struct request *r = i ? request_take(requests[i]) : first;
        response_send(response_new(r), RESPONSE_FINAL, NULL);
        request_release(r);
    }
    return NULL;
}

static void set_gate(bool open)
{
    mutex_lock(&lock);
    gate_open = open;
    mutex_cond_broadcast(&changed);
    mutex_unlock(&lock);
}

static void wait_for(const unsigned *counter, unsigned n)
{
    time_ns until = clock_now_ns() + TIME_S(60);
    mutex_lock(&lock);
    while (*counter < n)
        assert_true(mutex_cond_wait_until(&changed, &lock, until));
    mutex_unlock(&lock);
}

/* Until an instance of the model waits. */
static void wait_for_waiting(unsigned model)
{
    const struct instances *set = &models[model]->instances;
    bool waits = false;
    while (!waits)
        for (uint32_t i = 0; i < set->runner_count; i++)
            waits = waits || limits_state(set->runners[i]->limit) == RATE_LIMITER_WAITS;
}

static void wait_for_idle(unsigned model)
{
    const struct instances *set = &models[model]->instances;
    bool idle = false;
    while (!idle) {
        idle = true;
        mutex_lock(&models[model]->lock);
        for (uint32_t i = 0; i < set->runner_count; i++)
            idle = idle && set->runners[i]->state == RUNNER_IDLE;
        mutex_unlock(&models[model]->lock);
    }
}

static int begin(void **state)
{
    (void)state;
    backend = test_version_backend(answer_all);
    mutex_cond_init(&changed);
    limits = limits_new(NULL, 0);
    memset(models, 0, sizeof(models));
    executions = most_at_once = answered = refused = 0;
    gate_open = true;
    return 0;
}

static void serve(unsigned model, const char *config)
{
    unit_succeeds(limited_version(&backend, config, limits, &models[model]));
}

static void unload(unsigned model)
{
    version_drain(models[model]);
    version_free(models[model]);
    models[model] = NULL;
}

static int end(void **state)
{
    (void)state;
    for (unsigned m = 0; m < MODELS; m++)
        if (models[m])
            unload(m);
    limits_free(limits);
    mutex_cond_fini(&changed);
    return 0;
}

/* Four instances of two models need the one resource that there is. */
static void never_two_at_once(void **state)
{
    (void)state;
    serve(0, IO GROUP(2, RESOURCE("r", 1)));
    serve(1, IO GROUP(2, RESOURCE("r", 1)));
    assert_false(models[0]->inline_ok);
    for (unsigned n = 0; n < 100; n++) {
        ask(0, 1);
        ask(1, 1);
    }
    wait_for(&answered, 200);
    assert_int_equal(most_at_once, 1);
    assert_int_equal(executions, 200);
}

/* Two of three fit, as the resource is asked for in larger pieces than the smallest. */
static void as_many_as_there_is(void **state)
{
    (void)state;
    serve(0, IO GROUP(4, RESOURCE("r", 1)));
    serve(1, IO GROUP(1, RESOURCE("r", 2)));
    set_gate(false);
    ask(0, 4);
    wait_for(&executions, 2);
    set_gate(true);
    wait_for(&answered, 4);
    assert_int_equal(most_at_once, 2);
    ask(1, 1);
    wait_for(&answered, 5);
}

static void in_the_ratio_of_priorities(void **state)
{
    (void)state;
    serve(0, IO GROUP(1, RESOURCE("r", 1) "priority: 1"));
    serve(1, IO GROUP(1, RESOURCE("r", 1) "priority: 3"));
    set_gate(false);
    ask(0, 120);
    ask(1, 120);
    wait_for(&executions, 1);
    wait_for_waiting(order[0] ? 0 : 1);
    set_gate(true);
    wait_for(&answered, 240);
    unsigned count[2] = {0};
    for (unsigned n = 0; n < 120; n++)
        count[order[n]]++;
    assert_in_range(count[0], 87, 93);
    assert_int_equal(most_at_once, 1);
}

/* Models that need nothing, or something else, go on while others wait, and may run inline if
 * they need nothing. */
static void strangers_do_not_wait(void **state)
{
    (void)state;
    serve(0, IO GROUP(1, RESOURCE("r", 1)));
    serve(1, IO GROUP(1, RESOURCE("r", 1)));
    serve(2, IO GROUP(1, RESOURCE("s", 1) "priority: 9"));
    serve(3, IO);
    assert_null(models[3]->instances.runners[0]->limit);
    set_gate(false);
    ask(0, 1);
    wait_for(&executions, 1);
    ask(1, 1);
    wait_for_waiting(1);
    ask(2, 1);
    ask(3, 1);
    wait_for(&executions, 3);
    assert_int_equal(executing[1], 0);
    set_gate(true);
    wait_for(&answered, 4);
}

/* A model whose only request was cancelled, or timed out, while it waited can be unloaded though
 * the resource is not free yet. */
static void unloaded_while_waiting(void **state)
{
    (void)state;
    serve(0, IO GROUP(1, RESOURCE("r", 1)));
    serve(1, IO GROUP(1, RESOURCE("r", 1)));
    serve(2, IO GROUP(2, RESOURCE("r", 1)));
    set_gate(false);
    ask(0, 1);
    wait_for(&executions, 1);
    struct request *r = make(models[1]);
    request_ref(r);
    submit_now(r);
    struct request *timed = make(models[2]);
    timed->timeout_us = 1000;
    submit_now(timed);
    wait_for(&answered, 1);
    unload(2);
    wait_for_waiting(1);
    mutex_lock(&models[1]->lock);
    assert_true(models[1]->scheduler->ops.remove(models[1]->scheduler, r));
    mutex_unlock(&models[1]->lock);
    response_fail(r, err_new(STATUS_CANCELLED, "gone"));
    request_unref(r);
    wait_for(&answered, 2);
    unload(1);
    assert_int_equal(executions, 1);
    assert_int_equal(refused, 2);
    set_gate(true);
    wait_for(&answered, 3);
}

/* A model that is loaded meanwhile asks for larger pieces: there is as much of it from then on,
 * so who waited goes on at once, and not only when somebody else gives something back. */
static void let_in_by_a_raised_limit(void **state)
{
    (void)state;
    serve(0, IO GROUP(1, RESOURCE("r", 1)));
    serve(1, IO GROUP(1, RESOURCE("r", 1)));
    set_gate(false);
    ask(0, 1);
    wait_for(&executions, 1);
    ask(1, 1);
    wait_for_waiting(1);
    assert_int_equal(executing[1], 0);
    serve(2, IO GROUP(1, RESOURCE("r", 2)));
    wait_for(&executions, 2);
    assert_int_equal(executing[1], 1);
    set_gate(true);
    wait_for(&answered, 2);
}

/* A seat that goes gives back what it held, and who waited for that goes on. */
static void let_in_by_a_seat_that_goes(void **state)
{
    (void)state;
    serve(0, IO GROUP(1, RESOURCE("r", 1)));
    serve(1, IO GROUP(1, RESOURCE("r", 1)));
    struct scheduler *s = models[0]->scheduler;
    struct runner another = {.version = models[0],
                             .instance = models[0]->instances.runners[0]->instance};
    unit_succeeds(s->ops.equip(s, &another, models[0]->config->proto));
    s->ops.hold(s, &another);
    ask(1, 1);
    wait_for_waiting(1);
    assert_int_equal(executions, 0);
    s->ops.drop(s, &another);
    wait_for(&answered, 1);
}

/* It is cancelled while its instance waits: it never executes, and what it would have taken is
 * there for others. */
static void cancelled_while_waiting(void **state)
{
    (void)state;
    serve(0, IO GROUP(1, RESOURCE("r", 1)));
    serve(1, IO GROUP(1, RESOURCE("r", 1)));
    set_gate(false);
    ask(0, 1);
    wait_for(&executions, 1);
    struct request *r = make(models[1]);
    request_ref(r);
    submit_now(r);
    wait_for_waiting(1);
    atomic_store(&r->cancelled, true);
    set_gate(true);
    wait_for(&answered, 2);
    request_unref(r);
    assert_int_equal(refused, 1);
    ask(0, 1);
    ask(1, 1);
    wait_for(&answered, 4);
    assert_int_equal(executions, 3);
}

static void refused_at_load(void **state)
{
    (void)state;
    limits_free(limits);
    const struct rate_limiter_supply supply = {"r", 1, RATE_LIMITER_EVERY_DEVICE};
    limits = limits_new(&supply, 1);
    struct serve_version *v;
    unit_fails(limited_version(&backend, IO GROUP(2, RESOURCE("r", 2)), limits, &v),
               STATUS_INVALID_ARG, "Resource count for \"r\" is limited to 1");
    serve(0, IO GROUP(2, RESOURCE("r", 1)));
    ask(0, 5);
    wait_for(&answered, 5);
    assert_int_equal(most_at_once, 1);
}

/* Instances that were there before, come, and go while others of the model wait. */
static void resized_while_waiting(void **state)
{
    (void)state;
    static const char *const configs[] = {IO GROUP(3, RESOURCE("r", 1)),
                                          IO GROUP(1, RESOURCE("r", 1)), IO,
                                          IO GROUP(4, RESOURCE("r", 2) "priority: 2")};
    serve(0, IO);
    serve(1, IO GROUP(1, RESOURCE("r", 1)));
    unsigned asked = 0;
    for (unsigned n = 0; n < 40; n++) {
        struct instances_draft *d;
        struct instances left;
        struct model_config *c = test_version_config(configs[n % 4]);
        ask(0, 7);
        ask(1, 3);
        asked += 10;
        unit_succeeds(instances_prepare(models[0], c, &d));
        config_unref(c);
        instances_commit(d, &left);
        ask(0, 2);
        asked += 2;
        while (!instances_idle(models[0], &left))
            continue;
        instances_free(&left);
        assert_false(models[0]->inline_ok);
    }
    wait_for(&answered, asked);
    assert_int_equal(refused, 0);
}

/* Among idle instances the one with the lowest scaled priority gets the request, though none
 * needs anything. */
static void idle_instances_by_priority(void **state)
{
    (void)state;
    serve(0, IO "instance_group [{ kind: KIND_CPU count: 1 }, { kind: KIND_CPU count: 1 "
                "rate_limiter { priority: 3 } }] ");
    for (unsigned n = 0; n < 40; n++) {
        ask(0, 1);
        wait_for(&answered, n + 1);
        wait_for_idle(0);
    }
    assert_in_range(limits_scaled(models[0]->instances.runners[0]->limit), 28, 32);
    assert_in_range(limits_scaled(models[0]->instances.runners[1]->limit), 27, 36);
}

#define CASE(fn) cmocka_unit_test_setup_teardown(fn, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(never_two_at_once),
        CASE(as_many_as_there_is),
        CASE(in_the_ratio_of_priorities),
        CASE(strangers_do_not_wait),
        CASE(unloaded_while_waiting),
        CASE(cancelled_while_waiting),
        CASE(refused_at_load),
        CASE(resized_while_waiting),
        CASE(idle_instances_by_priority),
        CASE(let_in_by_a_raised_limit),
        CASE(let_in_by_a_seat_that_goes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
