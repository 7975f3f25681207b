/* Making, shrinking and printing the scripts of the batcher simulation. */
#include "support/batcher_sim.h"

#include "support/unit.h"

#include <stdio.h>
#include <string.h>

static uint64_t below(uint64_t *state, uint64_t n)
{
    return unit_random(state) % n;
}

static bool chance(uint64_t *state, unsigned percent)
{
    return below(state, 100) < percent;
}

static uint64_t one_of(uint64_t *state, const uint64_t *values, size_t n)
{
    return values[below(state, n)];
}
#define ONE_OF(state, ...) \
    one_of((state), (const uint64_t[]){__VA_ARGS__}, sizeof((uint64_t[]){__VA_ARGS__}) / 8)

static struct batcher_policy random_policy(uint64_t *rng)
{
    return (struct batcher_policy){
        .action = chance(rng, 50) ? BATCHER_TIMEOUT_REJECT : BATCHER_TIMEOUT_DELAY,
        .allow_timeout_override = chance(rng, 50),
        .default_timeout_us = ONE_OF(rng, 0, 0, 60, 200, 900),
        .max_queue_size = (uint32_t)ONE_OF(rng, 0, 0, 0, 3, 8),
    };
}

static void random_config(struct sim_script *s, uint64_t *rng)
{
    static const char *const shape_tensors[] = {"s"};
    struct batcher_config *c = &s->config;
    c->dynamic = chance(rng, 85);
    c->max_batch_size = (uint32_t)ONE_OF(rng, 0, 1, 2, 4, 8, 8, 16);
    c->preferred = s->preferred;
    for (uint64_t i = below(rng, 4); i && c->max_batch_size; i--)
        s->preferred[c->preferred_count++] = 1 + (int32_t)below(rng, c->max_batch_size);
    c->delay_us = ONE_OF(rng, 0, 0, 50, 100, 1000);
    c->priority_levels = ONE_OF(rng, 0, 0, 1, 2, 3, 70);
    c->default_level = c->priority_levels ? 1 + below(rng, c->priority_levels) : 0;
    c->default_policy = chance(rng, 40) ? (struct batcher_policy){0} : random_policy(rng);
    c->level_policies = s->level_policies;
    for (uint64_t i = below(rng, 3); i && i < c->priority_levels; i--)
        s->level_policies[c->level_policy_count++] =
            (struct batcher_level_policy){i, random_policy(rng)};
    c->shape_tensors = shape_tensors;
    c->shape_tensor_count = chance(rng, 30) ? 1 : 0;
    s->strategy_most = (uint32_t)ONE_OF(rng, 0, 0, 0, 1, 4, 7, 12);
}

static struct sim_event random_event(const struct sim_script *s, uint64_t *rng, int *arrived,
                                     time_ns at)
{
    uint64_t max = s->config.max_batch_size ? s->config.max_batch_size : 1;
    struct sim_event e = {.at = at};
    if (*arrived && chance(rng, 12)) {
        e.kind = chance(rng, 50) ? SIM_FLAG : SIM_REMOVE;
        e.id = (int)below(rng, (uint64_t)*arrived);
        return e;
    }
    e.kind = SIM_ARRIVE;
    e.id = (*arrived)++;
    e.rows = chance(rng, 70) ? 1 : 1 + (uint32_t)below(rng, max);
    e.priority = chance(rng, 40) ? 0 : below(rng, s->config.priority_levels + 2);
    e.timeout_us = chance(rng, 50) ? 0 : ONE_OF(rng, 1, 30, 100, 500, UINT64_MAX / 2000);
    e.dim = chance(rng, 85) ? 4 : 8;
    e.content = chance(rng, 85);
    e.with_optional = chance(rng, 5);
    e.swapped = chance(rng, 20);
    e.run_ns = TIME_US(5 + below(rng, 60));
    return e;
}

void sim_generate(struct sim_script *s, uint64_t seed)
{
    uint64_t rng = seed * 0x2545f4914f6cdd1dull + 1;
    memset(s, 0, sizeof(*s));
    s->seed = seed;
    random_config(s, &rng);
    s->instances = 1 + (int)below(&rng, SIM_MAX_INSTANCES);
    s->eager = chance(&rng, 50);
    s->script_first = chance(&rng, 50);
    uint64_t gap = ONE_OF(&rng, 1, 10, 40, 150);
    int wanted = 5 + (int)below(&rng, SIM_MAX_EVENTS - 5);
    int arrived = 0;
    time_ns at = TIME_S(1);
    while (s->event_count < wanted) {
        if (!chance(&rng, 25))
            at += TIME_US(below(&rng, gap * 2 + 1));
        s->events[s->event_count++] = random_event(s, &rng, &arrived, at);
    }
    if (chance(&rng, 25))
        s->events[s->event_count - 1] = (struct sim_event){.kind = SIM_DRAIN, .at = at};
}

static bool fails(const struct sim_script *s)
{
    unsigned long batches = 0;
    return sim_run(s, &batches)[0] != '\0';
}

void sim_shrink(struct sim_script *s)
{
    static struct sim_script smaller;
    for (int chunk = s->event_count / 2; chunk >= 1; chunk /= 2) {
        for (int from = 0; from + chunk <= s->event_count;) {
            smaller = *s;
            memmove(&smaller.events[from], &smaller.events[from + chunk],
                    (size_t)(s->event_count - from - chunk) * sizeof(smaller.events[0]));
            smaller.event_count -= chunk;
            smaller.config.preferred = smaller.preferred;
            smaller.config.level_policies = smaller.level_policies;
            if (!fails(&smaller)) {
                from += chunk;
                continue;
            }
            *s = smaller;
            s->config.preferred = s->preferred;
            s->config.level_policies = s->level_policies;
        }
    }
}

static void print_policy(const struct batcher_policy *p)
{
    fprintf(stderr, "{%s, override %d, default %llu us, size %u}", p->action ? "DELAY" : "REJECT",
            p->allow_timeout_override, (unsigned long long)p->default_timeout_us,
            p->max_queue_size);
}

void sim_print(const struct sim_script *s)
{
    static const char *const kinds[] = {"arrive", "flag", "remove", "drain"};
    const struct batcher_config *c = &s->config;
    fprintf(stderr,
            "seed %llu: %s, max %u, delay %llu us, %d instances, levels %llu (default %llu), shape "
            "tensors %zu, strategy lets in %u, policy ",
            (unsigned long long)s->seed, c->dynamic ? "dynamic" : "default", c->max_batch_size,
            (unsigned long long)c->delay_us, s->instances, (unsigned long long)c->priority_levels,
            (unsigned long long)c->default_level, c->shape_tensor_count, s->strategy_most);
    print_policy(&c->default_policy);
    for (size_t i = 0; i < c->level_policy_count; i++) {
        fprintf(stderr, ", level %llu ", (unsigned long long)c->level_policies[i].level);
        print_policy(&c->level_policies[i].policy);
    }
    fprintf(stderr, ", preferred");
    for (size_t i = 0; i < c->preferred_count; i++)
        fprintf(stderr, " %d", c->preferred[i]);
    fprintf(stderr, "\n");
    for (int i = 0; i < s->event_count; i++) {
        const struct sim_event *e = &s->events[i];
        fprintf(stderr, "  +%llu us %s %d", (unsigned long long)((e->at - TIME_S(1)) / 1000),
                kinds[e->kind], e->id);
        if (e->kind == SIM_ARRIVE)
            fprintf(stderr,
                    " rows %u priority %llu timeout %llu us dim %lld content %d optional %d runs "
                    "%llu us",
                    e->rows, (unsigned long long)e->priority, (unsigned long long)e->timeout_us,
                    (long long)e->dim, e->content, e->with_optional,
                    (unsigned long long)(e->run_ns / 1000));
        fprintf(stderr, "\n");
    }
}
