/* serve/instances: the set of a version is replaced while requests run. */
#include "serve/instances.h"

#include "infer/request.h"
#include "infer/response.h"
#include "model/config.h"
#include "os/thread.h"
#include "plugin/instance.h"
#include "proto/model_config.pb-c.h"
#include "serve/runner.h"
#include "serve/submit.h"
#include "serve/version.h"
#include "support/test_version.h"
#include "support/unit.h"

#define MODEL                                                                         \
    "name: 'm' backend: 'b' input [{ name: 'i' data_type: TYPE_INT32 dims: [ 1 ] }] " \
    "output [{ name: 'o' data_type: TYPE_INT32 dims: [ 1 ] }] "
#define GROUP(count, more) "instance_group [{ count: " count " kind: KIND_CPU " more " }] "

static struct mutex lock = MUTEX_INIT(MUTEX_RANK_LEAF);
static struct mutex_cond changed;
static bool closed; /* executions wait */
static unsigned inside;
static unsigned answered;

static TRITONSERVER_Error *execute(TRITONBACKEND_ModelInstance *instance,
                                   TRITONBACKEND_Request **requests, uint32_t count)
{
    (void)instance;
    mutex_lock(&lock);
    inside++;
    mutex_cond_broadcast(&changed);
    while (closed)
        mutex_cond_wait(&changed, &lock);
    inside--;
    mutex_unlock(&lock);
    for (uint32_t i = 0; i < count; i++) {
        struct request *r = request_take(requests[i]);
        response_send(response_new(r), RESPONSE_FINAL, NULL);
        request_release(r);
    }
    return NULL;
}

static void on_answer(struct response *r, void *owner)
{
    (void)owner;
    assert_null(r->error);
    response_free(r);
    mutex_lock(&lock);
    answered++;
    mutex_cond_broadcast(&changed);
    mutex_unlock(&lock);
}

static void ask(struct serve_version *v)
{
    static const int32_t value = 7;
    const struct tensor_piece piece = {.data = &value, .size = sizeof(value)};
    version_pin(v);
    struct request *r = request_new(&v->target, NULL, on_answer, NULL);
    request_add_input(r, "i", 1, DATATYPE_INT32, (int64_t[]){1}, 1, &piece, 1);
    unit_succeeds(request_prepare(r));
    r->times.start = clock_now_ns();
    submit_now(r);
}

static void wait_for(const unsigned *what, unsigned wanted)
{
    time_ns until = clock_now_ns() + TIME_S(60);
    mutex_lock(&lock);
    while (*what != wanted)
        assert_true(mutex_cond_wait_until(&changed, &lock, until));
    mutex_unlock(&lock);
}

static void set_gate(bool to)
{
    mutex_lock(&lock);
    closed = to;
    mutex_cond_broadcast(&changed);
    mutex_unlock(&lock);
}

/* Changes the set; what is left over is the caller's. */
static struct instances change(struct serve_version *v, const char *text)
{
    struct model_config *config = test_version_config(text);
    struct instances_draft *draft;
    struct instances left;
    unit_succeeds(instances_prepare(v, config, &draft));
    config_unref(config);
    instances_commit(draft, &left);
    return left;
}

static void change_idle(struct serve_version *v, const char *text, uint32_t expected_left)
{
    struct instances left = change(v, text);
    assert_int_equal(left.runner_count, expected_left);
    assert_int_equal(left.passive_count, 0);
    while (!instances_idle(v, &left))
        ;
    instances_free(&left);
}

static struct serve_version *version;
static struct plugin_backend backend;

static int set_up(void **state)
{
    (void)state;
    mutex_cond_init(&changed);
    backend = test_version_backend(execute);
    version = test_version_new(&backend, MODEL GROUP("2", ""), NULL);
    answered = 0;
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    version_drain(version);
    version_free(version);
    return 0;
}

static void keeps_what_both_sets_ask_for(void **state)
{
    (void)state;
    const struct runner *first = version->instances.runners[0];
    const struct runner *second = version->instances.runners[1];
    change_idle(version, MODEL GROUP("4", ""), 0);
    assert_int_equal(version->instances.runner_count, 4);
    assert_ptr_equal(version->instances.runners[0], first);
    assert_ptr_equal(version->instances.runners[1], second);
    change_idle(version, MODEL GROUP("1", "") GROUP("1", "profile: '3'"), 3);
    assert_ptr_equal(version->instances.runners[0], first);
    assert_string_equal(version->instances.runners[1]->instance->group->profile[0], "3");
    struct instances left = change(version, MODEL GROUP("1", "") GROUP("1", "passive: true"));
    assert_int_equal(left.runner_count, 1);
    assert_int_equal(version->instances.passive_count, 1);
    instances_free(&left);
    const struct plugin_instance *passive = version->instances.passive[0];
    change_idle(version, MODEL GROUP("2", "") GROUP("1", "passive: true"), 0);
    assert_ptr_equal(version->instances.passive[0], passive);
    left = change(version, MODEL GROUP("2", ""));
    assert_int_equal(left.passive_count, 1);
    assert_ptr_equal(left.passive[0], passive);
    instances_free(&left);
}

static void shows_the_groups_of_now(void **state)
{
    (void)state;
    struct model_config *before = version_shown(version);
    change_idle(version, MODEL GROUP("3", ""), 0);
    struct model_config *after = version_shown(version);
    assert_ptr_not_equal(before, after);
    assert_ptr_equal(version->config, before); /* requests under way are checked against it */
    config_unref(before);
    config_unref(after);
}

static void what_leaves_finishes_what_it_does(void **state)
{
    (void)state;
    set_gate(true);
    for (unsigned i = 0; i < 5; i++)
        ask(version);
    wait_for(&inside, 2);
    struct instances left = change(version, MODEL GROUP("1", ""));
    assert_int_equal(left.runner_count, 1);
    assert_false(instances_idle(version, &left));
    set_gate(false);
    wait_for(&answered, 5);
    while (!instances_idle(version, &left))
        ;
    instances_free(&left);
    ask(version);
    wait_for(&answered, 6);
}

static void new_ones_take_what_waits(void **state)
{
    (void)state;
    set_gate(true);
    for (unsigned i = 0; i < 4; i++)
        ask(version);
    wait_for(&inside, 2);
    change_idle(version, MODEL GROUP("4", ""), 0);
    wait_for(&inside, 4);
    set_gate(false);
    wait_for(&answered, 4);
}

static void give_back(struct runner *r)
{
    mutex_lock(&version->lock);
    runner_run_inline(r, clock_now_ns());
}

/* Its thread, which waits for work, hears of it as soon as the loop that has the instance gives
 * it back. */
static void what_leaves_may_be_claimed(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 2; i++)
        version->instances.runners[i]->retire_after = TIME_S(3600);
    set_gate(true);
    ask(version);
    ask(version);
    wait_for(&inside, 2);
    set_gate(false);
    wait_for(&answered, 2);
    struct runner *claimed[2] = {NULL, NULL};
    for (uint32_t i = 0; i < 2; i++)
        while (!claimed[i]) {
            mutex_lock(&version->lock);
            claimed[i] = runner_claim(version);
            mutex_unlock(&version->lock);
        }
    struct instances left = change(version, MODEL GROUP("1", ""));
    give_back(claimed[0]);
    give_back(claimed[1]);
    time_ns until = clock_now_ns() + TIME_S(60);
    while (!instances_idle(version, &left))
        assert_true(clock_now_ns() < until);
    instances_free(&left);
}

static void asks_on(void *arg)
{
    for (unsigned i = 0; i < 2000; i++)
        ask(arg);
}

static void no_request_is_lost(void **state)
{
    (void)state;
    static const char *const sets[] = {MODEL GROUP("1", ""), MODEL GROUP("3", ""),
                                       MODEL GROUP("5", ""), MODEL GROUP("2", "")};
    struct thread *threads[3];
    for (size_t i = 0; i < 3; i++)
        assert_null(thread_start("asks", asks_on, version, &threads[i]));
    for (size_t i = 0; i < 200; i++) {
        struct instances left = change(version, sets[i % 4]);
        while (!instances_idle(version, &left))
            ;
        instances_free(&left);
    }
    for (size_t i = 0; i < 3; i++)
        thread_join(threads[i]);
    wait_for(&answered, 6000);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(keeps_what_both_sets_ask_for),      TEST(shows_the_groups_of_now),
        TEST(what_leaves_finishes_what_it_does), TEST(new_ones_take_what_waits),
        TEST(what_leaves_may_be_claimed),        TEST(no_request_is_lost),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
