/* The batcher under a virtual clock: random configurations, arrivals, time-outs and
 * cancellations, against a plain oracle. NEREID_SIM_SEED=n plays one seed, NEREID_SIM_RUNS=n
 * sets how many are played. */
#include "support/batcher_sim.h"
#include "support/unit.h"

#include <stdio.h>
#include <stdlib.h>

#define DEFAULT_RUNS 4000ul

static unsigned long from_env(const char *name, unsigned long otherwise)
{
    const char *text = getenv(name);
    return text ? strtoul(text, NULL, 10) : otherwise;
}

static bool play(uint64_t seed, unsigned long *batches)
{
    static struct sim_script script;
    sim_generate(&script, seed);
    if (sim_run(&script, batches)[0] == '\0')
        return true;
    int events = script.event_count;
    sim_shrink(&script);
    unsigned long ignored = 0;
    fprintf(stderr, "NEREID_SIM_SEED=%llu fails: %s (%d of %d events suffice)\n",
            (unsigned long long)seed, sim_run(&script, &ignored), script.event_count, events);
    sim_print(&script);
    return false;
}

/* MC-100, MC-102, MC-103, MC-115, MC-117, PB-87, PB-100, PB-103. */
static void random_scripts(void **state)
{
    (void)state;
    unsigned long one = from_env("NEREID_SIM_SEED", 0);
    unsigned long runs = one ? 1 : from_env("NEREID_SIM_RUNS", DEFAULT_RUNS);
    unsigned long batches = 0;
    for (unsigned long i = 0; i < runs; i++)
        assert_true(play(one ? one : i + 1, &batches));
    if (!one && runs == DEFAULT_RUNS)
        assert_true(batches > 40000); /* the scripts really make the batcher work */
}

UNIT_MAIN(UNIT(random_scripts))
