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

#define IO                                                                                    \
    "input [{ name: 'i' data_type: TYPE_INT32 dims: [ 1 ] }] output [{ name: 'o' data_type: " \
    "TYPE_INT32 dims: [ 1 ] }] "
#define PARKED 20000u

static const char sequence[] = "name: 's' backend: 'b' max_batch_size: 1 " IO
                               "sequence_batching { } instance_group [{ count: 1 kind: KIND_CPU }]";
static const char batching[] = "name: 's' backend: 'b' max_batch_size: 1 " IO
                               "dynamic_batching { } instance_group [{ count: 1 kind: KIND_CPU }]";
static const char limited[] =
    "name: 'e' platform: 'ensemble' max_batch_size: 1 " IO
    "ensemble_scheduling { max_inflight_requests: 1 step { model_name: 's' model_version: -1 "
    "input_map { key: 'i' value: 'i' } output_map { key: 'o' value: 'o' } } }";

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
    (void)requests;
    (void)count;
    return (TRITONSERVER_Error *)err_new(STATUS_INTERNAL, "it fails");
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

static struct table_model model_of(const char *name, struct serve_version *v)
{
    struct table_entry *entries = mem_zalloc(sizeof(*entries));
    entries[0] = (struct table_entry){1, TABLE_READY, mem_strdup(""), v};
    return (struct table_model){.name = mem_strdup(name), .entries = entries, .entry_count = 1};
}

static void publish_steps(void)
{
    struct table_model *models = mem_zalloc(2 * sizeof(*models));
    models[0] = model_of("f", other);
    models[1] = model_of("s", step);
    table_publish(table, models, 2);
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
    unit_succeeds(version_new("e", 1, test_version_config(config), NULL, true, NULL,
                              test_version_features(), &ensemble));
    ensemble->table = table;
    unit_succeeds(version_start(ensemble));
}

static void begin(const char *step_config)
{
    begin_with(step_config, limited);
}

static void end(void)
{
    version_drain(ensemble);
    version_free(ensemble);
    table_publish(table, NULL, 0);
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

static size_t
    queued; /* when an ensemble's request had been taken over on a thread that gathers steps */
static struct loop *house;

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
          UNIT(a_step_is_asked_as_the_ensemble_was), UNIT(many_that_wait_are_refused),
          UNIT(one_that_waits_is_cancelled))
