/* repo/plan: keep, load, swap or drop. */
#include "repo/plan.h"

#include "model/config.h"
#include "support/unit.h"

#include <string.h>

static const struct plan_have have[] = {{1, 10}, {3, 30}};

static enum plan_action plan(int64_t number, uint64_t stamp, enum plan_change change)
{
    return plan_version(have, 2, &(struct plan_want){number, stamp}, change);
}

static void decides_for_each_version(void **state)
{
    (void)state;
    assert_int_equal(plan(1, 10, PLAN_SAME), PLAN_KEEP);
    assert_int_equal(plan(3, 31, PLAN_SAME), PLAN_SWAP);
    assert_int_equal(plan(2, 10, PLAN_SAME), PLAN_LOAD);
    assert_int_equal(plan(1, 10, PLAN_ANY), PLAN_SWAP);
    assert_int_equal(plan(2, 10, PLAN_ANY), PLAN_LOAD);
    assert_int_equal(plan(1, 10, PLAN_GROUPS), PLAN_RESIZE);
    assert_int_equal(plan(1, 11, PLAN_GROUPS), PLAN_SWAP);
    assert_int_equal(plan(2, 10, PLAN_GROUPS), PLAN_LOAD);
    assert_int_equal(plan_version(NULL, 0, &(struct plan_want){1, 10}, PLAN_SAME), PLAN_LOAD);
}

static void drops_what_is_not_wanted(void **state)
{
    (void)state;
    static const struct plan_want want[] = {{1, 10}, {2, 20}};
    assert_false(plan_drops(want, 2, 1));
    assert_true(plan_drops(want, 2, 3));
    assert_true(plan_drops(NULL, 0, 1));
}

static enum plan_change compare(const char *was, const char *now)
{
    struct Inference__ModelConfig *a;
    struct Inference__ModelConfig *b;
    assert_null(config_parse_text(was, strlen(was), "was", &a));
    assert_null(config_parse_text(now, strlen(now), "now", &b));
    enum plan_change change = plan_compare(a, b, "m");
    config_free_proto(a);
    config_free_proto(b);
    return change;
}

static void tells_a_change_of_instances_from_others(void **state)
{
    (void)state;
    assert_int_equal(compare("name: 'm'", "name: \"m\" # the same"), PLAN_SAME);
    assert_int_equal(compare("name: 'm'", "name: 'm' instance_group { count: 2 }"), PLAN_GROUPS);
    assert_int_equal(compare("name: 'm'", "version_policy { latest { num_versions: 1 } }"),
                     PLAN_SAME);
    assert_int_equal(compare("name: 'm'", "optimization { input_pinned_memory { enable: true } }"),
                     PLAN_SAME);
    assert_int_equal(compare("version_policy { all {} }", "version_policy { latest {} }"),
                     PLAN_GROUPS);
    assert_int_equal(compare("max_batch_size: 1", "instance_group { count: 2 }"), PLAN_ANY);
}

UNIT_MAIN(UNIT(tells_a_change_of_instances_from_others), UNIT(decides_for_each_version),
          UNIT(drops_what_is_not_wanted))
