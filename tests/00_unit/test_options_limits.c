#include "server/options/options.h"

#include "support/unit.h"

#include <stdio.h>
#include <string.h>

static struct options o;

static struct err *parse(const char *const *args)
{
    enum options_action action;
    int argc = 1;
    while (args[argc])
        argc++;
    options_fini(&o);
    options_defaults(&o);
    return options_parse(argc, (char *const *)(uintptr_t)args, &o, &action);
}

#define PARSE(...) parse((const char *const[]){"nereid", __VA_ARGS__, NULL})

static void modes(void **state)
{
    (void)state;
    unit_succeeds(PARSE("--rate-limit=Execution_Count"));
    assert_true(o.limits.rates);
    unit_succeeds(PARSE("--rate-limit=OFF"));
    assert_false(o.limits.rates);
    unit_fails(PARSE("--rate-limit=on"), STATUS_INVALID_ARG,
               "option --rate-limit: expected off or execution_count, found 'on'");
}

static void expect_resource(size_t i, const char *name, uint64_t count, int32_t device)
{
    assert_true(i < o.limits.resource_count);
    assert_string_equal(o.limits.resources[i].name, name);
    assert_int_equal(o.limits.resources[i].count, count);
    assert_int_equal(o.limits.resources[i].device, device);
}

/* Of two counts for one thing the smaller one holds, as in the reference. */
static void resources(void **state)
{
    (void)state;
    unit_succeeds(PARSE("--rate-limit-resource=R1:4", "--rate-limit-resource", "R2:0:3",
                        "--rate-limit-resource=R1:7:-1", "--rate-limit-resource=R2:5:2",
                        "--rate-limit-resource=R2:1:2", "--rate-limit-resource=:1"));
    assert_int_equal(o.limits.resource_count, 4);
    expect_resource(0, "R1", 4, OPTIONS_EVERY_DEVICE);
    expect_resource(1, "R2", 0, 3);
    expect_resource(2, "R2", 1, 2);
    expect_resource(3, "", 1, OPTIONS_EVERY_DEVICE);
    static const char *const bad[] = {"r",    "r:",    "r:x",     "r:1x",   "r:-1",
                                      "r:1:", "r:1:x", "r:1:0:0", "r:1:-2", "r:1:99999999999",
                                      "",     "r: 1"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        unit_fails(PARSE("--rate-limit-resource", bad[i]), STATUS_INVALID_ARG,
                   "option --rate-limit-resource: expected <name>:<count>[:<device>], found '");
}

static void policies(void **state)
{
    (void)state;
    unit_succeeds(PARSE("--host-policy=cpu,numa-node=0", "--host-policy=gpu_0,cpu-cores=0-3,5-5",
                        "--host-policy=cpu,numa-node=1"));
    assert_int_equal(o.limits.policy_count, 2);
    assert_string_equal(o.limits.policies[0].policy, "cpu");
    assert_string_equal(o.limits.policies[0].key, "numa-node");
    assert_string_equal(o.limits.policies[0].value, "1");
    assert_string_equal(o.limits.policies[1].policy, "gpu_0");
    assert_string_equal(o.limits.policies[1].value, "0-3,5-5");
    static const char *const bad[] = {
        "x", "cpu,", "cpu,numa-node", "cpu,numa-node=", ",numa-node=0", "cpu,=0", "=1,cpu"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        unit_fails(PARSE("--host-policy", bad[i]), STATUS_INVALID_ARG,
                   "option --host-policy: expected <policy>,<setting>=<value>, found '");
    unit_fails(PARSE("--host-policy=cpu,bad=1"), STATUS_UNSUPPORTED,
               "option --host-policy: Unsupported host policy setting 'bad' is specified");
}

static void not_without_end(void **state)
{
    (void)state;
    char value[32];
    options_fini(&o);
    options_defaults(&o);
    const char *args[2 * (OPTIONS_MAX_RATE_RESOURCES + 1) + 2] = {"nereid"};
    static char texts[OPTIONS_MAX_RATE_RESOURCES + 1][sizeof(value)];
    for (int i = 0; i <= OPTIONS_MAX_RATE_RESOURCES; i++) {
        snprintf(texts[i], sizeof(texts[i]), "r%d:1", i);
        args[1 + 2 * i] = "--rate-limit-resource";
        args[2 + 2 * i] = texts[i];
    }
    unit_fails(parse(args), STATUS_INVALID_ARG, "at most 256 can be given");
    options_fini(&o);
}

UNIT_MAIN(UNIT(modes), UNIT(resources), UNIT(policies), UNIT(not_without_end))
