/* The thread of an instance: nothing that is queued at an awkward moment is left waiting. */
#include "serve/runner.h"

#include "infer/request.h"
#include "infer/response.h"
#include "limits/limits.h"
#include "model/config.h"
#include "os/loop.h"
#include "os/thread.h"
#include "serve/scheduler.h"
#include "serve/submit.h"
#include "serve/version.h"
#include "support/test_gate.h"
#include "support/test_version.h"
#include "support/unit.h"

#include <sys/eventfd.h>
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

static struct serve_version *version;

static struct request *make(request_respond_fn respond)
{
    static const int32_t value = 7;
    return test_gate_request(version, NULL, respond, &value);
}

static TRITONSERVER_Error *answer_all(TRITONBACKEND_ModelInstance *instance,
                                      TRITONBACKEND_Request **requests, uint32_t count)
{
    (void)instance;
    test_gate_pass(count);
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
    test_gate_on_answer(r, owner);
    submit_now(make(test_gate_on_answer));
}

static void begin(struct plugin_backend *backend, const char *config)
{
    test_gate_begin(false);
    version = test_version_new(backend, config, NULL);
}

static void end(void)
{
    version_drain(version);
    version_free(version);
    test_gate_end();
}

static void queued_while_dropped_ones_are_answered(void **state)
{
    (void)state;
    struct plugin_backend backend = test_version_backend(answer_all);
    begin(&backend, one_instance);
    submit_now(make(test_gate_on_answer));
    test_gate_wait(&test_gate_entered, 1);
    struct request *cancelled = make(ask_again);
    atomic_store(&cancelled->cancelled, true);
    submit_now(cancelled);
    test_gate_set(true);
    test_gate_wait(&test_gate_answered, 3);
    end();
}

/* A request whose client is gone before it is queued is put aside by whoever looks at the queue:
 * it is answered all the same. */
static void cancelled_before_it_is_queued(void **state)
{
    (void)state;
    struct plugin_backend backend = test_version_backend(answer_all);
    begin(&backend, batching);
    test_gate_set(true);
    struct request *cancelled = make(test_gate_on_answer);
    atomic_store(&cancelled->cancelled, true);
    submit_now(cancelled);
    test_gate_wait(&test_gate_answered, 1);
    end();
}

/* The second request of a pair is over only once the first one was answered. */
static TRITONSERVER_Error *wait_for_the_first(TRITONBACKEND_ModelInstance *instance,
                                              TRITONBACKEND_Request **requests, uint32_t count)
{
    static unsigned executions;
    if (++executions % 3 == 0)
        test_gate_wait(&test_gate_answered, executions - 1);
    return answer_all(instance, requests, count);
}

/* Nobody knows how long the next run takes, so what is finished does not wait for it. */
static void answers_do_not_wait_for_the_next_run(void **state)
{
    (void)state;
    struct plugin_backend backend = test_version_backend(wait_for_the_first);
    begin(&backend, one_instance);
    for (unsigned i = 0; i < 20; i++) {
        test_gate_set(false);
        submit_now(make(test_gate_on_answer));
        test_gate_wait(&test_gate_entered, 3 * i + 1);
        submit_now(make(test_gate_on_answer));
        submit_now(make(test_gate_on_answer));
        test_gate_set(true);
        test_gate_wait(&test_gate_answered, 3 * i + 3);
    }
    end();
}

/* Counters of the runner's thread, read when all is answered. */
static bool answered_together; /* an answer came when a later request had been executed already */
static unsigned runs;
static unsigned slow_each; /* one run in so many is longer than quick ones may be; 0 = none */

static void look_what_ran_before(struct response *r, void *owner)
{
    answered_together |= test_gate_entered > test_gate_answered + 1;
    test_gate_on_answer(r, owner);
}

/* The runs before this one were quick, on a busy machine, too. On the runner's thread. */
static void quick_so_far(void)
{
    version->instances.runners[0]->quick_runs = RUNNER_QUICK_RUNS;
}

static TRITONSERVER_Error *take_a_while(TRITONBACKEND_ModelInstance *instance,
                                        TRITONBACKEND_Request **requests, uint32_t count)
{
    time_ns end = clock_now_ns() + RUNNER_INLINE_NS;
    bool slow = slow_each && ++runs % slow_each == 0;
    if (!slow_each)
        quick_so_far();
    while (slow && clock_now_ns() <= end)
        ;
    return answer_all(instance, requests, count);
}

/* Asks in bursts until two answers came together, or so many times. */
static void ask_in_bursts(unsigned bursts)
{
    unsigned asked = 0;
    answered_together = false;
    for (unsigned i = 0; i < bursts && !answered_together; i++) {
        for (unsigned n = 0; n < 8; n++, asked++)
            submit_now(make(look_what_ran_before));
        test_gate_wait(&test_gate_answered, asked);
    }
}

static void begin_quick(struct plugin_backend *backend, bool promised)
{
    backend->inline_ok = promised;
    begin(backend, one_instance);
    test_gate_set(true);
}

/* The backend promised to be quick, and is: loops are woken for several answers. */
static void answers_of_quick_models_come_together(void **state)
{
    (void)state;
    struct plugin_backend backend = test_version_backend(take_a_while);
    begin_quick(&backend, true);
    ask_in_bursts(10000);
    assert_true(answered_together);
    end();
}

static void a_promise_is_needed_for_it(void **state)
{
    (void)state;
    struct plugin_backend backend = test_version_backend(take_a_while);
    begin_quick(&backend, false);
    ask_in_bursts(200);
    assert_false(answered_together);
    end();
}

static int silent_bell(TRITONBACKEND_ModelInstance *instance)
{
    assert_non_null(instance);
    return eventfd(0, EFD_CLOEXEC);
}

/* A backend that rings a bell promised that it begins without blocking, and no more. */
static void a_bell_is_no_promise(void **state)
{
    (void)state;
    struct plugin_backend backend = test_version_backend(take_a_while);
    backend.entries.bell = silent_bell;
    begin_quick(&backend, false);
    ask_in_bursts(200);
    assert_false(answered_together);
    end();
}

static void answers_wait_for_no_model_that_is_slow_now_and_then(void **state)
{
    (void)state;
    struct plugin_backend backend = test_version_backend(take_a_while);
    begin_quick(&backend, true);
    slow_each = RUNNER_QUICK_RUNS;
    ask_in_bursts(200);
    slow_each = 0;
    assert_false(answered_together);
    end();
}

static bool answers_waited; /* a request with much input was executed while an answer was kept */

static TRITONSERVER_Error *look_who_waits(TRITONBACKEND_ModelInstance *instance,
                                          TRITONBACKEND_Request **requests, uint32_t count)
{
    const struct request *r = request_from(requests[0]);
    if (r->inputs[0].byte_size > RUNNER_INLINE_BYTES)
        answers_waited |= test_gate_answered < test_gate_entered;
    return answer_all(instance, requests, count);
}

/* How long a run takes follows from its input, too: for one with much of it nothing waits. */
static void answers_do_not_wait_for_a_large_request(void **state)
{
    (void)state;
    unsigned asked = 0;
    struct plugin_backend backend = test_version_backend(look_who_waits);
    begin_quick(&backend, true);
    for (unsigned burst = 0; burst < 2000; burst++) {
        for (unsigned n = 0; n < 8; n++, asked++) {
            struct request *r = make(test_gate_on_answer);
            if (n == 7) /* nobody reads them */
                r->inputs[0].byte_size = RUNNER_INLINE_BYTES + 1;
            submit_now(r);
        }
        test_gate_wait(&test_gate_answered, asked);
    }
    assert_false(answers_waited);
    end();
}

static uint64_t process_cpu_ns(void)
{
    struct timespec t;
    assert_int_equal(clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t), 0);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* A thread that has nothing to do but wait for a batch to become due sleeps, also when it could
 * have retired long ago. */
static void a_late_batch_is_waited_for_asleep(void **state)
{
    (void)state;
    struct plugin_backend backend = test_version_backend(answer_all);
    begin(&backend, slow_batching);
    version->instances.runners[0]->retire_after = 0;
    test_gate_set(true);
    uint64_t before = process_cpu_ns();
    submit_now(make(test_gate_on_answer));
    test_gate_wait(&test_gate_answered, 1);
    assert_true(process_cpu_ns() - before < TIME_MS(200));
    end();
}

/* -- Answers to clients, and what is taken before they go out -- */

#define TRIES 1000u

static struct loop *house;
static struct thread *of_house;
static time_ns takes;            /* what a run takes at least before its answer */
static size_t waited[3 * TRIES]; /* requests in the queue when an answer was delivered */

static void run_house(void *arg)
{
    (void)arg;
    loop_run(house);
}

static void look_what_waits(struct response *r, void *owner)
{
    waited[test_gate_answered] = version->scheduler->ops.depth(version->scheduler);
    test_gate_on_answer(r, owner);
}

static struct request *from_house(void)
{
    static const int32_t value = 7;
    return test_gate_request(version, house, look_what_waits, &value);
}

static void spend(time_ns time)
{
    for (time_ns end = clock_now_ns() + time; clock_now_ns() < end;)
        continue;
}

/* Execute returns only once its answer has been delivered. */
static TRITONSERVER_Error *answer_and_stay(TRITONBACKEND_ModelInstance *instance,
                                           TRITONBACKEND_Request **requests, uint32_t count)
{
    spend(takes);
    TRITONSERVER_Error *e = answer_all(instance, requests, count);
    test_gate_wait(&test_gate_answered, test_gate_entered);
    return e;
}

static void begin_house(void)
{
    assert_null(loop_new(&house));
    assert_null(thread_start("house", run_house, NULL, &of_house));
}

static void begin_at_house(struct plugin_backend *backend, bool answers_last, const char *config)
{
    backend->answers_last = answers_last;
    begin(backend, config);
    begin_house();
}

static void end_at_house(void)
{
    end();
    loop_stop(house);
    thread_join(of_house);
    loop_free(house);
}

/* Two requests, the second of which comes while the first one is executed. Returns how many waited
 * when the answer of the first one was delivered. */
static size_t waiting_at_the_first_answer(void)
{
    unsigned before = test_gate_answered;
    test_gate_set(false);
    submit_now(from_house());
    test_gate_wait(&test_gate_entered, before + 1);
    submit_now(from_house());
    test_gate_set(true);
    test_gate_wait(&test_gate_answered, before + 2);
    return waited[before];
}

static void waiting_behind_a_long_run(bool answers_last, size_t expected)
{
    struct plugin_backend backend = test_version_backend(answer_and_stay);
    begin_at_house(&backend, answers_last, one_instance);
    takes = RUNNER_AHEAD_NS;
    assert_int_equal(waiting_at_the_first_answer(), expected);
    end_at_house();
}

/* Whoever gets an answer finds the next batch closed. */
static void the_next_batch_is_taken_before_answers_go_out(void **state)
{
    (void)state;
    waiting_behind_a_long_run(true, 0);
}

/* Another instance may be free long before an Execute returns that does something behind its
 * answers, or waits for what it has asked the server. */
static void the_next_batch_is_not_taken_without_a_promise(void **state)
{
    (void)state;
    waiting_behind_a_long_run(false, 1);
}

/* Of short runs, a batch that more requests can join costs less. */
static void the_next_batch_of_short_runs_stays_open(void **state)
{
    (void)state;
    struct plugin_backend backend = test_version_backend(answer_and_stay);
    size_t waiting = 0;
    begin_at_house(&backend, true, one_instance);
    takes = 0;
    for (unsigned tries = 0; tries < TRIES && !waiting; tries++)
        waiting = waiting_at_the_first_answer(); /* 0 if it was held up before its answer */
    assert_int_equal(waiting, 1);
    end_at_house();
}

/* The second run waits for two answers: the first run's, and of a request that nobody wants. */
static TRITONSERVER_Error *answer_after_others(TRITONBACKEND_ModelInstance *instance,
                                               TRITONBACKEND_Request **requests, uint32_t count)
{
    if (test_gate_entered == 1)
        test_gate_wait(&test_gate_answered, 2);
    return answer_all(instance, requests, count);
}

/* What the queue gave up when the next batch was taken does not wait for that batch. */
static void what_is_given_up_meanwhile_is_answered(void **state)
{
    (void)state;
    struct plugin_backend backend = test_version_backend(answer_after_others);
    begin_at_house(&backend, true, one_instance);
    submit_now(from_house());
    test_gate_wait(&test_gate_entered, 1);
    struct request *given_up = from_house();
    submit_now(given_up);
    atomic_store(&given_up->cancelled, true);
    submit_now(from_house());
    spend(RUNNER_AHEAD_NS);
    test_gate_set(true);
    test_gate_wait(&test_gate_answered, 3);
    end_at_house();
}

static unsigned executions;
static unsigned
    leaves; /* the execution that answers nothing; 0 = the first one of a quick runner */

/* Who answers for an earlier execution goes on once that is there. */
static TRITONSERVER_Error *answer_one_behind(TRITONBACKEND_ModelInstance *instance,
                                             TRITONBACKEND_Request **requests, uint32_t count)
{
    static struct request *behind;
    executions++;
    if (!leaves && version->instances.runners[0]->quick_runs > RUNNER_QUICK_RUNS)
        leaves = executions;
    else if (!leaves)
        quick_so_far();
    if (executions == leaves) {
        test_gate_pass(count);
        behind = request_take(requests[0]);
        return NULL;
    }
    if (leaves && executions == leaves + 1) {
        response_send(response_new(behind), RESPONSE_FINAL, NULL);
        request_release(behind);
        test_gate_wait(&test_gate_answered, leaves);
    }
    return answer_all(instance, requests, count);
}

static struct request *in_process(void)
{
    return make(test_gate_on_answer);
}

/* Two more requests come while one is left. */
static void leave_one_behind(struct request *(*maker)(void))
{
    test_gate_set(false);
    submit_now(maker());
    test_gate_wait(&test_gate_entered, leaves);
    submit_now(from_house());
    submit_now(from_house());
    test_gate_set(true);
    test_gate_wait(&test_gate_answered, leaves + 2);
}

/* A backend may answer requests of an earlier run within a later one. */
static void late_answers_do_not_wait_for_a_later_run(void **state)
{
    (void)state;
    struct request *(*const makers[])(void) = {from_house, in_process};
    for (size_t i = 0; i < 2; i++) {
        struct plugin_backend backend = test_version_backend(answer_one_behind);
        begin_at_house(&backend, true, batching);
        executions = 0;
        leaves = 1;
        leave_one_behind(makers[i]);
        end_at_house();
    }
}

/* Of quick runs answers may wait for the next one. */
static void nor_for_one_that_is_known_as_quick(void **state)
{
    (void)state;
    struct plugin_backend backend = test_version_backend(answer_one_behind);
    backend.inline_ok = true;
    begin_at_house(&backend, true, one_instance);
    test_gate_set(true);
    executions = 0;
    leaves = 0;
    for (unsigned ran = 1; !leaves; ran++) {
        assert_in_range(ran, 1, 2 * TRIES);
        submit_now(from_house());
        test_gate_wait(&test_gate_entered, ran);
        test_gate_wait(&test_gate_answered, leaves ? 0 : ran);
    }
    submit_now(from_house());
    test_gate_wait(&test_gate_answered, leaves + 1);
    end_at_house();
}

static void nor_where_a_limit_waits_for_it(void **state)
{
    (void)state;
    static const char limited[] =
        "name: 'm' backend: 'b' input [{ name: 'i' data_type: TYPE_INT32 dims: [ 1 ] }] "
        "output [{ name: 'o' data_type: TYPE_INT32 dims: [ 1 ] }] instance_group [{ kind: KIND_CPU "
        "count: 1 rate_limiter { resources [{ name: 'r' global: true count: 1 }] } }]";
    struct plugin_backend backend = test_version_backend(answer_one_behind);
    struct limits *limits = limits_new(NULL, 0);
    begin_house();
    test_gate_begin(false);
    version = test_version_made(&backend, limited, NULL);
    limits_wrap(limits, version);
    unit_succeeds(version_start(version));
    executions = 0;
    leaves = 1;
    leave_one_behind(from_house);
    end_at_house();
    limits_free(limits);
}

/* Answers a batch of two, and goes on once the client's answer is there: the second one. */
static TRITONSERVER_Error *answer_both_and_stay(TRITONBACKEND_ModelInstance *instance,
                                                TRITONBACKEND_Request **requests, uint32_t count)
{
    TRITONSERVER_Error *e = answer_all(instance, requests, count);
    if (count == 2)
        test_gate_wait(&test_gate_answered, 2);
    return e;
}

/* Callbacks wait for the end of a run, since they may submit more. Clients do not wait with them. */
static void answers_to_clients_do_not_wait_for_callbacks(void **state)
{
    (void)state;
    for (unsigned first = 0; first < 2; first++) {
        struct plugin_backend backend = test_version_backend(answer_both_and_stay);
        begin_at_house(&backend, true, batching);
        submit_now(from_house());
        test_gate_wait(&test_gate_entered, 1);
        submit_now(first ? from_house() : in_process());
        submit_now(first ? in_process() : from_house());
        test_gate_set(true);
        test_gate_wait(&test_gate_answered, 3);
        end_at_house();
    }
}

UNIT_MAIN(UNIT(answers_of_quick_models_come_together), UNIT(a_promise_is_needed_for_it),
          UNIT(answers_wait_for_no_model_that_is_slow_now_and_then),
          UNIT(answers_do_not_wait_for_a_large_request),
          UNIT(queued_while_dropped_ones_are_answered), UNIT(cancelled_before_it_is_queued),
          UNIT(answers_do_not_wait_for_the_next_run),
          UNIT(the_next_batch_is_taken_before_answers_go_out),
          UNIT(the_next_batch_is_not_taken_without_a_promise),
          UNIT(the_next_batch_of_short_runs_stays_open),
          UNIT(what_is_given_up_meanwhile_is_answered),
          UNIT(late_answers_do_not_wait_for_a_later_run), UNIT(nor_for_one_that_is_known_as_quick),
          UNIT(nor_where_a_limit_waits_for_it), UNIT(answers_to_clients_do_not_wait_for_callbacks),
          UNIT(a_bell_is_no_promise), UNIT(a_late_batch_is_waited_for_asleep))
