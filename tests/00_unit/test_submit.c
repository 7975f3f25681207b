/* serve/: requests from many threads and from loops reach the backend once each and are answered
 * once each, whatever the number of instances; queue limits, time-outs, errors of Execute,
 * draining and inline runs. */
#include "infer/request.h"
#include "infer/response.h"
#include "infer/stats.h"
#include "model/config.h"
#include "os/loop.h"
#include "os/thread.h"
#include "serve/runner.h"
#include "serve/scheduler.h"
#include "serve/submit.h"
#include "serve/version.h"
#include "support/test_gate.h"
#include "support/test_version.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#define IO                                                                                    \
    "input [{ name: 'i' data_type: TYPE_INT32 dims: [ 1 ] }] output [{ name: 'o' data_type: " \
    "TYPE_INT32 dims: [ 1 ] }] "

static const char two_instances[] =
    "name: 'm' backend: 'b' " IO "instance_group [{ count: 2 kind: KIND_CPU }]";
static const char one_instance[] = "name: 'm' backend: 'b' " IO;
static const char short_queue[] = "name: 'm' backend: 'b' max_batch_size: 8 " IO
                                  "dynamic_batching { default_queue_policy { max_queue_size: 2 } }";
static const char impatient[] =
    "name: 'm' backend: 'b' max_batch_size: 1 " IO
    "dynamic_batching { priority_levels: 2 default_priority_level: 1 priority_queue_policy "
    "{ key: 2 value { default_timeout_microseconds: 20000 } } }";

static const char ordered[] =
    "name: 'm' backend: 'b' max_batch_size: 1 " IO "dynamic_batching { preserve_ordering: true } "
    "instance_group [{ count: 2 kind: KIND_CPU }]";

#define SENDERS 4
#define EACH    2000
static int32_t values[SENDERS * EACH];

static unsigned late_done;
#define ORDERED 20
static int32_t order[ORDERED];
static enum status last_status;
static char last_message[128];

static int reset(void **state)
{
    (void)state;
    test_gate_begin(true);
    return 0;
}

static TRITONSERVER_Error *echo(TRITONBACKEND_ModelInstance *instance,
                                TRITONBACKEND_Request **requests, uint32_t count)
{
    (void)instance;
    test_gate_pass(count);
    for (uint32_t i = 0; i < count; i++) {
        struct request *r = request_take(requests[i]);
        struct response *a = response_new(r);
        struct tensor_output *o =
            response_add_output(a, "o", DATATYPE_INT32, r->inputs[0].shape, r->inputs[0].rank);
        assert_null(response_output_buffer(a, o, 4));
        memcpy(o->data, r->inputs[0].pieces[0].data, 4);
        response_send(a, RESPONSE_FINAL, NULL);
        request_release(r);
    }
    return NULL;
}

static TRITONSERVER_Error *refuse(TRITONBACKEND_ModelInstance *instance,
                                  TRITONBACKEND_Request **requests, uint32_t count)
{
    (void)instance;
    (void)requests;
    (void)count;
    return (TRITONSERVER_Error *)err_new(STATUS_UNSUPPORTED, "not today");
}

/* The value that a request carries is its index; each answer must bring it back. */
static void on_answer(struct response *r, void *owner)
{
    mutex_lock(&test_gate_lock);
    if (r->error) {
        last_status = err_code(r->error);
        strncpy(last_message, err_message(r->error), sizeof(last_message) - 1);
    } else {
        assert_memory_equal(r->outputs->data, owner, 4);
    }
    mutex_unlock(&test_gate_lock);
    test_gate_on_answer(r, owner);
}

static struct request *make(struct serve_version *v, struct loop *home, const int32_t *value)
{
    return test_gate_request(v, home, on_answer, value);
}

static void finish(struct serve_version *v)
{
    version_drain(v);
    version_free(v);
    test_gate_end();
}

struct sender {
    struct serve_version *version;
    unsigned first;
};

static void send_many(void *arg)
{
    struct sender *s = arg;
    for (unsigned i = 0; i < EACH; i++) {
        values[s->first + i] = (int32_t)(s->first + i);
        submit_now(make(s->version, NULL, &values[s->first + i]));
    }
}

static void many_threads_two_instances(void **state)
{
    (void)state;
    struct plugin_backend backend = test_version_backend(echo);
    struct serve_version *v = test_version_new(&backend, two_instances, NULL);
    struct sender senders[SENDERS];
    struct thread *threads[SENDERS];
    for (unsigned i = 0; i < SENDERS; i++) {
        senders[i] = (struct sender){v, i * EACH};
        assert_null(thread_start("sender", send_many, &senders[i], &threads[i]));
    }
    for (unsigned i = 0; i < SENDERS; i++)
        thread_join(threads[i]);
    test_gate_wait(&test_gate_answered, SENDERS * EACH);
    assert_int_equal(test_gate_answered, SENDERS * EACH);
    assert_int_equal(test_gate_failed, 0);
    finish(v);
}

static void both_instances_run_at_once(void **state)
{
    (void)state;
    struct plugin_backend backend = test_version_backend(echo);
    struct serve_version *v = test_version_new(&backend, two_instances, NULL);
    static const int32_t a = 1;
    static const int32_t b = 2;
    test_gate_set(false);
    submit_now(make(v, NULL, &a));
    submit_now(make(v, NULL, &b));
    test_gate_wait(&test_gate_entered, 2);
    test_gate_set(true);
    test_gate_wait(&test_gate_answered, 2);
    finish(v);
}

static void execute_error_answers_every_request(void **state)
{
    (void)state;
    struct plugin_backend backend = test_version_backend(refuse);
    struct serve_version *v = test_version_new(&backend, one_instance, NULL);
    static const int32_t value = 5;
    submit_now(make(v, NULL, &value));
    test_gate_wait(&test_gate_answered, 1);
    assert_int_equal(test_gate_failed, 1);
    assert_int_equal(last_status, STATUS_UNSUPPORTED);
    assert_string_equal(last_message, "not today");
    struct stats_sums sums;
    stats_sum(v->stats, &sums);
    assert_int_equal(sums.failures[STATS_BACKEND], 1);
    finish(v);
}

/* MC-119, MC-121, PB-92. */
static void full_queue_refuses_at_once(void **state)
{
    (void)state;
    struct plugin_backend backend = test_version_backend(echo);
    struct serve_version *v = test_version_new(&backend, short_queue, NULL);
    static const int32_t value = 6;
    test_gate_set(false);
    submit_now(make(v, NULL, &value));
    test_gate_wait(&test_gate_entered, 1);
    submit_now(make(v, NULL, &value));
    submit_now(make(v, NULL, &value));
    submit_now(make(v, NULL, &value));
    test_gate_wait(&test_gate_failed, 1);
    assert_int_equal(last_status, STATUS_UNAVAILABLE);
    assert_string_equal(last_message, "[request id: <id_unknown>] Exceeds maximum queue size");
    test_gate_set(true);
    test_gate_wait(&test_gate_answered, 4);
    assert_int_equal(test_gate_failed, 1);
    finish(v);
}

/* Runs the request that carries 1 only once the gate is open; notes who entered. */
static TRITONSERVER_Error *first_waits(TRITONBACKEND_ModelInstance *instance,
                                       TRITONBACKEND_Request **requests, uint32_t count)
{
    struct request *r = request_from(requests[0]);
    int32_t value;
    memcpy(&value, r->inputs[0].pieces[0].data, sizeof(value));
    if (value == 1)
        return echo(instance, requests, count);
    r = request_take(requests[0]);
    test_gate_add(&test_gate_entered);
    struct response *a = response_new(r);
    struct tensor_output *o = response_add_output(a, "o", DATATYPE_INT32, (int64_t[]){1, 1}, 2);
    assert_null(response_output_buffer(a, o, 4));
    memcpy(o->data, &value, 4);
    response_send(a, RESPONSE_FINAL, NULL);
    request_release(r);
    test_gate_add(&late_done);
    return NULL;
}

static void note_order(struct response *r, void *owner)
{
    mutex_lock(&test_gate_lock);
    memcpy(&order[test_gate_answered], r->outputs->data, 4);
    mutex_unlock(&test_gate_lock);
    test_gate_on_answer(r, owner);
}

/* MC-98, MC-114, PB-97: the second instance is done with every later request before the first
 * one's is. */
static void answers_keep_the_order(void **state)
{
    (void)state;
    struct plugin_backend backend = test_version_backend(first_waits);
    struct serve_version *v = test_version_new(&backend, ordered, NULL);
    test_gate_set(false);
    late_done = 0;
    for (int32_t i = 0; i < ORDERED; i++) {
        values[i] = i + 1;
        struct request *r = make(v, NULL, &values[i]);
        r->respond = note_order;
        submit_now(r);
        if (i == 0)
            test_gate_wait(&test_gate_entered, 1);
    }
    test_gate_wait(&late_done, ORDERED - 1);
    assert_int_equal(test_gate_answered, 0);
    test_gate_set(true);
    test_gate_wait(&test_gate_answered, ORDERED);
    for (int32_t i = 0; i < ORDERED; i++)
        assert_int_equal(order[i], i + 1);
    finish(v);
}

static void run_loop(void *arg)
{
    loop_run(arg);
}

/* MC-120, MC-122, PB-85, PB-88, PB-104: a time-out holds while the only instance is busy. Of the
 * two requests only the one that waits has one: the other may take as long as it likes to get
 * there. */
static void time_out_while_busy(void **state)
{
    (void)state;
    struct loop *house;
    struct thread *thread;
    assert_null(loop_new(&house));
    assert_null(thread_start("house", run_loop, house, &thread));
    struct plugin_backend backend = test_version_backend(echo);
    struct serve_version *v = test_version_new(&backend, impatient, house);
    static const int32_t value = 7;
    test_gate_set(false);
    submit_now(make(v, NULL, &value));
    test_gate_wait(&test_gate_entered, 1);
    struct request *waits = make(v, NULL, &value);
    waits->priority = 2;
    submit_now(waits);
    test_gate_wait(&test_gate_failed, 1);
    assert_int_equal(last_status, STATUS_UNAVAILABLE);
    assert_string_equal(last_message, "Request timeout expired");
    struct stats_sums sums;
    stats_sum(v->stats, &sums);
    assert_int_equal(sums.failures[STATS_REJECTED], 1);
    assert_int_equal(sums.fail.count, 1);
    test_gate_set(true);
    test_gate_wait(&test_gate_answered, 2);
    finish(v);
    loop_stop(house);
    thread_join(thread);
    loop_free(house);
}

/* A loop that submits requests, BURST of them in one turn, and stops when so many are answered. */
#define BURST 150
struct looped {
    struct loop *loop;
    struct submitter submitter;
    struct loop_timer begin;
    struct serve_version *version;
    unsigned most, back;
    bool on_loop;
};

static struct looped looped;

static void on_loop_answer(struct response *r, void *owner)
{
    assert_null(r->error);
    assert_memory_equal(r->outputs->data, owner, 4);
    looped.on_loop = looped.on_loop && loop_current() == looped.loop;
    response_free(r);
    if (++looped.back == looped.most)
        loop_stop(looped.loop);
}

static void submit_burst(struct loop_timer *t)
{
    (void)t;
    for (int i = 0; i < BURST; i++) {
        values[i] = i;
        struct request *r = make(looped.version, looped.loop, &values[i]);
        r->respond = on_loop_answer;
        submit_later(&looped.submitter, r);
    }
}

static TRITONSERVER_Error *quick_echo(TRITONBACKEND_ModelInstance *instance,
                                      TRITONBACKEND_Request **requests, uint32_t count)
{
    test_version_was_quick(looped.version);
    return echo(instance, requests, count);
}

/* Runs a loop on which `submit` is called, until `most` requests are answered. */
static void run_looped(TRITONSERVER_Error *(*execute)(TRITONBACKEND_ModelInstance *,
                                                      TRITONBACKEND_Request **, uint32_t),
                       bool may_inline, void (*submit)(struct loop_timer *t), unsigned most)
{
    static struct plugin_backend backend; /* the version uses it until it ends */
    backend = test_version_backend(execute);
    backend.inline_ok = may_inline;
    looped = (struct looped){.on_loop = true, .begin.due = submit, .most = most};
    assert_null(loop_new(&looped.loop));
    looped.version = test_version_new(&backend, one_instance, looped.loop);
    assert_int_equal(looped.version->inline_ok, may_inline);
    submit_init(&looped.submitter, looped.loop);
    loop_timer_set(looped.loop, &looped.begin, loop_now(looped.loop));
    loop_run(looped.loop);
    assert_in_range(looped.back, 1, most);
}

static void end_looped(void)
{
    finish(looped.version);
    loop_free(looped.loop);
}

static void run_burst(bool may_inline)
{
    run_looped(quick_echo, may_inline, submit_burst, BURST);
    assert_int_equal(looped.back, BURST);
    assert_true(looped.on_loop);
    assert_int_equal(looped.version->instances.runners[0]->has_thread, !may_inline);
    end_looped();
}

static void loop_with_instance_threads(void **state)
{
    (void)state;
    run_burst(false);
}

static void loop_inline(void **state)
{
    (void)state;
    run_burst(true);
}

static bool never_inline(TRITONBACKEND_ModelInstance *instance)
{
    (void)instance;
    return false;
}

/* A backend that is quick in general knows of an instance that is not. */
static void an_instance_may_refuse_to_run_inline(void **state)
{
    (void)state;
    struct plugin_backend backend = test_version_backend(echo);
    backend.inline_ok = true;
    struct serve_version *v = test_version_new(&backend, two_instances, NULL);
    assert_true(v->inline_ok);
    finish(v);
    backend.entries.instance_inline = never_inline;
    v = test_version_new(&backend, two_instances, NULL);
    assert_false(v->inline_ok);
    finish(v);
}

/* Whoever stops the server asks how many requests a model has, also while its strategy does not
 * return. */
static void requests_are_counted_while_the_lock_is_held(void **state)
{
    (void)state;
    struct plugin_backend backend = test_version_backend(echo);
    struct serve_version *v = test_version_new(&backend, one_instance, NULL);
    version_pin(v);
    mutex_lock(&v->lock);
    assert_int_equal(version_requests(v), 1);
    mutex_unlock(&v->lock);
    version_unpin(v);
    finish(v);
}

/* A loop must not wait for a batch to fill. */
static void what_waits_for_others_is_not_run_inline(void **state)
{
    (void)state;
    static const char delayed[] = "name: 'm' backend: 'b' max_batch_size: 8 " IO
                                  "dynamic_batching { max_queue_delay_microseconds: 100 }";
    static const struct {
        const char *config;
        bool may_inline;
    } cases[] = {{one_instance, true}, {short_queue, true}, {delayed, false}};
    struct plugin_backend backend = test_version_backend(echo);
    backend.inline_ok = true;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct serve_version *v = test_version_new(&backend, cases[i].config, NULL);
        assert_int_equal(v->inline_ok, cases[i].may_inline);
        version_drain(v);
        version_free(v);
    }
}

/* Sleeps for every request: what no backend that asks to run inline may do. */
static TRITONSERVER_Error *sleeper(TRITONBACKEND_ModelInstance *instance,
                                   TRITONBACKEND_Request **requests, uint32_t count)
{
    static struct mutex never_lock = MUTEX_INIT(MUTEX_RANK_LEAF);
    static struct mutex_cond never;
    mutex_cond_init(&never);
    mutex_lock(&never_lock);
    while (mutex_cond_wait_until(&never, &never_lock, clock_now_ns() + TIME_US(200)))
        ;
    mutex_unlock(&never_lock);
    mutex_cond_fini(&never);
    return echo(instance, requests, count);
}

/* A backend that blocks the loop is moved to an instance thread within a few requests; nothing
 * is lost on the way. */
static void a_blocking_backend_is_demoted(void **state)
{
    (void)state;
    run_looped(sleeper, true, submit_burst, BURST);
    assert_int_equal(looped.back, BURST);
    assert_false(looped.version->inline_ok);
    assert_true(looped.version->instances.runners[0]->has_thread);
    end_looped();
}

/* One run in `each` takes so much of the processor. */
static struct {
    unsigned each, runs;
    time_ns takes;
} spin;

static TRITONSERVER_Error *slow_now_and_then(TRITONBACKEND_ModelInstance *instance,
                                             TRITONBACKEND_Request **requests, uint32_t count)
{
    time_ns until = clock_thread_ns() + spin.takes;
    while (spin.runs % spin.each == 0 && clock_thread_ns() < until)
        ;
    spin.runs++;
    return echo(instance, requests, count);
}

static void submit_next(struct loop_timer *t);

static void answer_and_go_on(struct response *r, void *owner)
{
    on_loop_answer(r, owner);
    loop_timer_set(looped.loop, &looped.begin, loop_now(looped.loop));
}

static void submit_next(struct loop_timer *t)
{
    (void)t;
    if (!looped.version->inline_ok || looped.back == looped.most) {
        loop_stop(looped.loop);
        return;
    }
    values[0] = 7;
    struct request *r = make(looped.version, looped.loop, &values[0]);
    r->respond = answer_and_go_on;
    submit_later(&looped.submitter, r);
}

/* Returns true if such a model still runs on loops after so many requests, one after the other. */
static bool stays_on_loops(unsigned each, time_ns takes, unsigned requests)
{
    spin.each = each;
    spin.takes = takes;
    spin.runs = 0;
    run_looped(slow_now_and_then, true, submit_next, requests);
    bool stays = looped.version->inline_ok;
    end_looped();
    return stays;
}

/* The kernel may take the core away in the first run, which then seems long: as many are watched
 * after it as are as long together, and half of them are needed to judge. */
#define SOONER_OR_LATER 50000u

/* What counts is how long others wait on average: not that a few runs are a little longer, nor that
 * long ones are seldom. */
static void a_backend_that_is_slow_on_average_is_demoted(void **state)
{
    (void)state;
    assert_true(stays_on_loops(8, 2 * RUNNER_INLINE_NS, BURST));
    assert_false(stays_on_loops(1, 2 * RUNNER_INLINE_NS, SOONER_OR_LATER));
    assert_false(stays_on_loops(30, 200 * RUNNER_INLINE_NS, SOONER_OR_LATER));
}

/* Each run queues another request, as another loop would, until the first answer is there. */
#define FED_MOST 20000u
static unsigned fed;
static unsigned fed_before_an_answer;

static TRITONSERVER_Error *fed_by_others(TRITONBACKEND_ModelInstance *instance,
                                         TRITONBACKEND_Request **requests, uint32_t count)
{
    static const int32_t value = 8;
    mutex_lock(&test_gate_lock);
    bool more = fed_before_an_answer == 0 && fed < FED_MOST;
    fed += more;
    mutex_unlock(&test_gate_lock);
    test_version_was_quick(looped.version);
    if (more)
        submit_now(make(looped.version, NULL, &value));
    return echo(instance, requests, count);
}

static void first_of_those_fed(struct response *r, void *owner)
{
    mutex_lock(&test_gate_lock);
    fed_before_an_answer = fed;
    mutex_unlock(&test_gate_lock);
    on_answer(r, owner);
    loop_stop(looped.loop);
}

static void submit_one(struct loop_timer *t)
{
    (void)t;
    values[0] = 1;
    struct request *r = make(looped.version, looped.loop, &values[0]);
    r->respond = first_of_those_fed;
    submit_later(&looped.submitter, r);
}

/* A loop that runs a model itself comes back to its connections, and its answers go out, however
 * much others queue meanwhile. */
static void an_inline_turn_ends(void **state)
{
    (void)state;
    struct plugin_backend backend = test_version_backend(fed_by_others);
    backend.inline_ok = true;
    looped = (struct looped){.begin.due = submit_one};
    assert_null(loop_new(&looped.loop));
    looped.version = test_version_new(&backend, one_instance, looped.loop);
    submit_init(&looped.submitter, looped.loop);
    loop_timer_set(looped.loop, &looped.begin, loop_now(looped.loop));
    loop_run(looped.loop);
    assert_in_range(fed_before_an_answer, 1, FED_MOST - 1);
    mutex_lock(&test_gate_lock);
    unsigned asked = fed + 1;
    mutex_unlock(&test_gate_lock);
    test_gate_wait(&test_gate_answered, asked);
    finish(looped.version);
    loop_free(looped.loop);
}

/* Who hears of an answer submits a request of its own at once, and then a step of an ensemble. */
static size_t waiting[2];

static void asks_and_steps(struct response *r, void *owner)
{
    struct serve_version *v = version_of(r->request);
    const struct scheduler *s = v->scheduler;
    static const int32_t value = 9;
    submit_now(make(v, NULL, &value));
    waiting[0] = s->ops.depth(s);
    submit_step(make(v, NULL, &value));
    waiting[1] = s->ops.depth(s);
    on_answer(r, owner);
}

/* Steps that the answers of a turn lead to are submitted together when all of them were heard,
 * also behind a request that did not wait for that. */
static void steps_of_a_turn_are_gathered(void **state)
{
    (void)state;
    struct plugin_backend backend = test_version_backend(echo);
    struct serve_version *v = test_version_new(&backend, one_instance, NULL);
    static const int32_t value = 9;
    struct request *r = make(v, NULL, &value);
    r->respond = asks_and_steps;
    submit_now(r);
    test_gate_wait(&test_gate_answered, 3);
    assert_int_equal(waiting[0], 1); /* the only instance is in its turn */
    assert_int_equal(waiting[1], 1);
    finish(v);
}

/* Who hears of an answer ends a turn of its own, in which it hears of another. */
static size_t waiting_within[2];

static void steps(struct response *r, void *owner)
{
    submit_step(make(version_of(r->request), NULL, owner));
    on_answer(r, owner);
}

static void turns_and_steps(struct response *r, void *owner)
{
    struct serve_version *v = version_of(r->request);
    const struct scheduler *s = v->scheduler;
    struct submit_turn turn;
    struct request *within = make(v, NULL, owner);
    struct response *a = response_new(within);
    struct tensor_output *o = response_add_output(a, "o", DATATYPE_INT32, (int64_t[]){1}, 1);
    assert_null(response_output_buffer(a, o, 4));
    memcpy(o->data, owner, 4);
    within->respond = steps;
    submit_turn_begin(&turn);
    response_send(a, RESPONSE_FINAL, NULL);
    request_release(within);
    submit_turn_end(&turn);
    waiting_within[0] = s->ops.depth(s);
    submit_step(make(v, NULL, owner));
    waiting_within[1] = s->ops.depth(s);
    on_answer(r, owner);
}

/* Steps of a turn that ends within one that gathers join those of that one, and it goes on
 * gathering. */
static void steps_of_a_turn_within_are_gathered(void **state)
{
    (void)state;
    struct plugin_backend backend = test_version_backend(echo);
    struct serve_version *v = test_version_new(&backend, one_instance, NULL);
    static const int32_t value = 10;
    struct request *r = make(v, NULL, &value);
    r->respond = turns_and_steps;
    submit_now(r);
    test_gate_wait(&test_gate_answered, 4);
    assert_int_equal(waiting_within[0], 0);
    assert_int_equal(waiting_within[1], 0);
    finish(v);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(many_threads_two_instances, reset),
        cmocka_unit_test_setup(both_instances_run_at_once, reset),
        cmocka_unit_test_setup(execute_error_answers_every_request, reset),
        cmocka_unit_test_setup(full_queue_refuses_at_once, reset),
        cmocka_unit_test_setup(answers_keep_the_order, reset),
        cmocka_unit_test_setup(time_out_while_busy, reset),
        cmocka_unit_test_setup(loop_with_instance_threads, reset),
        cmocka_unit_test_setup(loop_inline, reset),
        cmocka_unit_test_setup(an_instance_may_refuse_to_run_inline, reset),
        cmocka_unit_test_setup(requests_are_counted_while_the_lock_is_held, reset),
        cmocka_unit_test_setup(what_waits_for_others_is_not_run_inline, reset),
        cmocka_unit_test_setup(a_blocking_backend_is_demoted, reset),
        cmocka_unit_test_setup(a_backend_that_is_slow_on_average_is_demoted, reset),
        cmocka_unit_test_setup(an_inline_turn_ends, reset),
        cmocka_unit_test_setup(steps_of_a_turn_are_gathered, reset),
        cmocka_unit_test_setup(steps_of_a_turn_within_are_gathered, reset),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
