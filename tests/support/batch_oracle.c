#include "support/batch_oracle.h"

#include <string.h>

void oracle_init(struct oracle *o, const struct batcher_config *config)
{
    memset(o, 0, sizeof(*o));
    o->config = config;
}

static const struct batcher_policy *policy_of(const struct oracle *o, uint64_t level)
{
    static const struct batcher_policy plain = {.allow_timeout_override = true};
    const struct batcher_config *c = o->config;
    if (!c->dynamic)
        return &plain;
    for (size_t i = 0; c->priority_levels && i < c->level_policy_count; i++)
        if (c->level_policies[i].level == level)
            return &c->level_policies[i].policy;
    return &c->default_policy;
}

static uint64_t level_of(const struct oracle *o, uint64_t priority)
{
    const struct batcher_config *c = o->config;
    if (!c->dynamic || c->priority_levels == 0)
        return 1;
    return priority >= 1 && priority <= c->priority_levels ? priority : c->default_level;
}

void oracle_advance(struct oracle *o, time_ns now)
{
    for (;;) {
        struct oracle_request *first = NULL;
        for (int i = 0; i < ORACLE_MAX; i++) {
            struct oracle_request *r = &o->requests[i];
            if (r->place != ORACLE_QUEUED || r->late || r->deadline > now)
                continue;
            if (!first || r->deadline < first->deadline ||
                (r->deadline == first->deadline && r->arrival < first->arrival))
                first = r;
        }
        if (!first)
            return;
        if (policy_of(o, first->level)->action == BATCHER_TIMEOUT_REJECT) {
            first->place = ORACLE_TIMED_OUT;
        } else {
            first->late = true;
            first->late_order = ++o->lates;
        }
    }
}

bool oracle_push(struct oracle *o, time_ns now, int id, uint32_t rows, uint64_t priority,
                 uint64_t timeout_us, uint64_t likeness)
{
    uint64_t level = level_of(o, priority);
    const struct batcher_policy *p = policy_of(o, level);
    uint32_t there = 0;
    oracle_advance(o, now);
    for (int i = 0; i < ORACLE_MAX; i++)
        there += o->requests[i].place == ORACLE_QUEUED && o->requests[i].level == level;
    if (p->max_queue_size && there >= p->max_queue_size)
        return false;
    uint64_t us = p->default_timeout_us;
    if (p->allow_timeout_override && timeout_us != 0)
        us = us == 0 || timeout_us < us ? timeout_us : us;
    o->requests[id] = (struct oracle_request){
        .place = ORACLE_QUEUED,
        .rows = rows,
        .level = level,
        .arrival = ++o->arrivals,
        .pushed = now,
        .deadline = us ? now + us * 1000 : TIME_NEVER,
        .likeness = likeness,
    };
    return true;
}

static bool runs_before(const struct oracle_request *a, const struct oracle_request *b)
{
    if (a->level != b->level)
        return a->level < b->level;
    if (a->late != b->late)
        return b->late;
    return a->late ? a->late_order < b->late_order : a->arrival < b->arrival;
}

/* The ids of all requests that may run, in running order. */
static int running_order(const struct oracle *o, int *ids)
{
    int n = 0;
    for (int i = 0; i < ORACLE_MAX; i++) {
        const struct oracle_request *r = &o->requests[i];
        if (r->place != ORACLE_QUEUED || r->flagged)
            continue;
        int at = n++;
        for (; at > 0 && runs_before(r, &o->requests[ids[at - 1]]); at--)
            ids[at] = ids[at - 1];
        ids[at] = i;
    }
    return n;
}

static bool is_preferred(const struct batcher_config *c, uint64_t rows)
{
    if (c->preferred_count == 0)
        return rows == (c->max_batch_size ? c->max_batch_size : 1);
    for (size_t i = 0; i < c->preferred_count; i++)
        if ((uint64_t)c->preferred[i] == rows)
            return true;
    return false;
}

static uint64_t largest_preferred(const struct batcher_config *c)
{
    uint64_t largest = c->preferred_count ? 0 : (c->max_batch_size ? c->max_batch_size : 1);
    for (size_t i = 0; i < c->preferred_count; i++)
        largest = (uint64_t)c->preferred[i] > largest ? (uint64_t)c->preferred[i] : largest;
    return largest;
}

int oracle_choose(const struct oracle *o, time_ns now, int *ids, time_ns *ret_wake)
{
    const struct batcher_config *c = o->config;
    int n = running_order(o, ids);
    *ret_wake = TIME_NEVER;
    if (n == 0)
        return 0;
    if (!c->dynamic)
        return 1;
    uint64_t max = c->max_batch_size ? c->max_batch_size : 1;
    uint64_t rows = 0;
    time_ns oldest = TIME_NEVER;
    int fits = 0;
    int preferred = 0;
    bool refused = false;
    for (; fits < n && !refused; fits++) {
        const struct oracle_request *r = &o->requests[ids[fits]];
        if (fits && (rows + r->rows > max || r->likeness != o->requests[ids[0]].likeness))
            break;
        rows += r->rows;
        refused = o->strategy_most && rows + (uint64_t)fits + 1 > o->strategy_most;
        if (refused && fits) {
            rows -= r->rows;
            break;
        }
        oldest = r->pushed < oldest ? r->pushed : oldest;
        if (is_preferred(c, rows))
            preferred = fits + 1;
    }
    if (preferred)
        return preferred;
    bool cannot_grow = refused || fits < n || rows >= max;
    if (cannot_grow || rows >= largest_preferred(c) || oldest + c->delay_us * 1000 <= now)
        return fits;
    *ret_wake = oldest + c->delay_us * 1000;
    if (oracle_next_deadline(o) < *ret_wake)
        *ret_wake = oracle_next_deadline(o);
    return 0;
}

time_ns oracle_next_deadline(const struct oracle *o)
{
    time_ns next = TIME_NEVER;
    for (int i = 0; i < ORACLE_MAX; i++) {
        const struct oracle_request *r = &o->requests[i];
        if (r->place == ORACLE_QUEUED && !r->late && r->deadline < next)
            next = r->deadline;
    }
    return next;
}
