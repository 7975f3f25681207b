/* serve/ensemble_run: what waits for a step's place gets it, however many wait and whatever becomes of them. */
#include "serve/ensemble_run.h"

#include "base/mem.h"
#include "infer/request.h"
#include "infer/response.h"
#include "os/mutex.h"
#include "os/thread.h"
#include "serve/submit.h"
#include "serve/table.h"
#include "serve/version.h"
#include "support/test_version.h"
#include "support/unit.h"

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

static struct mutex lock = MUTEX_INIT(MUTEX_RANK_LEAF);
static struct mutex_cond changed;
static bool gate_open;
static unsigned entered;
static unsigned answered;
static unsigned failed;

static struct plugin_backend backend;
static struct serve_table *table;
static struct serve_version *step;
static struct serve_version *ensemble;

static TRITONSERVER_Error *execute(TRITONBACKEND_ModelInstance *instance,
                                   TRITONBACKEND_Request **requests, uint32_t count)
{
    (void)instance;
    mutex_lock(&lock);
    entered += count;
    mutex_cond_broadcast(&changed);
    while (!gate_open)
        mutex_cond_wait(&changed, &lock);
    mutex_unlock(&lock);
    for (uint32_t i = 0; i < count; i++) {
        struct request *r = request_take(requests[i]);
        struct response *a = response_new(r);
        struct tensor_output *o = response_add_output(a, "o", DATATYPE_INT32, (int64_t[]){1, 1}, 2);
        unit_succeeds(response_output_buffer(a, o, 4));
        *(int32_t *)o->data = 7;
        response_send(a, RESPONSE_FINAL, NULL);
        request_release(r);
    }
    return NULL;
}

static void on_answer(struct response *r, void *owner)
{
    (void)owner;
    mutex_lock(&lock);
    answered++;
    failed += r->error != NULL;
    mutex_cond_broadcast(&changed);
    mutex_unlock(&lock);
    response_free(r);
}

static void wait_for(const unsigned *what, unsigned n)
{
    time_ns until = clock_now_ns() + TIME_S(60);
    mutex_lock(&lock);
    while (*what < n)
        assert_true(mutex_cond_wait_until(&changed, &lock, until));
    mutex_unlock(&lock);
}

static void open_gate(void)
{
    mutex_lock(&lock);
    gate_open = true;
    mutex_cond_broadcast(&changed);
    mutex_unlock(&lock);
}

static struct request *make(uint64_t id)
{
    static const int32_t value = 7;
    const struct tensor_piece piece = {.data = &value, .size = sizeof(value)};
    version_pin(ensemble);
    struct request *r = request_new(&ensemble->target, NULL, on_answer, NULL);
    request_add_input(r, "i", 1, DATATYPE_INT32, (int64_t[]){1, 1}, 2, &piece, 1);
    unit_succeeds(request_prepare(r));
    r->times.start = clock_now_ns();
    r->correlation_id = id;
    r->flags = id ? REQUEST_SEQUENCE_START | REQUEST_SEQUENCE_END : 0;
    return r;
}

static void publish_step(void)
{
    struct table_model *models = mem_zalloc(sizeof(*models));
    struct table_entry *entries = mem_zalloc(sizeof(*entries));
    entries[0] = (struct table_entry){1, TABLE_READY, mem_strdup(""), step};
    models[0] = (struct table_model){.name = mem_strdup("s"), .entries = entries, .entry_count = 1};
    table_publish(table, models, 1);
}

static void begin(const char *step_config)
{
    mutex_cond_init(&changed);
    gate_open = false;
    entered = answered = failed = 0;
    backend = test_version_backend(execute);
    step = test_version_new(&backend, step_config, NULL);
    table = table_new();
    publish_step();
    unit_succeeds(version_new("e", 1, test_version_config(limited), NULL, true, NULL, &ensemble));
    ensemble->ensemble = ensemble_run_plan_new(ensemble->config, table);
    unit_succeeds(version_start(ensemble));
}

static void end(void)
{
    version_drain(ensemble);
    version_free(ensemble);
    table_publish(table, NULL, 0);
    version_drain(step);
    version_free(step);
    table_free(table);
    mutex_cond_fini(&changed);
}

/* Each of those that wait is refused by the step's model as soon as it goes, and gives the place on: one after the other, not one
 * within the other. */
static void many_that_wait_are_refused(void **state)
{
    (void)state;
    begin(sequence);
    submit_now(make(1));
    wait_for(&entered, 1);
    for (unsigned i = 0; i < PARKED; i++)
        submit_now(make(0));
    open_gate();
    wait_for(&answered, PARKED + 1);
    assert_int_equal(failed, PARKED);
    end();
}

/* A client that goes while its request waits for the place does not take the place along. */
static void one_that_waits_is_cancelled(void **state)
{
    (void)state;
    begin(batching);
    submit_now(make(1));
    wait_for(&entered, 1);
    struct request *gone = make(2);
    submit_now(gone);
    atomic_store(&gone->cancelled, true);
    open_gate();
    wait_for(&answered, 2);
    assert_int_equal(failed, 1);
    submit_now(make(3));
    wait_for(&answered, 3);
    assert_int_equal(failed, 1);
    end();
}

UNIT_MAIN(UNIT(many_that_wait_are_refused), UNIT(one_that_waits_is_cancelled))
