#pragma once
/* Queued requests by priority level. Each level has two queues in order of arrival: those in time,
 * and behind them those whose time-out is over and whose policy is to run them late. Locks are the
 * caller's.
 *
 * source  spec/model_config_proto.txt, ModelDynamicBatching.priority_levels and
 *         ModelQueuePolicy.timeout_action */
#include "base/list.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct request;
struct batcher_policy;

struct levels_queue {
    struct list in_time;
    struct list late;
    uint32_t count; /* in both */
    const struct batcher_policy *policy;
};

struct levels {
    struct levels_queue *queues; /* queues[0] is level 1, the highest */
    uint64_t *occupied;          /* a bit a level: its queues are not empty */
    uint32_t count;
    size_t waiting; /* in all of them */
};

/* A place in the order in which everything would run. */
struct levels_cursor {
    struct list *node; /* the request at the cursor; NULL = before the first */
    uint32_t level;    /* its level, from 0 */
    bool late;
};

/* levels_init - `count` empty levels, no policy set; false when there is no memory for them. */
bool levels_init(struct levels *l, uint32_t count);
void levels_fini(struct levels *l);

/* levels_add - append to the queue of r->queue_level (in time). levels_remove - out of either
 * queue; queue_level becomes 0.
 * levels_make_late - move from the queue in time to the end of the late one. */
void levels_add(struct levels *l, struct request *r);
void levels_remove(struct levels *l, struct request *r);
void levels_make_late(struct levels *l, struct request *r);

/* levels_next - the request after the cursor in running order, and the cursor moves to it; NULL
 * at the end, where it stays. */
struct request *levels_next(const struct levels *l, struct levels_cursor *c);

/* levels_after - whether a request that is now appended to `level` (from 1) comes after the
 * cursor in running order. */
bool levels_after(const struct levels_cursor *c, uint32_t level);
