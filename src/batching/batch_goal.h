#pragma once
/* Decides how large a batch should be: the preferred sizes, and how long the oldest request
 * waits for one of them. Pure. */
#include "os/clock.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The batch sizes that a model wants; constant. */
struct batch_goal {
    uint32_t max_rows;
    uint32_t max_count; /* requests */
    time_ns delay;
    uint32_t *sizes; /* preferred numbers of rows, ascending; at least one */
    size_t size_count;
};

/* The batch that would be taken now. Requests are added to it one by one, in their order. */
struct batch_growth {
    uint32_t count;
    bool closed; /* the next request does not fit, or the batch is full */
    uint64_t rows;
    size_t next_size; /* index of the smallest preferred size > rows */
    /* How many of the first requests make the largest preferred size so far; 0 = none yet. */
    uint32_t best_count;
    time_ns oldest; /* smallest queue_start */
};

#define BATCH_GROWTH_NONE ((struct batch_growth){.oldest = TIME_NEVER})

/* batch_goal_init - a batch has at most max_batch_size rows (0 counts as 1) and at most
 * max_count requests.
 * preferred  `count` sizes in any order, each in [1, max_batch_size]; copied; none = {
 *            max_batch_size }
 * batch_goal_fini - free the parts; all zeros is fine. */
void batch_goal_init(struct batch_goal *g, uint32_t max_batch_size, uint32_t max_count,
                     const int32_t *preferred, size_t count, uint64_t delay_us);
void batch_goal_fini(struct batch_goal *g);

/* batch_goal_settled - true if further requests would not change what batch_goal_choose returns. */
static inline bool batch_goal_settled(const struct batch_goal *g, const struct batch_growth *b)
{
    return b->closed || (b->best_count && b->next_size == g->size_count);
}

/* batch_goal_add - add a request that has waited since queue_start. */
void batch_goal_add(const struct batch_goal *g, struct batch_growth *b, uint32_t rows,
                    time_ns queue_start);

/* batch_goal_choose - how many requests to run now: the largest preferred size that is reached.
 * Otherwise all requests, if no more can join, no larger preferred size exists or the oldest has
 * waited long enough.
 * returns  0 = wait until *ret_wake, which is written only then; TIME_NEVER = only new work
 *          helps */
uint32_t batch_goal_choose(const struct batch_goal *g, const struct batch_growth *b, time_ns now,
                           time_ns *ret_wake);
