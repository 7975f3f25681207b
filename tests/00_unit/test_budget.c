#include "base/budget.h"

#include "os/thread.h"
#include "support/unit.h"

static void up_to_the_limit(void **state)
{
    (void)state;
    budget_set_limit(100);
    assert_int_equal(budget_limit(), 100);
    assert_true(budget_charge(60));
    assert_false(budget_charge(41));
    assert_true(budget_charge(40));
    assert_true(budget_charge(0));
    assert_false(budget_charge(1));
    assert_false(budget_charge(SIZE_MAX));
    assert_int_equal(budget_in_use(), 100);
    budget_release(100);
    assert_int_equal(budget_in_use(), 0);
    budget_set_limit(SIZE_MAX);
}

static void charged_up(void **state)
{
    (void)state;
    size_t charged = 0;
    budget_set_limit(100);
    assert_true(budget_charge_up(&charged, 60));
    assert_true(budget_charge_up(&charged, 40));
    assert_int_equal(charged, 60);
    assert_false(budget_charge_up(&charged, 101));
    assert_int_equal(charged, 60);
    assert_true(budget_charge_up(&charged, 100));
    assert_int_equal(charged, 100);
    assert_int_equal(budget_in_use(), 100);
    budget_release(charged);
    budget_set_limit(SIZE_MAX);
}

/* It says how full it is; what would not even fit alone is not to come again. */
static void what_was_refused(void **state)
{
    (void)state;
    budget_set_limit(100);
    assert_true(budget_charge(60));
    const struct {
        size_t wanted;
        uint16_t secs;
    } rows[] = {{0, ERR_RETRY_SOON}, {41, ERR_RETRY_SOON}, {100, ERR_RETRY_SOON}, {101, 0}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct err *e = budget_busy(rows[i].wanted, "no room for '%s'", "x");
        assert_int_equal(err_retry_secs(e), rows[i].secs);
        assert_string_equal(
            err_message(e),
            rows[i].secs ? "no room for 'x': 60 of the 100 bytes that may be in flight at once are "
                           "in use; try again later, or raise --memory-budget"
                         : "no room for 'x': only 100 bytes may be in flight at once; raise "
                           "--memory-budget");
        assert_int_equal(err_code(e), STATUS_UNAVAILABLE);
        err_free(e);
    }
    budget_release(60);
    budget_set_limit(SIZE_MAX);
}

/* A limit below what is in use: nothing more, until enough came back. */
static void lowered_limit(void **state)
{
    (void)state;
    assert_true(budget_charge(50));
    budget_set_limit(10);
    assert_false(budget_charge(1));
    budget_release(45);
    assert_true(budget_charge(5));
    budget_release(10);
    budget_set_limit(SIZE_MAX);
}

static void release_too_much(void *arg)
{
    (void)arg;
    budget_release(1);
}

static void releasing_what_was_not_charged(void **state)
{
    (void)state;
    assert_true(unit_dies(release_too_much, NULL));
}

/* Short of a step nothing is charged, whatever else is in use; what is beyond is charged in
 * steps. */
static void an_account_has_an_allowance(void **state)
{
    (void)state;
    budget_set_limit(2 * BUDGET_STEP);
    struct budget_account *a = budget_account_new();
    assert_true(budget_charge(2 * BUDGET_STEP));
    assert_true(budget_take(a, BUDGET_STEP - 1));
    assert_int_equal(budget_in_use(), 2 * BUDGET_STEP);
    assert_false(budget_account_room(a, 1));
    assert_false(budget_take(a, 1));
    budget_release(BUDGET_STEP);
    assert_true(budget_account_room(a, 1));
    assert_true(budget_take(a, 1));
    assert_int_equal(budget_in_use(), 2 * BUDGET_STEP);
    assert_false(budget_account_room(a, 0));
    assert_false(budget_take(a, BUDGET_STEP));
    budget_hold(a, BUDGET_STEP);
    assert_int_equal(budget_in_use(), 3 * BUDGET_STEP);
    budget_drop(a, 2 * BUDGET_STEP - 7);
    assert_int_equal(budget_in_use(), BUDGET_STEP);
    budget_account_close(a); /* to the last byte from now on */
    assert_int_equal(budget_in_use(), BUDGET_STEP + 7);
    budget_drop(a, 7);
    assert_int_equal(budget_in_use(), BUDGET_STEP);
    budget_release(BUDGET_STEP);
    budget_set_limit(SIZE_MAX);
}

/* Where there is no room: some of it together, or one of any length. */
static void an_answer_is_spared(void **state)
{
    (void)state;
    budget_set_limit(1600);
    assert_true(budget_charge(1600));
    assert_true(budget_spare(1000));
    assert_int_equal(budget_in_use(), 2600);
    assert_false(budget_spare(1));
    budget_unspare(1000);
    assert_true(budget_spare(60));
    assert_false(budget_spare(41));
    assert_true(budget_spare(40));
    assert_false(budget_spare(SIZE_MAX));
    budget_unspare(60);
    budget_unspare(40);
    budget_release(1600);
    assert_int_equal(budget_in_use(), 0);
    budget_set_limit(SIZE_MAX);
}

static void nobodys_account_counts_nothing(void **state)
{
    (void)state;
    budget_hold(NULL, 5);
    assert_true(budget_take(NULL, SIZE_MAX));
    assert_true(budget_account_room(NULL, SIZE_MAX));
    budget_drop(NULL, 5);
    budget_account_close(NULL);
    budget_account_close(budget_account_new());
    assert_int_equal(budget_in_use(), 0);
}

static void hold_and_drop(void *account)
{
    for (int i = 0; i < 100000; i++) {
        budget_hold(account, 3000);
        if (budget_take(account, 20000))
            budget_drop(account, 20000);
        budget_drop(account, 3000);
    }
    budget_drop(account, 1);
}

/* From several threads, closed meanwhile: what is charged always covers what is held, and all of
 * it comes back. */
static void accounts_of_several_threads(void **state)
{
    (void)state;
    struct budget_account *a = budget_account_new();
    struct thread *threads[3];
    budget_hold(a, 3);
    for (int i = 0; i < 3; i++)
        unit_succeeds(thread_start("holder", hold_and_drop, a, &threads[i]));
    budget_account_close(a);
    for (int i = 0; i < 3; i++)
        thread_join(threads[i]);
    assert_int_equal(budget_in_use(), 0);
}

static void charge_far_too_much(void *arg)
{
    (void)arg;
    for (int i = 0; i < 200000; i++)
        if (budget_charge(SIZE_MAX - 7) || budget_charge(101))
            budget_release(SIZE_MAX); /* a failed check */
}

/* A request that cannot be served does not make others fail meanwhile. */
static void refused_charges_disturb_nobody(void **state)
{
    (void)state;
    struct thread *greedy;
    int refused = 0;
    budget_set_limit(100);
    unit_succeeds(thread_start("greedy", charge_far_too_much, NULL, &greedy));
    for (int i = 0; i < 200000; i++) {
        if (budget_charge(50))
            budget_release(50);
        else
            refused++;
    }
    thread_join(greedy);
    assert_int_equal(refused, 0);
    assert_int_equal(budget_in_use(), 0);
    budget_set_limit(SIZE_MAX);
}

UNIT_MAIN(UNIT(up_to_the_limit), UNIT(charged_up), UNIT(what_was_refused), UNIT(lowered_limit),
          UNIT(releasing_what_was_not_charged), UNIT(refused_charges_disturb_nobody),
          UNIT(an_account_has_an_allowance), UNIT(an_answer_is_spared),
          UNIT(nobodys_account_counts_nothing), UNIT(accounts_of_several_threads))
