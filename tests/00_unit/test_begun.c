/* serve/begun: batches that a loop begins and that are carried on elsewhere. Requests are answered
 * once each, by the loop without an instance thread where the bell rings, by the instance's thread
 * where the rest blocks, was not begun or takes too long; no thread but a loop begins one. */
#include "base/log.h"
#include "infer/request.h"
#include "infer/response.h"
#include "model/config.h"
#include "os/loop.h"
#include "os/thread.h"
#include "serve/begun.h"
#include "serve/runner.h"
#include "serve/submit.h"
#include "serve/version.h"
#include "support/test_gate.h"
#include "support/test_version.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#define IO                                                                                    \
    "input [{ name: 'i' data_type: TYPE_INT32 dims: [ 1 ] }] output [{ name: 'o' data_type: " \
    "TYPE_INT32 dims: [ 1 ] }] "
#define BURST 50
#define MOST  2u

static const char one_instance[] = "name: 'm' backend: 'b' " IO;
static const char two_instances[] =
    "name: 'm' backend: 'b' " IO "instance_group [{ count: 2 kind: KIND_CPU }]";
static const char batched[] = "name: 'm' backend: 'b' max_batch_size: 8 " IO "dynamic_batching { }";

/* What an instance does with a batch. */
enum manner {
    ENDS_AT_ONCE, /* and rings no bell, like the next */
    BLOCKS_AT_ONCE,
    RINGS,
    RINGS_TWICE,
    RINGS_AFTER,
    WAITS_FOR_ANOTHER,
    BLOCKS,
    REFUSES,
    RELEASES,   /* the first request of a batch, answered, and refuses */
    HOLDS,      /* begin blocks, against the rule, and rings then */
    HOLDS_LOOK, /* the look at the bell does */
    ELSEWHERE,  /* a thread of its own answers and releases; the bell rings later */
    SILENT
};

struct half {
    TRITONBACKEND_ModelInstance *instance;
    TRITONBACKEND_Request **requests; /* NULL = nothing is begun */
    uint32_t count;
    unsigned looks;
    int bell;
};

/* The loop's thread and, one after the other, an instance's: the version's lock is in between. */
static struct {
    enum manner manner;
    struct half halves[MOST];
    unsigned made, begun, at_once, looked, finished, executed, released;
    unsigned claimed;  /* answers that came while an instance was not free again */
    unsigned told;     /* lines of the log about what was released */
    unsigned unpinned; /* batches under way whose version could have gone */
    bool on_loop;      /* nothing was begun or looked at elsewhere */
    bool in_steps;     /* each answer leads to the next step of an ensemble */
    struct thread *worker;
    struct loop_timer late;
    struct loop *loop;
    struct submitter submitter;
    struct loop_timer first;
    struct serve_version *version;
    unsigned together, back;
} world;

static int32_t values[BURST];

static void echo_all(TRITONBACKEND_Request **requests, uint32_t count)
{
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
}

static TRITONSERVER_Error *execute(TRITONBACKEND_ModelInstance *instance,
                                   TRITONBACKEND_Request **requests, uint32_t count)
{
    (void)instance;
    assert_ptr_not_equal(loop_current(), world.loop);
    world.executed += count;
    echo_all(requests, count);
    return NULL;
}

static struct half *half_of(TRITONBACKEND_ModelInstance *instance)
{
    for (unsigned i = 0; i < world.made; i++)
        if (world.halves[i].instance == instance)
            return &world.halves[i];
    fail();
    return NULL;
}

static void ring(const struct half *h)
{
    uint64_t one = 1;
    assert_int_equal(write(h->bell, &one, sizeof(one)), sizeof(one));
}

static int bell(TRITONBACKEND_ModelInstance *instance)
{
    assert_in_range(world.made, 0, MOST - 1);
    struct half *h = &world.halves[world.made++];
    *h = (struct half){.instance = instance, .bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
    return h->bell;
}

/* Longer than a loop bears. */
static void hold(void)
{
    const struct timespec two_ms = {.tv_nsec = 2000000};
    nanosleep(&two_ms, NULL); /* allowed: a plug-in that breaks the rule is what is tested */
}

static bool begin(TRITONBACKEND_ModelInstance *instance, TRITONBACKEND_Request **requests,
                  uint32_t count)
{
    struct half *h = half_of(instance);
    world.on_loop = world.on_loop && loop_current() == world.loop;
    assert_null(h->requests); /* the one before has ended */
    if (world.manner == REFUSES)
        return false;
    if (world.manner == RELEASES) {
        world.released++;
        echo_all(requests, 1);
        return false;
    }
    /* It rang for a batch that had been given up. */
    uint64_t rang;
    if (world.manner == ELSEWHERE && read(h->bell, &rang, sizeof(rang)) < 0)
        assert_int_equal(errno, EAGAIN);
    h->requests = requests;
    h->count = count;
    h->looks = 0;
    world.begun++;
    if (world.manner == HOLDS)
        hold();
    unsigned at_once = 0;
    for (unsigned i = 0; i < world.made; i++)
        at_once += world.halves[i].requests != NULL;
    world.at_once = at_once > world.at_once ? at_once : world.at_once;
    if (world.manner == WAITS_FOR_ANOTHER && at_once == MOST)
        world.manner = RINGS;
    bool rings =
        world.manner >= RINGS && world.manner != WAITS_FOR_ANOTHER && world.manner < ELSEWHERE;
    for (unsigned i = 0; rings && i < world.made; i++)
        if (world.halves[i].requests)
            ring(&world.halves[i]);
    return true;
}

static void end(struct half *h)
{
    TRITONBACKEND_Request **requests = h->requests;
    h->requests = NULL;
    if (world.manner != ELSEWHERE)
        echo_all(requests, h->count);
}

/* May come when the loop has given up waiting, and the batch is finished. */
static void answer_elsewhere(void *request)
{
    TRITONBACKEND_Request *one = request;
    echo_all(&one, 1);
}

static enum nereid_progress look(TRITONBACKEND_ModelInstance *instance)
{
    struct half *h = half_of(instance);
    uint64_t count;
    world.on_loop = world.on_loop && loop_current() == world.loop;
    world.looked++;
    assert_non_null(h->requests);
    bool at_once = h->looks++ == 0; /* the look that follows begin */
    if (at_once && world.manner == ELSEWHERE)
        assert_null(thread_start("worker", answer_elsewhere, h->requests[0], &world.worker));
    if (at_once && world.manner >= RINGS)
        return NEREID_PENDING;
    if (!at_once && world.manner == HOLDS_LOOK)
        hold();
    if (!at_once)
        assert_int_equal(read(h->bell, &count, sizeof(count)), sizeof(count));
    if (world.manner == BLOCKS || world.manner == BLOCKS_AT_ONCE)
        return NEREID_BLOCKS;
    if (world.manner == RINGS_TWICE && h->looks == 2) {
        ring(h);
        return NEREID_PENDING;
    }
    if (world.manner == RINGS_AFTER)
        ring(h); /* and it is not looked at before the next batch */
    end(h);
    return NEREID_ENDED;
}

static void finish(TRITONBACKEND_ModelInstance *instance)
{
    struct half *h = half_of(instance);
    assert_ptr_not_equal(loop_current(), world.loop);
    assert_non_null(h->requests);
    world.finished++;
    end(h);
}

static void on_answer(struct response *r, void *owner);

static struct request *next_request(unsigned ahead)
{
    int32_t *value = &values[world.back + ahead];
    *value = (int32_t)(world.back + ahead);
    return test_gate_request(world.version, world.loop, on_answer, value);
}

static bool all_idle(void)
{
    bool idle = true;
    mutex_lock(&world.version->lock);
    for (uint32_t i = 0; i < world.version->instances.runner_count; i++)
        idle = idle && runner_is_idle(world.version->instances.runners[i]);
    mutex_unlock(&world.version->lock);
    return idle;
}

/* The next requests come when these are answered. */
static void on_answer(struct response *r, void *owner)
{
    assert_null(r->error);
    assert_memory_equal(r->outputs->data, owner, 4);
    assert_ptr_equal(loop_current(), world.loop);
    response_free(r);
    world.claimed += !all_idle();
    world.back++;
    if (world.manner == ELSEWHERE)
        loop_timer_set(world.loop, &world.late, loop_now(world.loop));
    else if (world.back == BURST)
        loop_stop(world.loop);
    else if (world.in_steps)
        submit_step(next_request(0));
    else if (world.back % world.together == 0)
        loop_timer_set(world.loop, &world.first, loop_now(world.loop));
}

/* So many requests as there are instances, or all at once; when no instance has anything to do. */
static void submit_some(struct loop_timer *t)
{
    if (!all_idle()) {
        loop_timer_set(world.loop, t, loop_now(world.loop) + 1); /* in the next turn */
        return;
    }
    if (world.back == BURST)
        loop_stop(world.loop);
    for (unsigned i = 0; i < world.together && world.back < BURST; i++)
        submit_later(&world.submitter, next_request(i));
}

/* The requests of a batch are gone. It is not over before the bell rings, unless the loop has given
 * up waiting. */
static void ring_late(struct loop_timer *t)
{
    (void)t;
    /* None where a thread has executed the batch: the loops are left to others on a slow machine. */
    struct thread *worker = world.worker;
    world.worker = NULL;
    thread_join(worker);
    if (worker) {
        world.unpinned += version_drained(world.version);
        ring(&world.halves[0]);
    }
    loop_timer_set(world.loop, &world.first, loop_now(world.loop));
}

static void read_log(int fd, const char *line, size_t len)
{
    (void)fd;
    static const char rule[] = "broke a rule: nereid_instance_begin_v1 returned false and had "
                               "released 1 of ";
    world.told += memmem(line, len, rule, strlen(rule)) != NULL;
}

static struct plugin_backend backend_in_halves(void)
{
    struct plugin_backend backend = test_version_backend(execute);
    backend.entries.bell = bell;
    backend.entries.begin = begin;
    backend.entries.look = look;
    backend.entries.finish = finish;
    return backend;
}

/* How many of this process's event loops watch a descriptor. */
static unsigned watched(int fd)
{
    char path[64], line[256], wanted[32];
    unsigned count = 0;
    snprintf(wanted, sizeof(wanted), "tfd: %8d ", fd);
    for (int i = 0; i < 256; i++) {
        snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", i);
        FILE *f = fopen(path, "re");
        while (f && fgets(line, sizeof(line), f))
            count += strncmp(line, wanted, strlen(wanted)) == 0;
        if (f)
            assert_int_equal(fclose(f), 0);
    }
    return count;
}

static void loop_main(void *loop)
{
    loop_run(loop);
}

static void leave(void)
{
    struct thread *thread;
    assert_null(thread_start("loop", loop_main, world.loop, &thread));
    version_drain(world.version);
    version_free(world.version);
    loop_stop(world.loop);
    thread_join(thread);
    for (unsigned i = 0; i < world.made; i++) {
        assert_int_equal(watched(world.halves[i].bell), 0);
        close(world.halves[i].bell);
    }
    loop_free(world.loop);
    test_gate_end();
}

/* BURST requests from a loop, `together` of them at a time or one after the other as steps; the
 * version and the loop are left to the caller. */
static void run_steps(enum manner manner, const char *config, unsigned together, bool in_steps)
{
    static struct plugin_backend backend;
    backend = backend_in_halves();
    memset(&world, 0, sizeof(world));
    test_gate_begin(true);
    world.manner = manner;
    world.together = together;
    world.in_steps = in_steps;
    world.on_loop = true;
    world.first.due = submit_some;
    world.late.due = ring_late;
    assert_null(loop_new(&world.loop));
    world.version = test_version_new(&backend, config, world.loop);
    assert_true(world.version->inline_ok);
    submit_init(&world.submitter, world.loop);
    loop_timer_set(world.loop, &world.first, loop_now(world.loop));
    loop_run(world.loop);
    assert_int_equal(world.back, BURST);
    assert_true(world.on_loop);
}

static void run(enum manner manner, const char *config, unsigned together)
{
    run_steps(manner, config, together, false);
}

static void a_loop_ends_what_it_began(void **state)
{
    (void)state;
    run(RINGS, one_instance, 1);
    assert_int_equal(world.begun, BURST);
    assert_int_equal(world.looked, 2 * BURST);
    assert_false(world.version->instances.runners[0]->has_thread);
    leave();
}

static void what_has_ended_at_once_is_not_waited_for(void **state)
{
    (void)state;
    run(ENDS_AT_ONCE, one_instance, 1);
    assert_int_equal(world.begun, BURST);
    assert_int_equal(world.looked, BURST);
    assert_false(world.version->instances.runners[0]->has_thread);
    leave();
}

static void a_thread_goes_on_behind_what_has_ended_at_once(void **state)
{
    (void)state;
    run(ENDS_AT_ONCE, one_instance, BURST);
    assert_int_equal(world.begun, 1);
    assert_int_equal(world.executed, BURST - 1);
    leave();
}

static void a_loop_goes_on_watching_the_bell(void **state)
{
    (void)state;
    run(RINGS, one_instance, 1);
    assert_int_equal(watched(world.halves[0].bell), 1);
    leave();
}

static void a_ring_after_the_end_is_for_nobody(void **state)
{
    (void)state;
    run(RINGS_AFTER, one_instance, 1);
    assert_int_equal(world.begun, BURST);
    assert_false(world.version->instances.runners[0]->has_thread);
    leave();
}

static void a_loop_looks_until_the_end(void **state)
{
    (void)state;
    run(RINGS_TWICE, one_instance, 1);
    assert_int_equal(world.begun, BURST);
    assert_int_equal(world.looked, 3 * BURST);
    assert_false(world.version->instances.runners[0]->has_thread);
    leave();
}

/* The first batch ends only when a second one has begun. */
static void a_loop_begins_on_every_idle_instance(void **state)
{
    (void)state;
    run(WAITS_FOR_ANOTHER, two_instances, 2);
    assert_int_equal(world.begun, BURST);
    assert_int_equal(world.at_once, 2);
    assert_int_equal(world.finished + world.executed, 0);
    leave();
}

static void a_thread_goes_on_with_the_queue(void **state)
{
    (void)state;
    run(RINGS, one_instance, BURST);
    assert_int_equal(world.begun, 1);
    assert_int_equal(world.executed, BURST - 1);
    leave();
}

static void what_blocks_is_ended_by_the_thread(void **state)
{
    (void)state;
    run(BLOCKS, one_instance, BURST);
    assert_int_equal(world.begun, 1);
    assert_int_equal(world.finished, 1);
    assert_int_equal(world.executed, BURST - 1);
    leave();
}

static void what_blocks_at_once_is_ended_by_the_thread(void **state)
{
    (void)state;
    run(BLOCKS_AT_ONCE, one_instance, BURST);
    assert_int_equal(world.begun, 1);
    assert_int_equal(world.looked, 1);
    assert_int_equal(world.finished, 1);
    assert_int_equal(world.executed, BURST - 1);
    leave();
}

static void what_was_not_begun_is_executed_by_the_thread(void **state)
{
    (void)state;
    run(REFUSES, one_instance, 1);
    assert_int_equal(world.executed, BURST);
    leave();
}

/* The rest of the batch is executed, and the log says what the backend did. */
static void what_was_released_but_not_begun_is_left_out(void **state)
{
    (void)state;
    run(RELEASES, batched, 5);
    leave();
    assert_in_range(world.released, 1, BURST / 5);
    assert_int_equal(world.executed, BURST - world.released);
    assert_int_equal(world.told, world.released);
}

static void nothing_is_left_of_a_batch_that_was_released(void **state)
{
    (void)state;
    run(RELEASES, one_instance, 1);
    assert_int_equal(world.released, BURST);
    assert_int_equal(world.executed, 0);
    assert_true(world.told);
    assert_false(world.version->instances.runners[0]->has_thread);
    leave();
}

/* Each answer comes from a turn of the loop, and the runner is free by then. */
static void a_loop_begins_the_next_step(void **state)
{
    (void)state;
    static const enum manner manners[] = {ENDS_AT_ONCE, RINGS};
    for (unsigned i = 0; i < sizeof(manners) / sizeof(manners[0]); i++) {
        run_steps(manners[i], one_instance, 1, true);
        assert_int_equal(world.begun, BURST);
        assert_int_equal(world.claimed, 0);
        assert_false(world.version->instances.runners[0]->has_thread);
        leave();
    }
}

/* A version that is unloaded meanwhile goes when the batch has ended. */
static void a_version_stays_while_a_batch_without_requests_is_begun(void **state)
{
    (void)state;
    run(ELSEWHERE, one_instance, 1);
    leave();
    assert_in_range(world.begun, 1, BURST);
    assert_in_range(world.unpinned, 0, world.finished);
}

/* The bell never rings: the loop gives up waiting. */
static void a_loop_does_not_wait_for_long(void **state)
{
    (void)state;
    run(SILENT, one_instance, BURST);
    assert_int_equal(world.looked, 1);
    assert_int_equal(world.finished, 1);
    assert_int_equal(world.executed, BURST - 1);
    leave();
}

/* The fourth time is the last. It is the third where the machine left a call of the first batch
 * waiting for long, since the loop cannot tell that from a call that held it; and a later one where
 * it left one waiting so long that more runs are watched. Then it is looked at once more. */
static void expect_not_begun_any_more(enum manner manner)
{
    unsigned begun = BURST;
    for (unsigned tries = 0; tries < 20 && begun > 4; tries++) {
        run(manner, one_instance, 1);
        assert_false(world.version->inline_ok);
        begun = world.begun;
        assert_in_range(begun, 3, BURST - 1);
        assert_int_equal(world.executed, BURST - begun);
        leave();
    }
    assert_in_range(begun, 3, 4);
}

static void who_blocks_again_and_again_is_not_begun_any_more(void **state)
{
    (void)state;
    expect_not_begun_any_more(BLOCKS);
}

static void who_holds_the_loop_again_and_again_is_not_begun_any_more(void **state)
{
    (void)state;
    for (enum manner manner = HOLDS; manner <= HOLDS_LOOK; manner++)
        expect_not_begun_any_more(manner);
}

static void no_other_thread_begins(void **state)
{
    (void)state;
    static struct plugin_backend backend;
    static const int32_t value = 7;
    backend = backend_in_halves();
    memset(&world, 0, sizeof(world));
    test_gate_begin(true);
    assert_null(loop_new(&world.loop));
    world.version = test_version_new(&backend, one_instance, NULL);
    submit_now(test_gate_request(world.version, NULL, test_gate_on_answer, &value));
    test_gate_wait(&test_gate_answered, 1);
    version_drain(world.version);
    assert_int_equal(world.begun, 0);
    assert_int_equal(world.executed, 1);
    leave();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_loop_ends_what_it_began),
        cmocka_unit_test(what_has_ended_at_once_is_not_waited_for),
        cmocka_unit_test(a_thread_goes_on_behind_what_has_ended_at_once),
        cmocka_unit_test(what_blocks_at_once_is_ended_by_the_thread),
        cmocka_unit_test(a_loop_goes_on_watching_the_bell),
        cmocka_unit_test(a_ring_after_the_end_is_for_nobody),
        cmocka_unit_test(a_loop_looks_until_the_end),
        cmocka_unit_test(a_loop_begins_on_every_idle_instance),
        cmocka_unit_test(a_thread_goes_on_with_the_queue),
        cmocka_unit_test(what_blocks_is_ended_by_the_thread),
        cmocka_unit_test(what_was_not_begun_is_executed_by_the_thread),
        cmocka_unit_test(what_was_released_but_not_begun_is_left_out),
        cmocka_unit_test(nothing_is_left_of_a_batch_that_was_released),
        cmocka_unit_test(a_loop_begins_the_next_step),
        cmocka_unit_test(a_version_stays_while_a_batch_without_requests_is_begun),
        cmocka_unit_test(a_loop_does_not_wait_for_long),
        cmocka_unit_test(who_blocks_again_and_again_is_not_begun_any_more),
        cmocka_unit_test(who_holds_the_loop_again_and_again_is_not_begun_any_more),
        cmocka_unit_test(no_other_thread_begins),
    };
    log_set_writer(read_log);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
