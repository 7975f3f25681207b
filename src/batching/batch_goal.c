#include "batching/batch_goal.h"

#include "base/mem.h"

#include <stdlib.h>

static int rising(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a;
    uint32_t y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

void batch_goal_init(struct batch_goal *g, uint32_t max_batch_size, uint32_t max_count,
                     const int32_t *preferred, size_t count, uint64_t delay_us)
{
    *g = (struct batch_goal){
        .max_rows = max_batch_size ? max_batch_size : 1,
        .delay = time_from_us(delay_us),
        .size_count = count ? count : 1,
    };
    g->max_count = g->max_rows < max_count ? g->max_rows : max_count;
    g->sizes = mem_alloc(g->size_count * sizeof(*g->sizes));
    g->sizes[0] = g->max_rows;
    for (size_t i = 0; i < count; i++)
        g->sizes[i] = (uint32_t)preferred[i];
    qsort(g->sizes, g->size_count, sizeof(*g->sizes), rising);
}

void batch_goal_fini(struct batch_goal *g)
{
    mem_free(g->sizes);
}

void batch_goal_add(const struct batch_goal *g, struct batch_growth *b, uint32_t rows,
                    time_ns queue_start)
{
    b->count++;
    b->rows += rows;
    if (queue_start < b->oldest)
        b->oldest = queue_start;
    for (; b->next_size < g->size_count && g->sizes[b->next_size] <= b->rows; b->next_size++)
        if (g->sizes[b->next_size] == b->rows)
            b->best_count = b->count;
    b->closed = b->rows >= g->max_rows || b->count == g->max_count;
}

uint32_t batch_goal_choose(const struct batch_goal *g, const struct batch_growth *b, time_ns now,
                           time_ns *ret_wake)
{
    if (b->best_count)
        return b->best_count;
    time_ns until = time_later(b->oldest, g->delay); /* TIME_NEVER if there is no request */
    if (b->count && (b->closed || b->next_size == g->size_count || g->delay == 0 || until <= now))
        return b->count;
    *ret_wake = until;
    return 0;
}
