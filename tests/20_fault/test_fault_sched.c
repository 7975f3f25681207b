/* The scheduler under failing allocations: making a batcher may fail, queueing and choosing have
 * nothing that can. */
#include "infer/stats.h"
#include "sched/batcher.h"
#include "support/batcher_sim.h"
#include "support/fault_run.h"
#include "support/unit.h"

#include <string.h>

static struct err *make_batcher(void *arg)
{
    struct batcher *b = NULL;
    struct err *e = batcher_new(arg, &b);
    batcher_free(b);
    return e;
}

static void batchers(void **state)
{
    (void)state;
    const int32_t preferred[] = {2, 4};
    const char *const shape_tensors[] = {"s"};
    const struct batcher_level_policy policies[] = {{3, {.max_queue_size = 1}}};
    struct batcher_config c = {.dynamic = true,
                               .max_batch_size = 8,
                               .preferred = preferred,
                               .preferred_count = 2,
                               .priority_levels = 1000,
                               .default_level = 1,
                               .level_policies = policies,
                               .level_policy_count = 1,
                               .shape_tensors = shape_tensors,
                               .shape_tensor_count = 1};
    assert_true(fault_run(make_batcher, &c) >= 2);
}

/* One script of the simulation; what fails must be the making of the batcher, and nothing later. */
static struct err *play_script(void *arg)
{
    unsigned long batches = 0;
    const char *failure = sim_run(arg, &batches);
    if (failure[0] == '\0')
        return NULL;
    if (!strstr(failure, "batcher_new: no memory")) {
        print_error("%s\n", failure);
        fail();
    }
    return err_new(STATUS_UNAVAILABLE, "%s", failure);
}

static void simulations(void **state)
{
    (void)state;
    static struct sim_script script;
    for (uint64_t seed = 1; seed <= 40; seed++) {
        sim_generate(&script, seed);
        assert_int_equal(fault_run(play_script, &script), 2);
    }
}

static struct err *record(void *arg)
{
    (void)arg;
    const struct stats_compute c = {1, 2, 3, 4};
    struct stats *s = stats_new();
    for (uint64_t i = 0; i < 1000; i++) {
        stats_success(s, 1, 1, &c, i * 1000000, 1);
        stats_batch(s, (uint32_t)i, &c, 1);
        stats_failure(s, STATS_OTHER, 1, 2);
    }
    stats_free(s);
    return NULL;
}

/* A request that was computed is counted, whatever the state of memory. */
static void statistics(void **state)
{
    (void)state;
    assert_int_equal(fault_run(record, NULL), 0);
}

UNIT_MAIN(UNIT(batchers), UNIT(simulations), UNIT(statistics))
