/* The final response of a request comes last, whichever threads send its responses, and whatever
 * they keep back. */
#include "base/budget.h"
#include "infer/request.h"
#include "infer/response.h"
#include "model/config.h"
#include "os/backlog.h"
#include "os/loop.h"
#include "os/thread.h"
#include "support/test_version.h"
#include "support/unit.h"

#include <sched.h>
#include <string.h>

static struct request_target target;
static char order[16]; /* p for a response that is not final, f for the final one */
static struct loop *house;
static unsigned given_way;

/* In place of the C library's. */
int sched_yield(void)
{
    given_way++;
    return 0;
}

static void unpin(struct request_target *t)
{
    assert_ptr_equal(t->unpin, unpin);
}

static void take(struct response *r, void *owner)
{
    (void)owner;
    bool final = r->flags & RESPONSE_FINAL;
    order[strlen(order)] = final ? 'f' : 'p';
    response_free(r);
    if (final && house)
        loop_stop(house);
}

static struct request *ask(void)
{
    struct request *r = request_new(&target, house, take, NULL);
    r->with_backend = true;
    return r;
}

static int make_target(void **state)
{
    (void)state;
    memset(order, 0, sizeof(order));
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

static void send_final(void *request)
{
    assert_true(response_send(response_new(request), RESPONSE_FINAL, NULL));
    request_release(request);
}

/* A thread that keeps back what it sends sends the first, another one the last. */
static void sent_by_two(void)
{
    struct thread *thread;
    struct response_batch batch;
    struct request *r = ask();
    response_batch_begin(&batch);
    assert_true(response_send(response_new(r), 0, NULL));
    assert_null(thread_start("final", send_final, r, &thread));
    thread_join(thread);
    response_batch_end(&batch);
}

static void to_no_loop(void **state)
{
    (void)state;
    house = NULL;
    sent_by_two();
    assert_string_equal(order, "pf");
}

static void to_a_loop(void **state)
{
    (void)state;
    assert_null(loop_new(&house));
    sent_by_two();
    loop_run(house);
    assert_string_equal(order, "pf");
    loop_free(house);
    house = NULL;
}

static void discard(struct response *r, void *owner)
{
    (void)owner;
    response_free(r);
}

/* A model that answers faster than the loop passes on waits for the loop. */
static void faster_than_the_loop(void **state)
{
    (void)state;
    assert_null(loop_new(&house));
    struct request *r = request_new(&target, house, discard, NULL);
    r->with_backend = true;
    for (unsigned i = 0; i <= BACKLOG_MOST; i++) /* the first one does not follow others */
        assert_true(response_send(response_new(r), 0, NULL));
    time_ns begun = clock_now_ns();
    assert_true(response_send(response_new(r), 0, NULL));
    assert_true(clock_now_ns() - begun >= BACKLOG_LONGEST);
    send_final(r);
    loop_stop(house);
    loop_run(house);
    loop_free(house);
    house = NULL;
}

/* The loop sends the final response while the one before is in its mail. */
static struct request *ending;

static void end_on_loop(struct mail *m)
{
    (void)m;
    struct response_batch batch;
    response_batch_begin(&batch);
    send_final(ending);
    response_batch_end(&batch);
}

static void by_the_loop(void **state)
{
    (void)state;
    struct mail first = {.deliver = end_on_loop};
    assert_null(loop_new(&house));
    ending = ask();
    loop_post(house, &first, &first);
    assert_true(response_send(response_new(ending), 0, NULL));
    loop_run(house);
    assert_string_equal(order, "pf");
    loop_free(house);
    house = NULL;
}

/* What a model goes on to send after its client was given up does not get to the loop, and loops
 * that have something to do go first. */
static void to_nobody(void **state)
{
    (void)state;
    house = NULL;
    given_way = 0;
    struct request *r = ask();
    request_bound(r);
    assert_true(response_send(response_new(r), 0, NULL));
    assert_int_equal(given_way, 0);
    request_cancel(r);
    for (int i = 0; i < 3; i++)
        assert_true(response_send(response_new(r), 0, NULL));
    send_final(r);
    assert_string_equal(order, "pf");
    assert_int_equal(given_way, 3);
}

/* A client that has megabytes to take gets no more before others had their turn. */
static void to_somebody_who_lags(void **state)
{
    (void)state;
    enum { MUCH = 4 << 20 };
    house = NULL;
    given_way = 0;
    struct budget_account *account = budget_account_new();
    struct request *r = ask();
    request_account(r, account);
    assert_true(response_send(response_new(r), 0, NULL));
    request_bound(r);
    assert_true(response_send(response_new(r), 0, NULL));
    assert_int_equal(given_way, 0);
    budget_hold(account, MUCH);
    assert_true(response_send(response_new(r), 0, NULL));
    assert_int_equal(given_way, 1);
    budget_drop(account, MUCH);
    assert_true(response_send(response_new(r), 0, NULL));
    assert_int_equal(given_way, 1);
    send_final(r);
    assert_string_equal(order, "ppppf");
    budget_account_close(account);
}

static void send_to_nobody(struct mail *m)
{
    (void)m;
    request_cancel(ending);
    assert_true(response_send(response_new(ending), 0, NULL));
    send_final(ending);
}

/* A loop that executes a model itself does not give way to itself. */
static void to_nobody_on_the_loop(void **state)
{
    (void)state;
    struct mail first = {.deliver = send_to_nobody};
    assert_null(loop_new(&house));
    given_way = 0;
    ending = ask();
    request_bound(ending);
    loop_post(house, &first, &first);
    loop_run(house);
    assert_string_equal(order, "f");
    assert_int_equal(given_way, 0);
    loop_free(house);
    house = NULL;
}

/* A step of an ensemble that answers several times is not kept back: its instance goes on
 * meanwhile. */
static void of_a_step(void **state)
{
    (void)state;
    struct request_target one = target;
    struct request_target many = target;
    many.config = test_version_config("name: 'e' platform: 'ensemble' model_transaction_policy { "
                                      "decoupled: true } output { name: 'o' data_type: TYPE_INT32 "
                                      "dims: [ 1 ] }");
    for (unsigned depth = 0; depth < 3; depth++) {
        memset(order, 0, sizeof(order));
        struct request *root = request_new(depth ? &many : &one, NULL, take, NULL);
        struct request *outer = depth == 2 ? request_new(&one, NULL, take, NULL) : NULL;
        struct request *step = ask();
        if (outer)
            outer->parent = request_ref(root);
        step->parent = request_ref(outer ? outer : root);
        struct response_batch batch;
        response_batch_begin(&batch);
        send_final(step);
        assert_string_equal(order, depth ? "f" : "");
        response_batch_end(&batch);
        assert_string_equal(order, "f");
        if (outer)
            send_final(outer);
        send_final(root);
    }
    config_unref((struct model_config *)(uintptr_t)many.config);
}

/* Sends for one of several requests that are executed together; returns how many answers the loop
 * has heard of. */
static size_t heard_after(struct request *one)
{
    send_final(one);
    loop_stop(house);
    loop_run(house);
    return strlen(order);
}

static void pass(time_ns time)
{
    for (time_ns until = clock_now_ns() + time; clock_now_ns() < until;)
        continue;
}

/* Answers that are computed one by one do not wait for the last one; of a backend that is known
 * for that, not for the next one either. */
static void of_a_long_run_if(bool apart)
{
    struct response_batch batch;
    struct request *r[5];
    bool kept = false;
    assert_null(loop_new(&house));
    for (unsigned tries = 0; tries < 1000 && !kept; tries++) {
        memset(order, 0, sizeof(order));
        for (size_t i = 0; i < 5; i++)
            r[i] = ask();
        response_batch_begin(&batch);
        response_batch_executes(&batch, r, 5, clock_now_ns());
        response_batch_expect(&batch, 5, apart);
        assert_int_equal(heard_after(r[0]), apart ? 1 : 0);
        kept = heard_after(r[1]) == (apart ? 1 : 0); /* unless it was held up in between */
        pass(RESPONSE_KEPT_NS);
        assert_int_equal(heard_after(r[2]), 3);
        assert_true(batch.apart);
        heard_after(r[3]);
        assert_int_equal(heard_after(r[4]), 5);
        response_batch_end(&batch);
        assert_string_equal(order, "fffff");
    }
    assert_true(kept);
    loop_free(house);
    house = NULL;
}

static void of_a_long_run(void **state)
{
    (void)state;
    of_a_long_run_if(false);
    of_a_long_run_if(true);
}

static time_ns told; /* what response_batch_now was while the answer was taken */

static void take_the_time(struct response *r, void *owner)
{
    struct response_batch within;
    told = response_batch_now();
    response_batch_begin(&within);
    if (owner)
        send_final(request_new(&target, NULL, take_the_time, NULL));
    response_batch_end(&within);
    response_free(r);
}

static void end_a_batch(time_ns now, void *owner)
{
    struct response_batch batch;
    response_batch_begin(&batch);
    struct request *r = request_new(&target, NULL, take_the_time, owner);
    r->with_backend = true;
    send_final(r);
    batch.now = now;
    response_batch_end(&batch);
}

/* What follows from the answers of a batch has the batch's time, if it has one. */
static void at_the_time_of_the_batch(void **state)
{
    (void)state;
    time_ns before = clock_now_ns();
    end_a_batch(17, NULL);
    assert_int_equal(told, 17);
    end_a_batch(0, NULL);
    assert_true(told >= before && told <= clock_now_ns());
    end_a_batch(17, &told); /* a batch within it, whose time is not known */
    assert_true(told >= before && told <= clock_now_ns());
    assert_true(response_batch_now() >= before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(to_no_loop, make_target, drop_target),
        cmocka_unit_test_setup_teardown(to_a_loop, make_target, drop_target),
        cmocka_unit_test_setup_teardown(faster_than_the_loop, make_target, drop_target),
        cmocka_unit_test_setup_teardown(by_the_loop, make_target, drop_target),
        cmocka_unit_test_setup_teardown(to_nobody, make_target, drop_target),
        cmocka_unit_test_setup_teardown(to_somebody_who_lags, make_target, drop_target),
        cmocka_unit_test_setup_teardown(to_nobody_on_the_loop, make_target, drop_target),
        cmocka_unit_test_setup_teardown(of_a_step, make_target, drop_target),
        cmocka_unit_test_setup_teardown(of_a_long_run, make_target, drop_target),
        cmocka_unit_test_setup_teardown(at_the_time_of_the_batch, make_target, drop_target),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
