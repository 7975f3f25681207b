/* The scheduler under failing allocations: making a batcher, queueing and choosing have none that
 * may fail, however many priority levels there are. */
#include "infer/stats.h"
#include "batching/batcher.h"
#include "support/batcher_sim.h"
#include "support/fault_run.h"
#include "support/unit.h"

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
                               .priority_levels = UINT64_MAX,
                               .default_level = 1,
                               .level_policies = policies,
                               .level_policy_count = 1,
                               .shape_tensors = shape_tensors,
                               .shape_tensor_count = 1};
    assert_int_equal(fault_run(make_batcher, &c), 0);
}

static struct err *play_script(void *arg)
{
    unsigned long batches = 0;
    const char *failure = sim_run(arg, &batches);
    assert_string_equal(failure, "");
    return NULL;
}

static void simulations(void **state)
{
    (void)state;
    static struct sim_script script;
    for (uint64_t seed = 1; seed <= 40; seed++) {
        sim_generate(&script, seed);
        assert_int_equal(fault_run(play_script, &script), 0);
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
