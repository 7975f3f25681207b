/* repo/plan: keep, load, swap or drop. */
#include "repo/plan.h"

#include "support/unit.h"

static const struct plan_have have[] = {{1, 10}, {3, 30}};

static enum plan_action plan(int64_t number, uint64_t stamp, bool again)
{
    return plan_version(have, 2, &(struct plan_want){number, stamp}, again);
}

static void decides_for_each_version(void **state)
{
    (void)state;
    assert_int_equal(plan(1, 10, false), PLAN_KEEP);
    assert_int_equal(plan(3, 31, false), PLAN_SWAP);
    assert_int_equal(plan(2, 10, false), PLAN_LOAD);
    assert_int_equal(plan(1, 10, true), PLAN_SWAP);
    assert_int_equal(plan(2, 10, true), PLAN_LOAD);
    assert_int_equal(plan_version(NULL, 0, &(struct plan_want){1, 10}, false), PLAN_LOAD);
}

static void drops_what_is_not_wanted(void **state)
{
    (void)state;
    static const struct plan_want want[] = {{1, 10}, {2, 20}};
    assert_false(plan_drops(want, 2, 1));
    assert_true(plan_drops(want, 2, 3));
    assert_true(plan_drops(NULL, 0, 1));
}

UNIT_MAIN(UNIT(decides_for_each_version), UNIT(drops_what_is_not_wanted))
