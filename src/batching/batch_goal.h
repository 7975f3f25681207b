#pragma once
/* How large a batch is to be: the preferred sizes, and how long the oldest request waits for one
 * of them. Pure. */
#include "os/clock.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What a model wants its batches to be; constant. */
struct batch_goal {
    uint32_t max_rows;
    uint32_t max_count; /* requests */
    time_ns delay;
    uint32_t *sizes; /* preferred rows: rising, at least one */
    size_t size_count;
};

/* The batch that would be taken now, as far as requests were looked at, in their order. */
struct batch_growth {
    uint32_t count;
    bool closed; /* the next request cannot join, or no more may */
    uint64_t rows;
    size_t next_size; /* index of the smallest preferred size > rows */
    /* Requests of the beginning whose rows are the largest preferred size so far; 0 = none yet. */
    uint32_t best_count;
    time_ns oldest; /* smallest queue_start */
};

#define BATCH_GROWTH_NONE ((struct batch_growth){.oldest = TIME_NEVER})

/* batch_goal_init - max_batch_size rows, 0 counts as 1; never more than max_count requests.
 * preferred  count sizes in any order, each in [1, max_batch_size]; copied; none = {
 *            max_batch_size }
 * batch_goal_fini - NULL-safe parts only. */
void batch_goal_init(struct batch_goal *g, uint32_t max_batch_size, uint32_t max_count,
                     const int32_t *preferred, size_t count, uint64_t delay_us);
void batch_goal_fini(struct batch_goal *g);

/* batch_goal_settled - no further request would change what batch_goal_choose says. */
static inline bool batch_goal_settled(const struct batch_goal *g, const struct batch_growth *b)
{
    return b->closed || (b->best_count && b->next_size == g->size_count);
}

/* batch_goal_add - a request joins that has waited since queue_start. */
void batch_goal_add(const struct batch_goal *g, struct batch_growth *b, uint32_t rows,
                    time_ns queue_start);

/* batch_goal_choose - how many requests to run now: the largest preferred size that can be made;
 * else all of them when no more will join, no preferred size can be made any more or the oldest
 * has waited long enough.
 * returns  0 = wait until *ret_wake, which is written then; TIME_NEVER = only new work helps */
uint32_t batch_goal_choose(const struct batch_goal *g, const struct batch_growth *b, time_ns now,
                           time_ns *ret_wake);
