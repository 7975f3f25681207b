/* sequences/sequences: a backend gives back what it was given, and clients go while their
 * sequence waits. */
#include "sequences/sequences.h"

#include "infer/request.h"
#include "infer/response.h"
#include "os/mutex.h"
#include "model/config.h"
#include "sequences/sequencer.h"
#include "serve/runner.h"
#include "serve/submit.h"
#include "serve/version.h"
#include "support/fake_request.h"
#include "support/test_gate.h"
#include "support/test_version.h"
#include "support/unit.h"

#include <stdio.h>
#include <string.h>

#define IO                                                     \
    "input [{ name: 'i' data_type: TYPE_INT32 dims: [ 1 ] }] " \
    "output [{ name: 'o' data_type: TYPE_INT32 dims: [ 1 ] }] "
#define MODEL                                         \
    "name: 'm' backend: 'b' " IO "max_batch_size: 2 " \
    "instance_group [{ count: 1 kind: KIND_CPU }] "
#define DIRECT "sequence_batching { iterative_sequence: true direct { } } "
#define OLDEST \
    "sequence_batching { iterative_sequence: true oldest { max_candidate_sequences: 2 } } "
#define CONTROLLED                                                                            \
    "sequence_batching { direct { } control_input [{ name: 'start' control [{ kind: "         \
    "CONTROL_SEQUENCE_START int32_false_true: [ 3, 7 ] }] }, { name: 'end' control [{ kind: " \
    "CONTROL_SEQUENCE_END int32_false_true: [ 3, 7 ] }] }, { name: 'ready' control [{ kind: " \
    "CONTROL_SEQUENCE_READY int32_false_true: [ 3, 7 ] }] }, { name: 'id' control [{ kind: "  \
    "CONTROL_SEQUENCE_CORRID data_type: TYPE_INT32 }] }] } "
#define READS_ID                                                                           \
    "sequence_batching { iterative_sequence: true direct { } control_input [{ name: 'id' " \
    "control [{ kind: CONTROL_SEQUENCE_CORRID data_type: TYPE_INT32 }] }] } "
#define ONE "sequence_batching { oldest { max_candidate_sequences: 1 } } "

static struct serve_version *version;

/* What becomes of a row of an execution: '.' is answered, 'R' wanted again. By execution, then
 * by row. */
static const char *const *script;

/* What the model reads of the first two rows of the last execution: start, end, ready and id of
 * each. */
static int32_t seen[2][4];

static void look(const struct request *r, int32_t row[4])
{
    static const char *const names[] = {"start", "end", "ready", "id"};
    for (uint32_t i = 0; i < r->input_count; i++)
        for (int k = 0; k < 4; k++)
            if (strcmp(r->inputs[i].name, names[k]) == 0)
                memcpy(&row[k], r->inputs[i].pieces[0].data, sizeof(row[k]));
}

static TRITONSERVER_Error *execute(TRITONBACKEND_ModelInstance *instance,
                                   TRITONBACKEND_Request **requests, uint32_t count)
{
    (void)instance;
    const char *rows = script[test_gate_entered]; /* one execution at a time */
    test_gate_pass(1);
    for (uint32_t i = 0; i < count; i++) {
        struct request *r = request_take(requests[i]);
        if (i < 2)
            look(r, seen[i]);
        if (rows[i] == 'R') {
            unit_succeeds(request_check_reschedule(r));
            request_reschedule(r);
            continue;
        }
        response_send(response_new(r), RESPONSE_FINAL, NULL);
        request_release(r);
    }
    return NULL;
}

static struct request *make(uint64_t id, uint32_t flags)
{
    static const int32_t value = 7;
    struct request *r = test_gate_request(version, NULL, test_gate_on_answer, &value);
    r->correlation_id = id;
    r->flags = flags;
    return r;
}

static struct plugin_backend backend;

static void begin(const char *config, const char *const *plan)
{
    test_gate_begin(true);
    script = plan;
    backend = test_version_backend(execute);
    version = test_version_new(&backend, config, NULL);
}

static void end(void)
{
    version_drain(version);
    version_free(version);
    test_gate_end();
}

static void expect_row(int row, int32_t start, int32_t end, int32_t ready, int32_t id)
{
    assert_int_equal(seen[row][0], start);
    assert_int_equal(seen[row][1], end);
    assert_int_equal(seen[row][2], ready);
    assert_int_equal(seen[row][3], id);
}

/* PB-107, PB-108, PB-109, PB-111: a row without a request is not ready, and begins, ends and is
 * nothing. */
static void a_gap_is_not_ready(void **state)
{
    (void)state;
    begin(MODEL CONTROLLED, (const char *const[]){".", "..", "..", "..", ""});
    submit_now(make(5, REQUEST_SEQUENCE_START));
    test_gate_wait(&test_gate_answered, 1);
    expect_row(0, 7, 3, 7, 5);
    submit_now(make(6, REQUEST_SEQUENCE_START));
    test_gate_wait(&test_gate_answered, 2);
    expect_row(0, 3, 3, 3, 0);
    expect_row(1, 7, 3, 7, 6);
    submit_now(make(6, 0));
    test_gate_wait(&test_gate_answered, 3);
    expect_row(0, 3, 3, 3, 0);
    expect_row(1, 3, 3, 7, 6);
    submit_now(make(6, REQUEST_SEQUENCE_END));
    test_gate_wait(&test_gate_answered, 4);
    expect_row(0, 3, 3, 3, 0);
    expect_row(1, 3, 7, 7, 6);
    assert_int_equal(test_gate_failed, 0);
    end();
}

/* The first sequence is over after two executions; its row is filled in the third one. */
static void a_gap_may_be_wanted_again(void **state)
{
    (void)state;
    begin(MODEL DIRECT, (const char *const[]){"R", ".R", "R.", ""});
    test_gate_set(false);
    submit_now(make(1, REQUEST_SEQUENCE_START));
    test_gate_wait(&test_gate_entered, 1);
    submit_now(make(2, REQUEST_SEQUENCE_START));
    test_gate_set(true);
    test_gate_wait(&test_gate_answered, 2);
    assert_int_equal(test_gate_failed, 0);
    assert_int_equal(test_gate_entered, 3);
    end();
}

/* A request that both begins and ends its sequence is executed as often as the backend wants. */
static void start_and_end_at_once(void **state)
{
    (void)state;
    static const char *const configs[] = {MODEL DIRECT, MODEL OLDEST};
    for (unsigned i = 0; i < 2; i++) {
        begin(configs[i], (const char *const[]){"R", "R", ".", "."});
        submit_now(make(1, REQUEST_SEQUENCE_START | REQUEST_SEQUENCE_END));
        test_gate_wait(&test_gate_answered, 1);
        assert_int_equal(test_gate_entered, 3);
        submit_now(make(1, REQUEST_SEQUENCE_START | REQUEST_SEQUENCE_END));
        test_gate_wait(&test_gate_answered, 2);
        assert_int_equal(test_gate_failed, 0);
        end();
    }
}

/* A request that comes while another one of its sequence is executed over and over has its turn
 * when that is over, and as often as the backend wants. */
static void one_after_the_other(void **state)
{
    (void)state;
    static const char *const configs[] = {MODEL DIRECT, MODEL OLDEST};
    for (unsigned i = 0; i < 4; i++) {
        begin(configs[i / 2], (const char *const[]){"R", "R", ".", "R", ".", ""});
        test_gate_set(false);
        submit_now(make(5, REQUEST_SEQUENCE_START));
        test_gate_wait(&test_gate_entered, 1);
        submit_now(make(5, i % 2 ? REQUEST_SEQUENCE_START : 0));
        test_gate_set(true);
        test_gate_wait(&test_gate_answered, 2);
        assert_int_equal(test_gate_failed, 0);
        assert_int_equal(test_gate_entered, 5);
        end();
    }
}

/* The id that a request without one gets is no client's: neither is taken for the other. */
static void made_ids_are_of_no_client(void **state)
{
    (void)state;
    static const uint64_t ids[] = {1, UINT64_MAX};
    for (unsigned i = 0; i < 2; i++) {
        begin(MODEL READS_ID, (const char *const[]){"R", "..", ""});
        test_gate_set(false);
        submit_now(make(ids[i], REQUEST_SEQUENCE_START));
        test_gate_wait(&test_gate_entered, 1);
        submit_now(make(0, 0));
        test_gate_set(true);
        test_gate_wait(&test_gate_answered, 2);
        assert_int_equal(test_gate_failed, 0);
        assert_int_equal(test_gate_entered, 2);
        assert_int_equal(seen[0][3], (int32_t)ids[i]);
        assert_int_equal(seen[1][3], -1);
        end();
    }
}

/* A client goes while its sequence waits for a place: who asked for more of that sequence is
 * told at once. */
static void a_waiting_sequence_is_cancelled(void **state)
{
    (void)state;
    begin(MODEL ONE, (const char *const[]){".", ".", "."});
    test_gate_set(false);
    submit_now(make(1, REQUEST_SEQUENCE_START));
    test_gate_wait(&test_gate_entered, 1);
    struct request *first = make(2, REQUEST_SEQUENCE_START);
    submit_now(first);
    submit_now(make(2, 0));
    submit_now(make(2, REQUEST_SEQUENCE_END));
    request_cancel(first);
    test_gate_wait(&test_gate_failed, 3);
    test_gate_set(true);
    test_gate_wait(&test_gate_answered, 4);
    assert_int_equal(test_gate_failed, 3);
    end();
}

/* The same where the client is gone before its request is queued. */
static void cancelled_before_it_waits(void **state)
{
    (void)state;
    begin(MODEL ONE, (const char *const[]){".", ".", "."});
    test_gate_set(false);
    submit_now(make(1, REQUEST_SEQUENCE_START));
    test_gate_wait(&test_gate_entered, 1);
    submit_now(make(2, REQUEST_SEQUENCE_START));
    struct request *second = make(2, REQUEST_SEQUENCE_END);
    atomic_store(&second->cancelled, true);
    submit_now(second);
    test_gate_wait(&test_gate_failed, 2);
    test_gate_set(true);
    test_gate_wait(&test_gate_answered, 3);
    end();
}

/* The slot goes to a sequence of the backlog, and its instance hears of that: it may have waited
 * for long enough. */
static void a_slot_that_is_given_up_is_heard_of(void **state)
{
    (void)state;
    begin(MODEL "sequence_batching { oldest { max_candidate_sequences: 1 "
                "max_queue_delay_microseconds: 1000000000 } } ",
          (const char *const[]){""});
    struct request *first = make(1, REQUEST_SEQUENCE_START);
    struct request *second = make(2, REQUEST_SEQUENCE_START);
    submit_now(first);
    submit_now(second);
    request_cancel(first);
    mutex_lock(&version->lock);
    struct sequencer *queue = ((struct sequences *)version->scheduler)->queue;
    assert_int_equal(sequencer_depth(queue), 1);
    assert_null(sequencer_look(queue));
    mutex_unlock(&version->lock);
    request_cancel(second);
    test_gate_wait(&test_gate_failed, 2);
    assert_int_equal(test_gate_entered, 0);
    end();
}

/* As many rows as there are numbers: room is made for what comes. */
static void a_batch_may_be_huge(void **state)
{
    (void)state;
    static const char *const configs[] = {
        "sequence_batching { direct { } }",
        "sequence_batching { oldest { max_candidate_sequences: 2147483647 } }"};
    for (unsigned i = 0; i < 2; i++) {
        char config[1000];
        snprintf(config, sizeof(config),
                 "name: 'm' backend: 'b' " IO "max_batch_size: 2147483647 "
                 "instance_group [{ count: 1 kind: KIND_CPU }] %s",
                 configs[i]);
        begin(config, (const char *const[]){".", "..................", ""});
        test_gate_set(false);
        submit_now(make(1, REQUEST_SEQUENCE_START | REQUEST_SEQUENCE_END));
        test_gate_wait(&test_gate_entered, 1);
        for (uint64_t id = 2; id < 20; id++)
            submit_now(make(id, REQUEST_SEQUENCE_START | REQUEST_SEQUENCE_END));
        test_gate_set(true);
        test_gate_wait(&test_gate_answered, 19);
        assert_int_equal(test_gate_failed, 0);
        assert_in_range(version->instances.runners[0]->room, 18, 64);
        end();
    }
}

/* A queue as a configuration asks for it, without a model that runs. Time is a parameter. */
struct bench {
    struct model_config *config;
    struct sequences *sequences;
    struct sequencer_instance *instance;
    struct request *requests[4];
    struct request *out[4];
    time_ns wake;
};

static void bench_begin(struct bench *b, const char *config)
{
    *b = (struct bench){.config = test_version_config(config)};
    unit_succeeds(sequences_new(b->config, "/", &b->sequences));
    b->instance = sequencer_join(b->sequences->queue, b);
}

static void bench_push(struct bench *b, uint32_t index, time_ns at)
{
    struct request *r = fake_request_new(1);
    r->correlation_id = index + 1;
    r->flags = REQUEST_SEQUENCE_START;
    b->requests[index] = r;
    assert_int_equal(sequencer_push(b->sequences->queue, at, r), SEQUENCER_PUSH_OK);
}

/* Takes what may run, which ends at once. */
static size_t bench_take(struct bench *b, time_ns at)
{
    size_t n = sequencer_take(b->sequences->queue, b->instance, at, b->out, 4, &b->wake);
    for (size_t i = 0; i < n; i++)
        sequencer_released(b->sequences->queue, at, b->out[i], false);
    return n;
}

static void bench_end(struct bench *b)
{
    struct list rest;
    list_init(&rest);
    sequencer_drain(b->sequences->queue, &rest);
    sequencer_drop(b->instance);
    sequences_free(b->sequences);
    for (int i = 0; i < 4; i++)
        fake_request_free(b->requests[i]);
    config_unref(b->config);
}

/* PB-123, PB-126, PB-128, PB-130, PB-132: as many candidates as it says, sizes that are
 * preferred, the delay, the time to idle. */
static void settings_of_oldest(void **state)
{
    (void)state;
    struct bench b;
    bench_begin(&b, MODEL "sequence_batching { max_sequence_idle_microseconds: 900 oldest { "
                          "max_candidate_sequences: 3 preferred_batch_size: [ 2 ] "
                          "max_queue_delay_microseconds: 50 } }");
    bench_push(&b, 0, 100);
    assert_int_equal(bench_take(&b, 100), 0);
    assert_int_equal(b.wake, 100 + TIME_US(50));
    for (uint32_t i = 1; i < 4; i++)
        bench_push(&b, i, 100);
    assert_int_equal(bench_take(&b, 100), 2);
    assert_int_equal(bench_take(&b, 100 + TIME_US(50)), 1); /* the fourth is no candidate */
    assert_int_equal(sequencer_next_deadline(b.sequences->queue), 100 + TIME_US(900));
    bench_end(&b);
}

/* How many slots have to be filled, and how long to wait for that. */
static void settings_of_direct(void **state)
{
    (void)state;
    struct bench b;
    bench_begin(&b, MODEL "sequence_batching { direct { max_queue_delay_microseconds: 50 "
                          "minimum_slot_utilization: 1 } }");
    bench_push(&b, 0, 100);
    assert_int_equal(bench_take(&b, 100), 0);
    assert_int_equal(b.wake, 100 + TIME_US(50));
    bench_push(&b, 1, 100);
    assert_int_equal(bench_take(&b, 100), 2);
    bench_end(&b);
}

UNIT_MAIN(UNIT(a_gap_is_not_ready), UNIT(settings_of_oldest), UNIT(settings_of_direct),
          UNIT(a_gap_may_be_wanted_again), UNIT(start_and_end_at_once), UNIT(one_after_the_other),
          UNIT(made_ids_are_of_no_client), UNIT(a_waiting_sequence_is_cancelled),
          UNIT(cancelled_before_it_waits), UNIT(a_slot_that_is_given_up_is_heard_of),
          UNIT(a_batch_may_be_huge))
