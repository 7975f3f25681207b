#pragma once
/* Queued requests by priority level. Each level has two queues in order of arrival: requests in
 * time, then timed-out requests whose policy is to run late. Only levels with requests exist in
 * memory, so a model may have any number of levels. The caller does the locking.
 *
 * source  spec/model_config_proto.txt, ModelDynamicBatching.priority_levels and
 *         ModelQueuePolicy.timeout_action */
#include "base/list.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct request;

/* A level that has requests. */
struct levels_queue {
    uint64_t level; /* from 1, the highest */
    struct list in_time;
    struct list late;
    uint32_t count; /* requests in both queues; not 0 */
    struct levels_queue *next_spare;
};

/* All zeros is empty. */
struct levels {
    struct levels_queue **queues; /* `count` of `cap`, by ascending level */
    size_t count;
    size_t cap;
    struct levels_queue *spare; /* queues of levels that became empty, kept for reuse */
    size_t waiting;             /* requests in all levels */
};

/* A position in the order in which all requests would run. */
struct levels_cursor {
    struct list *node;                /* the request at the cursor; NULL = before the first */
    const struct levels_queue *queue; /* the queue of `node`; it stays while it has a request */
    bool late;
};

/* levels_fini - free the memory; no request waits. */
void levels_fini(struct levels *l);

/* levels_add - append r to the in-time queue of r->queue_level.
 * levels_remove - take r out of either queue; queue_level becomes 0.
 * levels_make_late - move r from the in-time queue to the end of the late queue. */
void levels_add(struct levels *l, struct request *r);
void levels_remove(struct levels *l, struct request *r);
void levels_make_late(struct levels *l, struct request *r);

/* levels_waiting - the number of requests that wait at a level. */
uint32_t levels_waiting(const struct levels *l, uint64_t level);

/* levels_next - move the cursor to the next request in running order and return it; NULL at the
 * end, where the cursor stays. */
struct request *levels_next(const struct levels *l, struct levels_cursor *c);

/* levels_after - true if a request that is now appended to `level` comes after the cursor in
 * running order. */
bool levels_after(const struct levels_cursor *c, uint64_t level);
