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

UNIT_MAIN(UNIT(up_to_the_limit), UNIT(lowered_limit), UNIT(releasing_what_was_not_charged),
          UNIT(refused_charges_disturb_nobody))
