#pragma once
/* Queued requests by priority level. Each level has two queues in order of arrival: those in time,
 * and behind them those whose time-out is over and whose policy is to run them late. Only levels
 * that have requests are there, so that a model may have as many as it likes. Locks are the
 * caller's.
 *
 * source  spec/model_config_proto.txt, ModelDynamicBatching.priority_levels and
 *         ModelQueuePolicy.timeout_action */
#include "base/list.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct request;

/* A level with requests. */
struct levels_queue {
    uint64_t level; /* from 1, the highest */
    struct list in_time;
    struct list late;
    uint32_t count; /* in both; not 0 */
    struct levels_queue *next_spare;
};

/* All zeros is empty. */
struct levels {
    struct levels_queue **queues; /* count of cap, by rising level */
    size_t count;
    size_t cap;
    struct levels_queue *spare; /* of levels that have become empty, for the next ones */
    size_t waiting;             /* requests in all of them */
};

/* A place in the order in which everything would run. */
struct levels_cursor {
    struct list *node;                /* the request at the cursor; NULL = before the first */
    const struct levels_queue *queue; /* where it is; a level with a cursor's request stays */
    bool late;
};

/* levels_fini - nothing waits. */
void levels_fini(struct levels *l);

/* levels_add - append to the queue of r->queue_level (in time). levels_remove - out of either
 * queue; queue_level becomes 0.
 * levels_make_late - move from the queue in time to the end of the late one. */
void levels_add(struct levels *l, struct request *r);
void levels_remove(struct levels *l, struct request *r);
void levels_make_late(struct levels *l, struct request *r);

/* levels_waiting - how many requests wait at a level. */
uint32_t levels_waiting(const struct levels *l, uint64_t level);

/* levels_next - the request after the cursor in running order, and the cursor moves to it; NULL
 * at the end, where it stays. */
struct request *levels_next(const struct levels *l, struct levels_cursor *c);

/* levels_after - whether a request that is now appended to `level` comes after the cursor in
 * running order. */
bool levels_after(const struct levels_cursor *c, uint64_t level);
