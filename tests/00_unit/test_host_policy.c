#include "plugin/host_policy.h"

#include "base/fault.h"
#include "base/mem.h"
#include "os/process/cpu_bind.h"
#include "proto/model_config.pb-c.h"
#include "support/unit.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>

#define CPU   TRITONSERVER_INSTANCEGROUPKIND_CPU
#define GPU   TRITONSERVER_INSTANCEGROUPKIND_GPU
#define MODEL TRITONSERVER_INSTANCEGROUPKIND_MODEL

static struct host_policy *make(const struct host_policies *all,
                                TRITONSERVER_InstanceGroupKind kind, const char *named)
{
    Inference__ModelInstanceGroup group;
    inference__model_instance_group__init(&group);
    if (named)
        group.host_policy = (char *)(uintptr_t)named;
    return host_policy_new(all, kind, 3, &group);
}

static void expect_json(struct host_policy *p, const char *expected)
{
    size_t len;
    char *json = host_policy_json(p, &len);
    assert_string_equal(json, expected);
    assert_int_equal(len, strlen(expected));
    mem_free(json);
    host_policy_free(p);
}

/* A group that names none has the one of its device; what was said of others is not its. */
static void names_and_settings(void **state)
{
    (void)state;
    const struct host_policy_setting settings[] = {{"cpu", "numa-node", "0"},
                                                   {"cpu", "cpu-cores", "0-0"},
                                                   {"gpu_3", "cpu-cores", "1-1"},
                                                   {"a \"b\"", "numa-node", "7"},
                                                   {"cpu", "cpu-cores", "0-1,3-3"}};
    const struct host_policies all = {settings, 5};
    expect_json(make(NULL, CPU, NULL), "{\"cpu\":{}}");
    expect_json(make(NULL, GPU, NULL), "{\"gpu_3\":{}}");
    expect_json(make(&all, MODEL, NULL), "{\"model\":{}}");
    expect_json(make(&all, MODEL, "mine"), "{\"mine\":{}}");
    expect_json(make(&all, GPU, NULL), "{\"gpu_3\":{\"cpu-cores\":\"1-1\"}}");
    expect_json(make(&all, CPU, NULL), "{\"cpu\":{\"cpu-cores\":\"0-1,3-3\",\"numa-node\":\"0\"}}");
    expect_json(make(&all, CPU, "a \"b\""), "{\"a \\\"b\\\"\":{\"numa-node\":\"7\"}}");
    unit_succeeds(host_policy_check_key("numa-node"));
    unit_succeeds(host_policy_check_key("cpu-cores"));
    unit_fails(host_policy_check_key("memory"), STATUS_UNSUPPORTED,
               "Unsupported host policy setting 'memory' is specified, supported settings are "
               "'numa-node', 'cpu-cores'");
}

/* Binds this thread as `key` = `value` says, and lets it go again. */
static struct err *enter(const char *key, const char *value, cpu_set_t *ret_within)
{
    const struct host_policy_setting setting = {"cpu", key, value};
    const struct host_policies all = {&setting, 1};
    struct host_policy *p = make(&all, CPU, NULL);
    struct cpu_bind *was;
    assert_true(host_policy_binds(p));
    struct err *e = host_policy_enter(p, &was);
    assert_int_equal(sched_getaffinity(0, sizeof(*ret_within), ret_within), 0);
    cpu_bind_restore(was);
    host_policy_free(p);
    return e;
}

static void values_that_are_none(void **state)
{
    (void)state;
    static const struct {
        const char *value;
        const char *message;
    } cases[] = {
        {"0", "host policy setting 'cpu-cores' format is "
              "'<lower_cpu_core_id>-<upper_cpu_core_id>'. Got 0"},
        {"0-0,", "Got "},
        {"0-0,1", "Got 1"},
        {"0,1-1", "Got 0"},
        {"0-x", "Parsing 'cpu-cores' value: Can't parse 'x' to integer"},
        {"-1-0", "Can't parse '' to integer"},
        {"0-1-2", "Can't parse '1-2' to integer"},
        {"0-99999999999", "Can't parse '99999999999' to integer"},
        {"0-99999999999999999999999999999999999999", "to integer"},
    };
    cpu_set_t before;
    cpu_set_t after;
    assert_int_equal(sched_getaffinity(0, sizeof(before), &before), 0);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        unit_fails(enter("cpu-cores", cases[i].value, &after), STATUS_INVALID_ARG,
                   cases[i].message);
    unit_fails(enter("numa-node", "x", &after), STATUS_INVALID_ARG,
               "Parsing 'numa-node' value: Can't parse 'x' to integer");
    unit_fails(enter("cpu-cores", "1-0", &after), STATUS_INTERNAL,
               "cpu-cores=1-0 of host policy 'cpu': Unable to set NUMA thread affinity: "
               "Invalid argument");
    unit_fails(enter("cpu-cores", "1022-2000", &after), STATUS_INTERNAL, "Unable to set NUMA");
    assert_true(CPU_EQUAL(&before, &after));
}

/* The first core that this thread may use, and a number beyond all of them. */
static void cores_and_back(void **state)
{
    (void)state;
    cpu_set_t before;
    cpu_set_t within;
    char text[64];
    unsigned first = 0;
    assert_int_equal(sched_getaffinity(0, sizeof(before), &before), 0);
    while (!CPU_ISSET(first, &before))
        first++;
    snprintf(text, sizeof(text), " %u-%u,1000-5000", first, first);
    unit_succeeds(enter("cpu-cores", text, &within));
    assert_int_equal(CPU_COUNT(&within), 1);
    assert_true(CPU_ISSET(first, &within));
    assert_int_equal(sched_getaffinity(0, sizeof(within), &within), 0);
    assert_true(CPU_EQUAL(&before, &within));
    struct host_policy *p = make(NULL, CPU, NULL);
    assert_false(host_policy_binds(p));
    unit_succeeds(host_policy_bind(p));
    host_policy_free(p);
}

/* Node 0 is everywhere, unless the system lets nobody choose: then nothing is bound, and nothing
 * fails. */
static void nodes(void **state)
{
    (void)state;
    cpu_set_t within;
    unit_succeeds(enter("numa-node", "0", &within));
    static const char *const missing[] = {"-1", "1000", "64000"};
    for (size_t i = 0; i < 3; i++) {
        struct err *e = enter("numa-node", missing[i], &within);
        if (e)
            unit_fails(e, STATUS_INTERNAL, "Unable to set NUMA memory policy: Invalid argument");
        else
            assert_int_equal(i, 1);
    }
}

/* Cores that the system refuses are an error, a choice of nodes that it refuses to all is none. */
static void refused_by_the_system(void **state)
{
    (void)state;
    cpu_set_t within;
    fault_arm(1);
    unit_fails(enter("cpu-cores", "0-1023", &within), STATUS_INTERNAL,
               "Unable to set NUMA thread affinity");
    fault_arm(1);
    unit_succeeds(enter("numa-node", "0", &within));
    fault_arm(0);
}

UNIT_MAIN(UNIT(names_and_settings), UNIT(values_that_are_none), UNIT(cores_and_back), UNIT(nodes),
          UNIT(refused_by_the_system))
