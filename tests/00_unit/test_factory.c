/* Response factories: what they keep of a request, and when a sweep ends a request that nothing
 * but forgotten factories holds. */
#include "infer/factory.h"

#include "infer/request.h"
#include "infer/response.h"
#include "model/config.h"
#include "os/thread.h"
#include "support/test_version.h"
#include "support/unit.h"

#include <stdatomic.h>

#define BEGIN  TIME_S(100)
#define LATER  (BEGIN + FACTORY_GRACE_NS)
#define MANY   300
#define ROUNDS 20

static struct request_target target;
static atomic_int pins; /* of all requests */
static struct response *kept;

static void unpin(struct request_target *t)
{
    assert_ptr_equal(t, &target);
    atomic_fetch_sub(&pins, 1);
}

static void take(struct response *r, void *owner)
{
    if (owner)
        kept = r;
    else
        response_free(r);
}

static struct request *ask(void *owner)
{
    atomic_fetch_add(&pins, 1);
    struct request *r = request_new(&target, NULL, take, owner);
    r->with_backend = true;
    return r;
}

static void answer(struct request *r)
{
    assert_true(response_send(response_new(r), RESPONSE_FINAL, NULL));
}

static int make_target(void **state)
{
    (void)state;
    target = (struct request_target){
        .config = test_version_config("name: 'm' backend: 'none' output { name: 'o' data_type: "
                                      "TYPE_INT32 dims: [ 1 ] }"),
        .unpin = unpin};
    return 0;
}

static int drop_target(void **state)
{
    (void)state;
    config_unref((struct model_config *)(uintptr_t)target.config);
    return 0;
}

static void answer_a_part(void *arg)
{
    struct request *r = arg;
    request_with_backend(r); /* as whoever calls Execute does */
    assert_true(response_send(response_new(r), 0, NULL));
}

/* Another thread's request is let go of by whoever submitted it, who has heard nothing of that
 * thread but that a response was sent. */
static void let_go_of_between_two_responses(void **state)
{
    (void)state;
    int owner;
    struct thread *t;
    struct request *r = ask(&owner);
    r->with_backend = false;
    request_ref(r);
    unit_succeeds(thread_start("backend", answer_a_part, r, &t));
    while (atomic_load_explicit(&r->sent_refs, memory_order_relaxed) == 0)
        ;
    request_unref(r);
    thread_join(t);
    response_free(kept);
    answer(r);
    response_free(kept);
    request_release(r);
    assert_int_equal(atomic_load(&pins), 0);
}

/* Two sweeps, as far apart as a backend has time; returns what the second one emptied. */
static size_t sweep_twice(void)
{
    assert_int_equal(factory_sweep(BEGIN), 0);
    assert_int_equal(factory_sweep(LATER - 1), 0);
    return factory_sweep(LATER);
}

static void deleted_in_time(void **state)
{
    (void)state;
    struct request *r = ask(NULL);
    void *f = factory_new(r);
    struct request *found = factory_request(f);
    assert_ptr_equal(found, r);
    request_unref(found);
    request_release(r);
    answer(r);
    assert_int_equal(factory_sweep(BEGIN), 0);
    assert_int_equal(atomic_load(&pins), 1);
    assert_true(factory_delete(f));
    assert_int_equal(atomic_load(&pins), 0);
    assert_false(factory_delete(f));
    assert_null(factory_request(f));
    assert_int_equal(factory_sweep(LATER), 0);
}

static void no_factories(void **state)
{
    (void)state;
    struct request *r = ask(NULL);
    void *const handles[] = {NULL, (void *)(uintptr_t)1, &r, request_handle(r)};
    for (size_t i = 0; i < sizeof(handles) / sizeof(handles[0]); i++) {
        assert_null(factory_request(handles[i]));
        assert_false(factory_delete(handles[i]));
    }
    answer(r);
    request_release(r);
}

/* The request goes, and with it what it holds; the handle is none any more. */
static void forgotten(void **state)
{
    (void)state;
    struct request *r = ask(NULL);
    void *f = factory_new(r);
    answer(r);
    request_release(r);
    assert_int_equal(sweep_twice(), 1);
    assert_int_equal(atomic_load(&pins), 0);
    assert_null(factory_request(f));
    assert_false(factory_delete(f));
    assert_int_equal(factory_sweep(LATER + TIME_S(100)), 0);
}

static void several_of_a_request(void **state)
{
    (void)state;
    struct request *r = ask(NULL);
    void *f[3] = {factory_new(r), factory_new(r), factory_new(r)};
    answer(r);
    request_release(r);
    assert_true(factory_delete(f[1]));
    assert_int_equal(sweep_twice(), 2);
    assert_int_equal(atomic_load(&pins), 0);
    assert_false(factory_delete(f[0]));
    assert_false(factory_delete(f[2]));
}

static void many_requests(void **state)
{
    (void)state;
    void *f[MANY];
    for (int i = 0; i < MANY; i++) {
        struct request *r = ask(NULL);
        f[i] = factory_new(r);
        request_release(r);
        answer(r);
    }
    assert_int_equal(sweep_twice(), MANY);
    assert_int_equal(atomic_load(&pins), 0);
    for (int i = 0; i < MANY; i++)
        assert_false(factory_delete(f[i]));
}

/* Whatever else of a request is still to come keeps it: the final response, the release, a
 * response that was not sent, one that was sent and is still read. */
static void not_over_yet(void **state)
{
    (void)state;
    struct request *r = ask(&kept);
    void *f = factory_new(r);
    struct response *unsent = response_new(r);
    assert_int_equal(sweep_twice(), 0);
    request_release(r);
    assert_int_equal(factory_sweep(LATER), 0);
    answer(r);
    assert_int_equal(factory_sweep(LATER), 0);
    response_free(unsent);
    assert_int_equal(factory_sweep(LATER), 0);
    assert_int_equal(factory_sweep(LATER + FACTORY_GRACE_NS), 0);
    response_free(kept);
    /* Only from here on is it over. */
    assert_int_equal(factory_sweep(LATER), 0);
    assert_int_equal(atomic_load(&pins), 1);
    assert_int_equal(factory_sweep(LATER + FACTORY_GRACE_NS), 1);
    assert_int_equal(atomic_load(&pins), 0);
    assert_false(factory_delete(f));
}

/* A backend that comes late after all: each factory is deleted by one of the two, and each
 * request ends once. */
struct late {
    void *handles[MANY];
    int deleted;
};

static void delete_late(void *arg)
{
    struct late *l = arg;
    for (int i = 0; i < MANY; i++) {
        struct request *found = i % 3 ? NULL : factory_request(l->handles[i]);
        if (found)
            request_unref(found);
        l->deleted += factory_delete(l->handles[i]);
    }
}

static void deleted_while_swept(void **state)
{
    (void)state;
    time_ns now = BEGIN;
    for (int round = 0; round < ROUNDS; round++) {
        struct late l = {.deleted = 0};
        for (int i = 0; i < MANY; i++) {
            struct request *r = ask(NULL);
            l.handles[i] = factory_new(r);
            answer(r);
            request_release(r);
        }
        struct thread *thread;
        unit_succeeds(thread_start("late", delete_late, &l, &thread));
        size_t swept = 0;
        for (int i = 0; i < 10; i++)
            swept += factory_sweep(now += FACTORY_GRACE_NS);
        thread_join(thread);
        swept += factory_sweep(now += FACTORY_GRACE_NS);
        swept += factory_sweep(now += FACTORY_GRACE_NS);
        assert_int_equal((size_t)l.deleted + swept, MANY);
        assert_int_equal(atomic_load(&pins), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        UNIT(deleted_in_time),     UNIT(no_factories),
        UNIT(forgotten),           UNIT(several_of_a_request),
        UNIT(many_requests),       UNIT(not_over_yet),
        UNIT(deleted_while_swept), UNIT(let_go_of_between_two_responses),
    };
    return cmocka_run_group_tests(tests, make_target, drop_target);
}
