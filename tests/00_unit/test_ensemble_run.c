/* ensembles/ensemble_run: what waits for a step's place gets it, however many wait and whatever
 * becomes of them. */
#include "ensembles/ensemble_run.h"

#include "base/mem.h"
#include "infer/request.h"
#include "infer/response.h"
#include "os/loop.h"
#include "serve/submit.h"
#include "serve/table.h"
#include "serve/version.h"
#include "support/test_gate.h"
#include "support/test_version.h"
#include "support/unit.h"

#include <stdio.h>
#include <string.h>

#define IO                                                                                    \
    "input [{ name: 'i' data_type: TYPE_INT32 dims: [ 1 ] }] output [{ name: 'o' data_type: " \
    "TYPE_INT32 dims: [ 1 ] }] "
#define PARKED   20000u
#define GIVEN_UP 10u

static const char sequence[] = "name: 's' backend: 'b' max_batch_size: 1 " IO
                               "sequence_batching { } instance_group [{ count: 1 kind: KIND_CPU }]";
static const char batching[] = "name: 's' backend: 'b' max_batch_size: 1 " IO
                               "dynamic_batching { } instance_group [{ count: 1 kind: KIND_CPU }]";
#define LIMITED(model)                                                          \
    "name: 'e' platform: 'ensemble' max_batch_size: 1 " IO                      \
    "ensemble_scheduling { max_inflight_requests: 1 step { model_name: '" model \
    "' model_version: -1 "                                                      \
    "input_map { key: 'i' value: 'i' } output_map { key: 'o' value: 'o' } } }"
static const char limited[] = LIMITED("s");
static const char limited_nested[] = LIMITED("e");

static const char failing[] =
    "name: 'e' platform: 'ensemble' max_batch_size: 1 input [{ name: 'i' data_type: TYPE_INT32 "
    "dims: [ 1 ] }] output [{ name: 'o' data_type: TYPE_INT32 dims: [ 1 ] }, { name: 'p' "
    "data_type: TYPE_INT32 dims: [ 1 ] }] ensemble_scheduling { max_inflight_requests: 1 step [{ "
    "model_name: 's' model_version: -1 input_map { key: 'i' value: 'i' } output_map { key: 'o' "
    "value: 'o' } }, { model_name: 'f' model_version: -1 input_map { key: 'i' value: 'i' } "
    "output_map { key: 'o' value: 'p' } }] }";
#define UNLIMITED(more)                                                                    \
    "name: 'e' platform: 'ensemble' max_batch_size: 1 " IO more                            \
    "ensemble_scheduling { step { model_name: 's' model_version: -1 input_map { key: 'i' " \
    "value: 'i' } output_map { key: 'o' value: 'o' } } }"

static uint64_t priority; /* of what was executed last */
static uint64_t timeout_us;
static char named[16];

static bool forgets; /* `other` answers without its output */
static char said[256];

static const char forgotten[] =
    "name: 'e' platform: 'ensemble' max_batch_size: 1 " IO
    "ensemble_scheduling { step [{ model_name: 'f' model_version: -1 input_map { key: 'i' value: "
    "'i' } output_map { key: 'o' value: 'x' } }, { model_name: 's' model_version: -1 input_map { "
    "key: 'i' value: 'x' } output_map { key: 'o' value: 'o' } }] }";

static struct plugin_backend backend;
static struct serve_table *table;
static struct plugin_backend failing_backend;
static struct serve_version *step;
static struct serve_version *other; /* whose executions fail */
static struct serve_version *ensemble;

static TRITONSERVER_Error *execute(TRITONBACKEND_ModelInstance *instance,
                                   TRITONBACKEND_Request **requests, uint32_t count)
{
    (void)instance;
    test_gate_pass(count);
    for (uint32_t i = 0; i < count; i++) {
        struct request *r = request_take(requests[i]);
        priority = r->priority;
        timeout_us = r->timeout_us;
        snprintf(named, sizeof(named), "%s", r->id);
        struct response *a = response_new(r);
        struct tensor_output *o = response_add_output(a, "o", DATATYPE_INT32, (int64_t[]){1, 1}, 2);
        unit_succeeds(response_output_buffer(a, o, 4));
        *(int32_t *)o->data = 7;
        response_send(a, RESPONSE_FINAL, NULL);
        request_release(r);
    }
    return NULL;
}

static TRITONSERVER_Error *refuse(TRITONBACKEND_ModelInstance *instance,
                                  TRITONBACKEND_Request **requests, uint32_t count)
{
    (void)instance;
    for (uint32_t i = 0; forgets && i < count; i++) {
        struct request *r = request_take(requests[i]);
        response_send(response_new(r), RESPONSE_FINAL, NULL);
        request_release(r);
    }
    return forgets ? NULL : (TRITONSERVER_Error *)err_new(STATUS_INTERNAL, "it fails");
}

static struct request *make_for(struct serve_version *v, struct loop *home, uint64_t id)
{
    static const int32_t value = 7;
    struct request *r = test_gate_request(v, home, test_gate_on_answer, &value);
    r->correlation_id = id;
    r->flags = id ? REQUEST_SEQUENCE_START | REQUEST_SEQUENCE_END : 0;
    return r;
}

static struct request *make(uint64_t id)
{
    return make_for(ensemble, NULL, id);
}

/* An ensemble around `ensemble`, with a limit. */
static struct serve_version *outer;

static struct table_model model_of(const char *name, struct serve_version *v)
{
    struct table_entry *entries = mem_zalloc(sizeof(*entries));
    entries[0] = (struct table_entry){1, TABLE_READY, mem_strdup(""), v};
    return (struct table_model){.name = mem_strdup(name), .entries = entries, .entry_count = 1};
}

static void publish_steps(void)
{
    struct table_model *models = mem_zalloc(3 * sizeof(*models));
    models[0] = model_of("f", other);
    models[1] = model_of("s", step);
    if (ensemble)
        models[2] = model_of("e", ensemble);
    table_publish(table, models, ensemble ? 3 : 2);
}

static struct serve_version *ensemble_of(const char *config)
{
    struct serve_version *v;
    unit_succeeds(version_new("e", 1, test_version_config(config), NULL, true, NULL,
                              test_version_features(), &v));
    v->table = table;
    unit_succeeds(version_start(v));
    return v;
}

static void begin_with(const char *step_config, const char *config)
{
    test_gate_begin(false);
    backend = test_version_backend(execute);
    step = test_version_new(&backend, step_config, NULL);
    failing_backend = test_version_backend(refuse);
    other = test_version_new(&failing_backend, batching, NULL);
    table = table_new();
    publish_steps();
    ensemble = ensemble_of(config);
}

static void begin(const char *step_config)
{
    begin_with(step_config, limited);
}

static void end(void)
{
    table_publish(table, NULL, 0);
    version_drain(ensemble);
    version_free(ensemble);
    ensemble = NULL;
    version_drain(step);
    version_free(step);
    version_drain(other);
    version_free(other);
    table_free(table);
    test_gate_end();
}

/* Each of those that wait is refused by the step's model as soon as it goes, and gives the place
 * on: one after the other, not one within the other. */
static void many_that_wait_are_refused(void **state)
{
    (void)state;
    begin(sequence);
    submit_now(make(1));
    test_gate_wait(&test_gate_entered, 1);
    for (unsigned i = 0; i < PARKED; i++)
        submit_now(make(0));
    test_gate_set(true);
    test_gate_wait(&test_gate_answered, PARKED + 1);
    assert_int_equal(test_gate_failed, PARKED);
    end();
}

/* The same where what is refused is a step of an ensemble within. */
static void many_that_wait_are_refused_within(void **state)
{
    (void)state;
    begin_with(sequence, UNLIMITED(""));
    publish_steps();
    outer = ensemble_of(limited_nested);
    submit_now(make_for(outer, NULL, 1));
    test_gate_wait(&test_gate_entered, 1);
    for (unsigned i = 0; i < PARKED; i++)
        submit_now(make_for(outer, NULL, 0));
    test_gate_set(true);
    test_gate_wait(&test_gate_answered, PARKED + 1);
    assert_int_equal(test_gate_failed, PARKED);
    version_drain(outer);
    version_free(outer);
    end();
}

/* A client that goes while its request waits for the place does not take the place along. */
static void one_that_waits_is_cancelled(void **state)
{
    (void)state;
    begin(batching);
    submit_now(make(1));
    test_gate_wait(&test_gate_entered, 1);
    struct request *gone = make(2);
    submit_now(gone);
    atomic_store(&gone->cancelled, true);
    test_gate_set(true);
    test_gate_wait(&test_gate_answered, 2);
    assert_int_equal(test_gate_failed, 1);
    submit_now(make(3));
    test_gate_wait(&test_gate_answered, 3);
    assert_int_equal(test_gate_failed, 1);
    end();
}

/* How many wait, and whether the oldest says so too. */
static size_t waiting(struct serve_version *v)
{
    struct scheduler *s = v->scheduler;
    size_t depth = s->ops.depth(s);
    mutex_lock(&v->lock);
    time_ns oldest = s->ops.oldest(s);
    mutex_unlock(&v->lock);
    assert_int_equal(depth > 0, oldest <= clock_now_ns());
    return depth;
}

/* A client that goes while its step waits in a queue, or for the place, is answered at once: the
 * model is busy, and stays so. What others wait for is theirs. */
static void one_that_waits_is_given_up(void **state)
{
    (void)state;
    static const char *const configs[] = {UNLIMITED(""), limited};
    for (unsigned i = 0; i < 2; i++) {
        begin_with(batching, configs[i]);
        submit_now(make(1));
        test_gate_wait(&test_gate_entered, 1);
        struct request *gone = request_ref(make(2));
        submit_now(gone);
        submit_now(make(3));
        assert_int_equal(waiting(step) + waiting(ensemble), 2);
        assert_int_equal(waiting(ensemble), i ? 2 : 0);
        request_cancel(gone);
        assert_int_equal(test_gate_answered, 1);
        assert_int_equal(test_gate_failed, 1);
        assert_int_equal(waiting(step) + waiting(ensemble), 1);
        request_unref(gone);
        test_gate_set(true);
        test_gate_wait(&test_gate_answered, 3);
        assert_int_equal(test_gate_entered, 2);
        end();
    }
}

/* What is queued later of a request that was given up is answered by the queue: nobody has to
 * look at it first. */
static void one_given_up_before_is_not_queued(void **state)
{
    (void)state;
    begin_with(batching, UNLIMITED(""));
    submit_now(make(1));
    test_gate_wait(&test_gate_entered, 1);
    struct request *gone = make(2);
    request_cancel(gone);
    submit_now(gone);
    assert_int_equal(test_gate_answered, 1);
    assert_int_equal(test_gate_failed, 1);
    test_gate_set(true);
    test_gate_wait(&test_gate_answered, 2);
    end();
}

/* Steps that are executed, answered or given their place by other threads while they are given up:
 * each request is answered once. */
static void many_are_given_up_while_they_are_answered(void **state)
{
    (void)state;
    static const char *const configs[] = {UNLIMITED(""), limited, limited_nested};
    for (unsigned i = 0; i < 3; i++) {
        struct request *last[GIVEN_UP] = {NULL};
        begin_with(batching, configs[i == 1]);
        publish_steps();
        outer = i == 2 ? ensemble_of(configs[i]) : NULL;
        test_gate_set(true);
        for (unsigned k = 0; k < 200 * GIVEN_UP; k++) {
            struct request **r = &last[k % GIVEN_UP];
            if (*r) {
                request_cancel(*r);
                request_unref(*r);
            }
            *r = request_ref(make_for(outer ? outer : ensemble, NULL, 0));
            submit_now(*r);
        }
        for (unsigned k = 0; k < GIVEN_UP; k++)
            request_unref(last[k]);
        test_gate_wait(&test_gate_answered, 200 * GIVEN_UP);
        if (outer) {
            version_drain(outer);
            version_free(outer);
        }
        end();
        assert_int_equal(test_gate_answered, 200 * GIVEN_UP);
    }
}

/* Of a request that has failed meanwhile, the step that waited for its place is not executed any
 * more. */
static void one_that_waits_fails_elsewhere(void **state)
{
    (void)state;
    begin_with(batching, failing);
    for (unsigned i = 1; i <= 2; i++) {
        submit_now(make(0));
        submit_now(make_for(other, NULL, 0)); /* the step before was answered when this one is */
        test_gate_wait(&test_gate_failed, i);
    }
    test_gate_wait(&test_gate_entered, 1);
    test_gate_set(true);
    test_gate_wait(&test_gate_answered, 4);
    assert_int_equal(test_gate_failed, 4);
    assert_int_equal(test_gate_entered, 1);
    end();
}

static struct loop *house;
static struct request *given_up;
static bool giving_up;
static unsigned answered_on_house;

static void give_up(struct mail *m)
{
    (void)m;
    giving_up = true;
    request_cancel(given_up);
    giving_up = false;
    test_gate_set(true);
}

static void answered_afterwards(struct response *r, void *owner)
{
    assert_false(giving_up);
    test_gate_on_answer(r, owner);
    if (++answered_on_house == 2)
        loop_stop(house);
}

/* A front end gives up while it is busy with a connection: nobody on its loop is answered
 * meanwhile, neither that request nor one that gets its place and is refused. */
static void nobody_is_answered_within(void **state)
{
    (void)state;
    struct mail m = {.deliver = give_up};
    begin(sequence);
    assert_null(loop_new(&house));
    submit_now(make_for(step, NULL, 1));
    test_gate_wait(&test_gate_entered, 1);
    given_up = request_ref(make_for(ensemble, house, 2));
    struct request *other_one = make_for(ensemble, house, 0);
    given_up->respond = other_one->respond = answered_afterwards;
    submit_now(given_up);
    submit_now(other_one);
    loop_post(house, &m, &m);
    loop_run(house);
    request_unref(given_up);
    test_gate_wait(&test_gate_answered, 3);
    assert_int_equal(test_gate_failed, 2);
    end();
    loop_free(house);
}

static size_t
    queued; /* when an ensemble's request had been taken over on a thread that gathers steps */

static void submit_another(struct response *r, void *owner)
{
    struct list one;
    response_free(r);
    list_init(&one);
    list_append(&one, &((struct request *)owner)->queue_node);
    ensemble->scheduler->ops.accept(ensemble->scheduler, &one, false);
    queued = step->scheduler->ops.depth(step->scheduler);
}

static void stop_house(struct response *r, void *owner)
{
    test_gate_on_answer(r, owner);
    loop_stop(house);
}

/* Of an ensemble that answers several times, what follows from a response is queued before the
 * next response is looked at; of others it is gathered. */
static void steps_keep_their_order(void **state)
{
    (void)state;
    static const char *const configs[] = {
        UNLIMITED(""), UNLIMITED("model_transaction_policy { decoupled: true } ")};
    for (size_t i = 0; i < 2; i++) {
        struct submit_turn turn;
        begin_with(batching, configs[i]);
        assert_null(loop_new(&house));
        submit_now(make_for(step, NULL, 0));
        test_gate_wait(&test_gate_entered, 1);
        struct request *r = make_for(ensemble, house, 0);
        r->respond = stop_house;
        version_pin(step);
        struct request *trigger = request_new(&step->target, NULL, submit_another, r);
        submit_turn_begin(&turn);
        response_send_flags(trigger, RESPONSE_FINAL);
        request_release(trigger);
        submit_turn_end(&turn);
        assert_int_equal(queued, i);
        test_gate_set(true);
        loop_run(house);
        test_gate_wait(&test_gate_answered, 2);
        assert_int_equal(test_gate_failed, 0);
        end();
        loop_free(house);
    }
}

static void keep_words(struct response *r, void *owner)
{
    snprintf(said, sizeof(said), "%s", r->error ? err_message(r->error) : "");
    test_gate_on_answer(r, owner);
}

/* Who left an output out is named, not only who needs it. */
static void the_one_that_left_it_out_is_named(void **state)
{
    (void)state;
    begin_with(batching, forgotten);
    forgets = true;
    struct request *r = make(0);
    r->respond = keep_words;
    submit_now(r);
    test_gate_wait(&test_gate_answered, 1);
    forgets = false;
    assert_ptr_equal(strstr(said, "in ensemble 'e', model 'f' left out output 'o', which input 'i' "
                                  "of model 's' needs: "),
                     said);
    assert_non_null(strstr(said, "expected 1 inputs but got 0 inputs for model 's'"));
    end();
}

/* What a client says of its request holds for each step. */
static void a_step_is_asked_as_the_ensemble_was(void **state)
{
    (void)state;
    begin(batching);
    test_gate_set(true);
    struct request *r = make(0);
    r->priority = 3;
    r->timeout_us = 60000000;
    r->id = "seven";
    submit_now(r);
    test_gate_wait(&test_gate_answered, 1);
    assert_int_equal(test_gate_failed, 0);
    assert_int_equal(priority, 3);
    assert_int_equal(timeout_us, 60000000);
    assert_string_equal(named, "seven");
    end();
}

UNIT_MAIN(UNIT(one_that_waits_fails_elsewhere), UNIT(steps_keep_their_order),
          UNIT(a_step_is_asked_as_the_ensemble_was), UNIT(the_one_that_left_it_out_is_named),
          UNIT(many_that_wait_are_refused), UNIT(many_that_wait_are_refused_within),
          UNIT(one_that_waits_is_cancelled), UNIT(one_that_waits_is_given_up),
          UNIT(one_given_up_before_is_not_queued), UNIT(many_are_given_up_while_they_are_answered),
          UNIT(nobody_is_answered_within))
