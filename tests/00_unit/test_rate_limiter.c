#include "limits/rate_limiter.h"

#include "support/unit.h"

#define GLOBAL_NEED(n, c)        \
    (struct rate_limiter_need)   \
    {                            \
        (n), (c), .global = true \
    }
#define DEVICE_NEED(n, c)         \
    (struct rate_limiter_need)    \
    {                             \
        (n), (c), .global = false \
    }

static struct rate_limiter *l;

static struct err *try_add(struct rate_limiter_instance **ret, int32_t device, uint32_t priority,
                           const struct rate_limiter_need *needs, size_t count)
{
    struct rate_limiter_terms terms = {needs, count, device, priority};
    return rate_limiter_add(l, &terms, NULL, ret);
}

#define TRY_ADD(ret, device, priority, ...)                                               \
    try_add((ret), (device), (priority), (const struct rate_limiter_need[]){__VA_ARGS__}, \
            sizeof((const struct rate_limiter_need[]){__VA_ARGS__}) /                     \
                sizeof(struct rate_limiter_need))

static struct rate_limiter_instance *add_none(uint32_t priority)
{
    struct rate_limiter_instance *i;
    unit_succeeds(try_add(&i, 0, priority, NULL, 0));
    return i;
}

static struct rate_limiter_instance *add_one(const char *name, uint64_t count, uint32_t priority)
{
    struct rate_limiter_instance *i;
    unit_succeeds(TRY_ADD(&i, 0, priority, GLOBAL_NEED(name, count)));
    return i;
}

static void expect_next(struct rate_limiter_instance *i)
{
    assert_ptr_equal(rate_limiter_next(l), i);
    if (i)
        assert_int_equal(rate_limiter_state(i), RATE_LIMITER_HOLDS);
}

static void expect_available(const char *name, bool global, int32_t device, uint64_t limit)
{
    uint64_t in_use;
    assert_int_equal(rate_limiter_available(l, name, global, device, &in_use), limit);
}

static void remove_all(struct rate_limiter_instance **all, size_t count)
{
    for (size_t k = 0; k < count; k++)
        rate_limiter_remove(all[k]);
    rate_limiter_free(l);
}

/* Without a word of the command line there is as much as the one that needs most asks for, here
 * and now. */
static void the_largest_need_is_what_there_is(void **state)
{
    (void)state;
    l = rate_limiter_new(NULL, 0);
    struct rate_limiter_instance *i[4];
    unit_succeeds(TRY_ADD(&i[0], 0, 0, GLOBAL_NEED("g", 2), DEVICE_NEED("d", 3)));
    unit_succeeds(TRY_ADD(&i[1], 1, 0, GLOBAL_NEED("g", 5), DEVICE_NEED("d", 1)));
    expect_available("g", true, 0, 5);
    expect_available("d", false, 0, 3);
    expect_available("d", false, 1, 1);
    expect_available("d", false, 2, 0);
    rate_limiter_remove(i[1]);
    expect_available("g", true, 0, 2);
    expect_available("d", false, 1, 0);
    unit_succeeds(TRY_ADD(&i[1], 0, 0, GLOBAL_NEED("g", 9), GLOBAL_NEED("g", 1)));
    expect_available("g", true, 0, 2);
    remove_all(i, 2);
}

static void what_the_command_line_says(void **state)
{
    (void)state;
    const struct rate_limiter_supply supplies[] = {{"g", 2, RATE_LIMITER_EVERY_DEVICE},
                                                   {"g", 4, 7},
                                                   {"d", 1, RATE_LIMITER_EVERY_DEVICE},
                                                   {"d", 3, 1}};
    l = rate_limiter_new(supplies, 4);
    struct rate_limiter_instance *i[3];
    unit_succeeds(TRY_ADD(&i[0], 0, 0, GLOBAL_NEED("g", 1), DEVICE_NEED("d", 1)));
    unit_succeeds(TRY_ADD(&i[1], 1, 0, DEVICE_NEED("d", 3)));
    unit_succeeds(TRY_ADD(&i[2], 1, 0, GLOBAL_NEED("h", 0)));
    expect_available("g", true, 0, 4);
    expect_available("d", false, 0, 1);
    expect_available("d", false, 1, 3);
    struct rate_limiter_instance *none = NULL;
    unit_fails(TRY_ADD(&none, 0, 0, DEVICE_NEED("d", 2)), STATUS_INVALID_ARG,
               "Resource count for \"d\" is limited to 1 which will prevent scheduling of one or "
               "more model instances, the minimum required count is 2");
    unit_fails(TRY_ADD(&none, 0, 0, GLOBAL_NEED("h", 1)), STATUS_INVALID_ARG,
               "Resource count for \"h\" is limited to 0");
    unit_fails(TRY_ADD(&none, 0, 0, DEVICE_NEED("D", 1)), STATUS_INVALID_ARG, "limited to 0");
    assert_null(none);
    remove_all(i, 3);
}

static void one_name_is_of_one_kind(void **state)
{
    (void)state;
    l = rate_limiter_new(NULL, 0);
    struct rate_limiter_instance *i[1];
    struct rate_limiter_instance *none = NULL;
    unit_succeeds(TRY_ADD(&i[0], 0, 0, GLOBAL_NEED("g", 2)));
    unit_fails(TRY_ADD(&none, 0, 0, DEVICE_NEED("g", 1)), STATUS_INVALID_ARG,
               "Resource \"g\" is present as both global and device-specific resource in the model "
               "configuration.");
    unit_fails(TRY_ADD(&none, 0, 0, DEVICE_NEED("h", 1), GLOBAL_NEED("h", 1)), STATUS_INVALID_ARG,
               "Resource \"h\" is present as both");
    expect_available("g", true, 0, 2);
    expect_available("h", true, 0, 0);
    remove_all(i, 1);
}

/* Priority 2 runs half as often as priority 1, and who is equal goes in the order of arrival. */
static void the_lowest_product_goes_first(void **state)
{
    (void)state;
    l = rate_limiter_new(NULL, 0);
    struct rate_limiter_instance *i[] = {add_one("r", 1, 2), add_one("r", 1, 1)};
    static const int order[] = {0, 1, 1, 0, 1, 1, 0, 1, 1, 0};
    rate_limiter_want(i[0]);
    rate_limiter_want(i[1]);
    for (size_t k = 0; k < sizeof(order) / sizeof(*order); k++) {
        struct rate_limiter_instance *next = i[order[k]];
        expect_next(next);
        expect_next(NULL);
        rate_limiter_done(next, true);
        rate_limiter_want(next);
    }
    remove_all(i, 2);
}

/* What was held in vain counts as nothing. */
static void only_executions_count(void **state)
{
    (void)state;
    l = rate_limiter_new(NULL, 0);
    struct rate_limiter_instance *i[] = {add_one("r", 1, 1)};
    rate_limiter_want(i[0]);
    expect_next(i[0]);
    rate_limiter_done(i[0], false);
    assert_int_equal(rate_limiter_scaled(i[0]), 0);
    rate_limiter_want(i[0]);
    rate_limiter_done(i[0], false);
    expect_next(NULL);
    remove_all(i, 1);
}

/* Who needs much is not starved by those who need little: they wait behind it, though there is
 * enough for them. */
static void the_one_who_needs_much_gets_it(void **state)
{
    (void)state;
    l = rate_limiter_new(NULL, 0);
    struct rate_limiter_instance *i[] = {add_one("r", 4, 1), add_one("r", 1, 1), add_one("r", 1, 1),
                                         add_one("r", 1, 1)};
    rate_limiter_want(i[1]);
    expect_next(i[1]);
    rate_limiter_want(i[0]);
    rate_limiter_want(i[2]);
    rate_limiter_want(i[3]);
    expect_next(NULL);
    rate_limiter_done(i[1], true);
    expect_next(i[0]);
    expect_next(NULL);
    rate_limiter_done(i[0], true);
    expect_next(i[2]);
    expect_next(i[3]);
    remove_all(i, 4);
}

/* A model that executes may ask another one that needs nothing, or something else, while a third
 * one waits for what it holds. */
static void nobody_waits_behind_a_stranger(void **state)
{
    (void)state;
    l = rate_limiter_new(NULL, 0);
    struct rate_limiter_instance *i[] = {add_one("r", 1, 1), add_one("r", 1, 1), add_none(9),
                                         add_one("s", 1, 9)};
    rate_limiter_want(i[0]);
    expect_next(i[0]);
    rate_limiter_want(i[1]);
    rate_limiter_want(i[2]);
    rate_limiter_want(i[3]);
    expect_next(i[2]);
    expect_next(i[3]);
    expect_next(NULL);
    remove_all(i, 4);
}

/* What somebody held or waited for is there again when it goes; what others hold beyond what is
 * left stays theirs. */
static void instances_go_at_any_moment(void **state)
{
    (void)state;
    l = rate_limiter_new(NULL, 0);
    struct rate_limiter_instance *big = add_one("r", 3, 1);
    struct rate_limiter_instance *i[] = {add_one("r", 1, 1), add_one("r", 1, 1),
                                         add_one("r", 1, 1)};
    for (size_t k = 0; k < 2; k++) {
        rate_limiter_want(i[k]);
        expect_next(i[k]);
    }
    rate_limiter_want(big);
    expect_next(NULL);
    rate_limiter_want(i[2]);
    expect_next(NULL);
    rate_limiter_remove(big); /* now there is only 1, and 2 are in use */
    expect_next(NULL);
    rate_limiter_done(i[0], true);
    expect_next(NULL);
    rate_limiter_remove(i[1]);
    expect_next(i[2]);
    i[1] = NULL;
    remove_all(i, 3);
}

/* More of it may be there because of somebody new. */
static void a_new_instance_may_bring_more(void **state)
{
    (void)state;
    l = rate_limiter_new(NULL, 0);
    struct rate_limiter_instance *i[3] = {add_one("r", 1, 1), add_one("r", 1, 1)};
    rate_limiter_want(i[0]);
    rate_limiter_want(i[1]);
    expect_next(i[0]);
    expect_next(NULL);
    i[2] = add_one("r", 2, 1);
    expect_next(i[1]);
    remove_all(i, 3);
}

UNIT_MAIN(UNIT(the_largest_need_is_what_there_is), UNIT(what_the_command_line_says),
          UNIT(one_name_is_of_one_kind), UNIT(the_lowest_product_goes_first),
          UNIT(only_executions_count), UNIT(the_one_who_needs_much_gets_it),
          UNIT(nobody_waits_behind_a_stranger), UNIT(instances_go_at_any_moment),
          UNIT(a_new_instance_may_bring_more))
