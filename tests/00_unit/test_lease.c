/* cloud/web/lease: what holds is used while the next is fetched, and when that fails. */
#include "cloud/web/lease.h"

#include "base/mem.h"
#include "os/thread.h"
#include "support/unit.h"

#include <sched.h>
#include <stdatomic.h>
#include <string.h>

static time_ns now;
static struct lease lease;

/* What the next fetch brings: a text, nothing (NULL), or an error ("!"). */
static const char *next;
static time_ns next_life;
static unsigned fetches;
static bool ask_while_fetching;

/* Another thread that asks while a fetch is under way. */
static struct thread *waiter;
static bool want_waiter;
static _Thread_local bool waits;
static atomic_bool looked;

static time_ns clock_of_the_test(void)
{
    if (waits)
        atomic_store(&looked, true);
    return now;
}

static char *get(void)
{
    void *text;
    unit_succeeds(lease_get(&lease, NULL, &text));
    return text;
}

static void wait_for_failure(void *unused)
{
    (void)unused;
    waits = true;
    void *text;
    unit_fails(lease_get(&lease, NULL, &text), STATUS_UNAVAILABLE, "out of order");
}

/* Returns when it waits: it looks whether the value holds with the lock, and then keeps that until
 * it waits. */
static void begin_waiter(void)
{
    assert_null(thread_start("waiter", wait_for_failure, NULL, &waiter));
    while (!atomic_load(&looked))
        sched_yield();
    mutex_lock(&lease.lock);
    mutex_unlock(&lease.lock);
}

static struct err *fetch(void *owner, void *session, struct lease_fresh *ret)
{
    (void)owner;
    (void)session;
    fetches++;
    if (ask_while_fetching) { /* as another thread would */
        char *text = get();
        assert_string_equal(text, "old");
        mem_free(text);
    }
    if (want_waiter)
        begin_waiter();
    if (next && *next == '!')
        return err_new(STATUS_UNAVAILABLE, "out of order");
    ret->none = !next;
    ret->value = mem_strdup(next ? next : "none");
    ret->life = next_life;
    return NULL;
}

static void *copy(const void *value)
{
    return mem_strdup(value);
}

static const struct lease_kind kind = {.fetch = fetch, .copy = copy, .drop = mem_free};

static int setup(void **state)
{
    (void)state;
    now = TIME_S(1000);
    fetches = 0;
    next_life = TIME_S(3600);
    ask_while_fetching = false;
    lease_init(&lease, &kind, NULL);
    lease.now = clock_of_the_test;
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    lease_fini(&lease);
    return 0;
}

static void expect(const char *text, unsigned fetched)
{
    char *found = get();
    assert_string_equal(found, text);
    assert_int_equal(fetches, fetched);
    mem_free(found);
}

static void fails(unsigned fetched)
{
    void *text;
    unit_fails(lease_get(&lease, NULL, &text), STATUS_UNAVAILABLE, "out of order");
    assert_int_equal(fetches, fetched);
}

static void is_replaced_before_it_ends(void **state)
{
    (void)state;
    next = "old";
    expect("old", 1);
    now += TIME_S(3299);
    expect("old", 1);
    next = "new";
    now += TIME_S(2);
    ask_while_fetching = true;
    expect("new", 2);
}

static void a_failed_renewal_hurts_nobody_while_it_holds(void **state)
{
    (void)state;
    next = "old";
    expect("old", 1);
    now += TIME_S(3400);
    next = "!";
    ask_while_fetching = true;
    expect("old", 2);
    ask_while_fetching = false;
    expect("old", 2); /* not at once again */
    now += TIME_S(11);
    expect("old", 3);
    now += TIME_S(100);
    next = NULL; /* nothing is there any more: as little a reason */
    expect("old", 4);
    assert_false(lease_is_none(&lease));
    now += TIME_S(100);
    next = "!";
    fails(5);
    next = "new";
    expect("new", 6);
}

/* A second fetch would fail as late as the first. */
static void who_waits_for_a_fetch_that_fails_is_told(void **state)
{
    (void)state;
    next = "old";
    expect("old", 1);
    now += next_life;
    next = "!";
    want_waiter = true;
    fails(2);
    thread_join(waiter);
    want_waiter = false;
    fails(3); /* who comes later asks again */
}

static void what_was_refused_does_not_hold(void **state)
{
    (void)state;
    next = "old";
    expect("old", 1);
    assert_true(lease_refused(&lease));
    next = "!";
    fails(2);
    next = "new";
    expect("new", 3);
    next_life = TIME_NEVER;
    assert_true(lease_refused(&lease));
    expect("new", 4);
    now += TIME_S(1000000000);
    expect("new", 4);
}

static void nothing_is_believed_for_a_while(void **state)
{
    (void)state;
    next = NULL;
    expect("none", 1);
    assert_true(lease_is_none(&lease));
    assert_false(lease_refused(&lease)); /* it was just looked for */
    next = "found";
    expect("none", 1);
    now += TIME_S(2);
    assert_true(lease_refused(&lease));
    expect("found", 2);
    assert_true(lease_refused(&lease));
    next = NULL;
    expect("none", 3);
    now += TIME_S(29);
    expect("none", 3);
    now += TIME_S(2);
    next = "!";
    fails(4);
}

static void what_has_ended_by_our_clock_is_used_once(void **state)
{
    (void)state;
    next = "ended";
    next_life = 0;
    expect("ended", 1);
    expect("ended", 2);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(is_replaced_before_it_ends),
        TEST(a_failed_renewal_hurts_nobody_while_it_holds),
        TEST(who_waits_for_a_fetch_that_fails_is_told),
        TEST(what_was_refused_does_not_hold),
        TEST(nothing_is_believed_for_a_while),
        TEST(what_has_ended_by_our_clock_is_used_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
