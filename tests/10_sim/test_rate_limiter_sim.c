/* The rate limiter under random instances that come, go, wait and execute. What must always
 * hold: never more of a resource in use than there is, nobody waits though what it needs is
 * there and nobody before it needs it, nobody is overtaken without end, executions go by
 * priority, and nothing is left behind. NEREID_SIM_SEED=n plays one seed, NEREID_SIM_RUNS=n sets
 * how many. */
#include "limits/rate_limiter.h"

#include "support/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EVENTS    300
#define INSTANCES 8
#define NAMES     4
#define DEVICES   2

static const char *const names[NAMES] = {"g0", "g1", "d0", "d1"};

static bool is_global(int name)
{
    return name < 2;
}

/* What the test knows of an instance by itself. */
struct one {
    struct rate_limiter_instance *i; /* NULL = not there */
    uint64_t need[NAMES];
    bool needs[NAMES];
    int32_t device;
    uint32_t priority;
    uint64_t since;     /* waiting: when it began */
    uint64_t overtaken; /* waiting: by others that came later and took what it lacks */
    uint64_t rivals;    /* waiting: the most that there were */
};

struct world {
    struct rate_limiter *l;
    struct rate_limiter_supply supplies[NAMES];
    size_t supply_count;
    uint64_t random;
    uint64_t clock;
    struct one all[INSTANCES];
};

static uint64_t below(struct world *w, uint64_t n)
{
    return unit_random(&w->random) % n;
}

static bool same_pool(const struct one *a, const struct one *b, int name)
{
    return a->needs[name] && b->needs[name] && (is_global(name) || a->device == b->device);
}

static bool shares(const struct one *a, const struct one *b)
{
    for (int n = 0; n < NAMES; n++)
        if (same_pool(a, b, n))
            return true;
    return false;
}

static bool is(const struct one *o, enum rate_limiter_state state)
{
    return o->i && rate_limiter_state(o->i) == state;
}

/* How much there is of what `o` needs by that name. */
static uint64_t there_is(const struct world *w, const struct one *o, int name)
{
    uint64_t most = 0;
    for (size_t k = 0; k < w->supply_count; k++)
        if (strcmp(w->supplies[k].name, names[name]) == 0)
            most = w->supplies[k].count;
    for (int k = 0; !w->supply_count && k < INSTANCES; k++)
        if (w->all[k].i && same_pool(o, &w->all[k], name) && w->all[k].need[name] > most)
            most = w->all[k].need[name];
    return most;
}

static uint64_t in_use(const struct world *w, const struct one *o, int name)
{
    uint64_t sum = 0;
    for (int k = 0; k < INSTANCES; k++)
        if (is(&w->all[k], RATE_LIMITER_HOLDS) && same_pool(o, &w->all[k], name))
            sum += w->all[k].need[name];
    return sum;
}

/* Whether `by` has just taken something that `o` now lacks. */
static bool took_from(const struct world *w, const struct one *o, const struct one *by)
{
    for (int n = 0; n < NAMES; n++)
        if (same_pool(o, by, n) && by->need[n] && in_use(w, o, n) + o->need[n] > there_is(w, o, n))
            return true;
    return false;
}

/* It has just got what it needs. */
static void got(struct world *w, struct one *o)
{
    for (int n = 0; n < NAMES; n++)
        if (o->needs[n] && o->need[n])
            assert_true(in_use(w, o, n) <= there_is(w, o, n));
    for (int k = 0; k < INSTANCES; k++) {
        struct one *other = &w->all[k];
        if (is(other, RATE_LIMITER_WAITS) && other->since < o->since && took_from(w, other, o))
            other->overtaken++;
    }
}

static void count_rivals(const struct world *w, struct one *o)
{
    uint64_t rivals = 0;
    for (int n = 0; n < NAMES; n++)
        for (int k = 0; k < INSTANCES; k++)
            rivals += &w->all[k] != o && w->all[k].i && same_pool(o, &w->all[k], n);
    o->rivals = rivals > o->rivals ? rivals : o->rivals;
}

/* Whoever waits waits for somebody: for one that holds, or for one that waits for one. */
static void waits_for_a_holder(const struct world *w, int first)
{
    bool seen[INSTANCES] = {false};
    bool holder = false;
    seen[first] = true;
    for (int round = 0; round < INSTANCES; round++)
        for (int a = 0; a < INSTANCES; a++)
            for (int b = 0; seen[a] && b < INSTANCES; b++) {
                if (!w->all[b].i || !shares(&w->all[a], &w->all[b]))
                    continue;
                holder = holder || is(&w->all[b], RATE_LIMITER_HOLDS);
                seen[b] = seen[b] || is(&w->all[b], RATE_LIMITER_WAITS);
            }
    assert_true(holder);
}

/* Nothing that it needs is needed by another one that waits, and all of it is there: then it
 * does not wait. */
static void could_not_go(const struct world *w, const struct one *o)
{
    for (int k = 0; k < INSTANCES; k++)
        if (&w->all[k] != o && is(&w->all[k], RATE_LIMITER_WAITS) && shares(o, &w->all[k]))
            return;
    for (int n = 0; n < NAMES; n++)
        if (o->needs[n] && o->need[n] && in_use(w, o, n) + o->need[n] > there_is(w, o, n))
            return;
    fail_msg("waits for nothing");
}

static void check(struct world *w)
{
    struct rate_limiter_instance *i;
    while ((i = rate_limiter_next(w->l)) != NULL) {
        struct one *o = rate_limiter_owner(i);
        assert_ptr_equal(o->i, i);
        assert_true(is(o, RATE_LIMITER_HOLDS));
        got(w, o);
    }
    for (int k = 0; k < INSTANCES; k++) {
        struct one *o = &w->all[k];
        for (int n = 0; o->i && n < NAMES; n++) {
            uint64_t used;
            uint64_t limit = rate_limiter_available(w->l, names[n], is_global(n), o->device, &used);
            if (!o->needs[n])
                continue;
            assert_int_equal(limit, there_is(w, o, n));
            assert_int_equal(used, in_use(w, o, n));
        }
        if (!is(o, RATE_LIMITER_WAITS))
            continue;
        count_rivals(w, o);
        assert_true(o->overtaken <= (o->priority + 2) * o->rivals);
        could_not_go(w, o);
        waits_for_a_holder(w, k);
    }
}

static void mark_waiting(struct world *w, struct one *o)
{
    o->since = w->clock++;
    o->overtaken = 0;
    o->rivals = 0;
}

static void want(struct world *w, struct one *o)
{
    mark_waiting(w, o);
    rate_limiter_want(o->i);
}

static void add(struct world *w, struct one *o)
{
    struct rate_limiter_need needs[NAMES];
    struct rate_limiter_terms terms = {
        .needs = needs, .device = (int32_t)below(w, DEVICES), .priority = (uint32_t)below(w, 5)};
    memset(o, 0, sizeof(*o));
    bool fits = true;
    o->device = terms.device;
    o->priority = terms.priority ? terms.priority : 1;
    for (int n = 0; n < NAMES; n++) {
        if (below(w, 2))
            continue;
        o->needs[n] = true;
        o->need[n] = below(w, 4);
        needs[terms.need_count++] = (struct rate_limiter_need){
            .name = names[n], .count = o->need[n], .global = is_global(n)};
        fits = fits && (!w->supply_count || o->need[n] <= there_is(w, o, n));
    }
    struct err *e = rate_limiter_add(w->l, &terms, o, &o->i);
    assert_true(!e == fits);
    err_free(e);
    if (e)
        o->i = NULL;
}

static void step(struct world *w)
{
    struct one *o = &w->all[below(w, INSTANCES)];
    uint64_t dice = below(w, 100);
    if (!o->i) {
        add(w, o);
    } else if (dice < 4) {
        rate_limiter_remove(o->i);
        o->i = NULL;
    } else if (is(o, RATE_LIMITER_IDLE)) {
        want(w, o);
    } else if (is(o, RATE_LIMITER_WAITS)) {
        if (dice < 10)
            rate_limiter_done(o->i, false);
    } else {
        if (dice < 70) {
            mark_waiting(w, o);
            rate_limiter_again(o->i);
        } else {
            rate_limiter_done(o->i, dice < 90);
        }
    }
    check(w);
}

static void play(uint64_t seed)
{
    struct world w = {.random = seed};
    for (int n = 0; n < NAMES && below(&w, 2); n++) {
        w.supplies[n] = (struct rate_limiter_supply){
            .name = names[n], .count = below(&w, 6), .device = RATE_LIMITER_EVERY_DEVICE};
        w.supply_count++;
    }
    w.l = rate_limiter_new(w.supplies, w.supply_count);
    for (int i = 0; i < EVENTS; i++)
        step(&w);
    for (int k = 0; k < INSTANCES; k++)
        rate_limiter_remove(w.all[k].i);
    rate_limiter_free(w.l);
}

static void random_lives(void **state)
{
    (void)state;
    const char *seed = getenv("NEREID_SIM_SEED");
    const char *runs = getenv("NEREID_SIM_RUNS");
    uint64_t first = seed ? strtoull(seed, NULL, 10) : 1;
    uint64_t count = seed ? 1 : runs ? strtoull(runs, NULL, 10) : 600;
    for (uint64_t i = 0; i < count; i++) {
        if (getenv("NEREID_SIM_VERBOSE"))
            fprintf(stderr, "seed %llu\n", (unsigned long long)(first + i));
        play(first + i);
    }
}

/* -- shares: all of them want the same, all the time -- */

struct crowd {
    struct rate_limiter *l;
    struct rate_limiter_instance *i[INSTANCES];
    uint64_t priority[INSTANCES];
    uint64_t executed[INSTANCES];
    int count;
};

static void join(struct crowd *c, uint32_t priority)
{
    struct rate_limiter_need need = {.name = "r", .count = 1, .global = true};
    struct rate_limiter_terms terms = {.needs = &need, .need_count = 1, .priority = priority};
    int k = c->count++;
    c->priority[k] = priority;
    unit_succeeds(rate_limiter_add(c->l, &terms, &c->executed[k], &c->i[k]));
}

/* Whoever executed wants to again, but for those in `away`. */
static void execute(struct crowd *c, int times, unsigned away)
{
    memset(c->executed, 0, sizeof(c->executed));
    for (int k = 0; k < c->count; k++)
        if (!(away >> k & 1))
            rate_limiter_want(c->i[k]);
    for (int t = 0; t < times; t++) {
        struct rate_limiter_instance *i = rate_limiter_next(c->l);
        assert_non_null(i);
        assert_null(rate_limiter_next(c->l));
        ++*(uint64_t *)rate_limiter_owner(i);
        rate_limiter_again(i);
    }
    for (int k = 0; k < c->count; k++)
        rate_limiter_done(c->i[k], false);
}

/* Executions times priority are the same for all who were there, to within one round. */
static void expect_shares(const struct crowd *c, unsigned away, uint64_t slack)
{
    uint64_t least = UINT64_MAX;
    uint64_t most = 0;
    for (int k = 0; k < c->count; k++) {
        uint64_t scaled = c->executed[k] * c->priority[k];
        if (away >> k & 1)
            continue;
        least = scaled < least ? scaled : least;
        most = scaled > most ? scaled : most;
    }
    assert_true(most - least <= slack);
}

static void leave(struct crowd *c)
{
    for (int k = 0; k < c->count; k++)
        rate_limiter_remove(c->i[k]);
    rate_limiter_free(c->l);
}

static void executions_go_by_priority(void **state)
{
    (void)state;
    uint64_t random = 7;
    for (int run = 0; run < 50; run++) {
        struct crowd c = {.l = rate_limiter_new(NULL, 0)};
        int count = 2 + (int)(unit_random(&random) % (INSTANCES - 1));
        for (int k = 0; k < count; k++)
            join(&c, 1 + (uint32_t)(unit_random(&random) % 6));
        execute(&c, 5000, 0);
        expect_shares(&c, 0, 7);
        leave(&c);
    }
}

/* Who comes new, or was away for long, neither has everything to itself nor waits for what it
 * missed. */
static void what_was_missed_is_forgotten(void **state)
{
    (void)state;
    struct crowd c = {.l = rate_limiter_new(NULL, 0)};
    join(&c, 1);
    join(&c, 2);
    join(&c, 1);
    execute(&c, 3000, 0);
    execute(&c, 30000, 1u << 2);
    expect_shares(&c, 1u << 2, 3);
    execute(&c, 250, 0);
    expect_shares(&c, 0, 5);
    join(&c, 1);
    execute(&c, 350, 0);
    expect_shares(&c, 0, 5);
    leave(&c);
}

/* -- shares: several at once, which need different amounts and take different times -- */

struct worker {
    struct rate_limiter_instance *i;
    uint64_t priority;
    uint64_t need;
    unsigned length; /* of an execution */
    unsigned left;   /* of the one that runs; 0 = it waits */
    uint64_t executed;
};

static void begin_those_let_in(struct rate_limiter *l)
{
    struct rate_limiter_instance *i;
    while ((i = rate_limiter_next(l)) != NULL) {
        struct worker *w = rate_limiter_owner(i);
        w->left = w->length;
    }
}

static void work(struct rate_limiter *l, struct worker *all, int count, int ticks)
{
    for (int k = 0; k < count; k++)
        rate_limiter_want(all[k].i);
    begin_those_let_in(l);
    for (int t = 0; t < ticks; t++)
        for (int k = 0; k < count; k++) {
            if (!all[k].left || --all[k].left)
                continue;
            all[k].executed++;
            rate_limiter_again(all[k].i);
            begin_those_let_in(l);
        }
}

/* Executions times priority are the same for all, but for those that never had to wait for long:
 * they cannot execute more often than one after the other, and have less. */
static void shares_are_exact(const struct worker *all, int count, int ticks)
{
    uint64_t most = 0;
    for (int k = 0; k < count; k++) {
        uint64_t scaled = all[k].executed * all[k].priority;
        most = scaled > most ? scaled : most;
    }
    for (int k = 0; k < count; k++) {
        bool always_at_it = all[k].executed * all[k].length >= (uint64_t)ticks * 9 / 10;
        uint64_t scaled = all[k].executed * all[k].priority;
        assert_true(always_at_it || most - scaled <= 24);
    }
}

static void several_at_once(void **state)
{
    (void)state;
    enum { TICKS = 20000 };
    uint64_t random = 11;
    for (int run = 0; run < 200; run++) {
        struct rate_limiter_supply supply = {.name = "r",
                                             .count = 3 + unit_random(&random) % 3,
                                             .device = RATE_LIMITER_EVERY_DEVICE};
        struct rate_limiter *l = rate_limiter_new(&supply, 1);
        struct worker all[INSTANCES] = {0};
        int count = 2 + (int)(unit_random(&random) % (INSTANCES - 1));
        for (int k = 0; k < count; k++) {
            all[k] = (struct worker){.priority = 1 + unit_random(&random) % 6,
                                     .need = 1 + unit_random(&random) % 3,
                                     .length = 1 + (unsigned)(unit_random(&random) % 9)};
            struct rate_limiter_need need = {.name = "r", .count = all[k].need, .global = true};
            struct rate_limiter_terms terms = {
                .needs = &need, .need_count = 1, .priority = (uint32_t)all[k].priority};
            unit_succeeds(rate_limiter_add(l, &terms, &all[k], &all[k].i));
        }
        work(l, all, count, TICKS);
        shares_are_exact(all, count, TICKS);
        for (int k = 0; k < count; k++)
            rate_limiter_remove(all[k].i);
        rate_limiter_free(l);
    }
}

UNIT_MAIN(UNIT(random_lives), UNIT(executions_go_by_priority), UNIT(what_was_missed_is_forgotten),
          UNIT(several_at_once))
