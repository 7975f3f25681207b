#include "batching/batcher.h"

#include "base/check.h"
#include "base/mem.h"
#include "infer/request.h"
#include "batching/batch_goal.h"
#include "batching/batch_match.h"
#include "batching/deadline_heap.h"
#include "batching/levels.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* The batch that would be taken now. It is kept between calls, so that each request is compared
 * only once while the batch grows. */
struct pending {
    struct levels_cursor last; /* at its last request; before the first while the batch is empty */
    struct request *first;
    struct batch_growth growth;
    bool begun; /* the strategy was told of it */
};

struct batcher {
    struct levels levels;
    struct deadline_heap deadlines;
    struct list dropped;
    /* a copy of levels.waiting, for readers without the lock; orders nothing */
    atomic_size_t depth;
    bool dynamic;
    uint64_t level_count;
    uint64_t default_level;
    struct batch_goal goal;
    struct batch_match match;
    struct batcher_strategy strategy;
    struct pending pending;
    /* nothing runs or times out until this many wait; 0 = no such wait any more */
    size_t hold_until;
    struct batcher_policy default_policy;
    struct batcher_level_policy *own_policies; /* own_count items, by ascending level */
    size_t own_count;
};

/* -- making one -- */

static struct err *check_config(const struct batcher_config *c)
{
    for (size_t i = 0; i < c->preferred_count; i++) {
        if (c->preferred[i] <= 0)
            return err_new(STATUS_INVALID_ARG, "dynamic batching preferred size must be positive");
        if ((uint32_t)c->preferred[i] > c->max_batch_size)
            return err_new(STATUS_INVALID_ARG,
                           "dynamic batching preferred size must be <= max batch size");
    }
    if (c->priority_levels == 0)
        return NULL;
    if (c->default_level == 0 || c->default_level > c->priority_levels)
        return err_new(STATUS_INVALID_ARG, "default priority level must be in range [1, %llu]",
                       (unsigned long long)c->priority_levels);
    for (size_t i = 0; i < c->level_policy_count; i++)
        if (c->level_policies[i].level == 0 || c->level_policies[i].level > c->priority_levels)
            return err_new(STATUS_INVALID_ARG,
                           "priority queue policy must have priority level in range [1, %llu]",
                           (unsigned long long)c->priority_levels);
    return NULL;
}

static int by_level(const void *a, const void *b)
{
    const struct batcher_level_policy *x = a;
    const struct batcher_level_policy *y = b;
    return (x->level > y->level) - (x->level < y->level);
}

static void set_policies(struct batcher *b, const struct batcher_config *c)
{
    /* The default scheduler has no policy settings: it uses the timeout that a request brings. */
    b->default_policy =
        b->dynamic ? c->default_policy : (struct batcher_policy){.allow_timeout_override = true};
    if (!b->dynamic || !c->priority_levels || !c->level_policy_count)
        return;
    b->own_count = c->level_policy_count;
    b->own_policies = mem_alloc(b->own_count * sizeof(*b->own_policies));
    memcpy(b->own_policies, c->level_policies, b->own_count * sizeof(*b->own_policies));
    qsort(b->own_policies, b->own_count, sizeof(*b->own_policies), by_level);
}

static const struct batcher_policy *batcher_policy_of(const struct batcher *b, uint64_t level)
{
    struct batcher_level_policy key = {.level = level};
    const struct batcher_level_policy *own =
        b->own_count ? bsearch(&key, b->own_policies, b->own_count, sizeof(key), by_level) : NULL;
    return own ? &own->policy : &b->default_policy;
}

static void pending_reset(struct batcher *b)
{
    if (b->pending.begun)
        b->strategy.end(b->strategy.arg);
    b->pending = (struct pending){.growth = BATCH_GROWTH_NONE};
}

struct err *batcher_new(const struct batcher_config *c, struct batcher **ret)
{
    if (c->dynamic) {
        struct err *e = check_config(c);
        if (e)
            return e;
    }
    struct batcher *b = MEM_NEW(struct batcher);
    list_init(&b->dropped);
    b->dynamic = c->dynamic;
    b->hold_until = c->hold_until;
    b->level_count = b->dynamic && c->priority_levels ? c->priority_levels : 1;
    b->default_level = b->dynamic && c->priority_levels ? c->default_level : 1;
    if (b->dynamic)
        b->strategy = c->strategy;
    pending_reset(b);
    batch_goal_init(&b->goal, c->max_batch_size, b->dynamic ? BATCHER_MAX_REQUESTS : 1,
                    c->preferred, c->preferred_count, c->delay_us);
    batch_match_init(&b->match, c->max_batch_size > 0, c->shape_tensors, c->shape_tensor_count);
    set_policies(b, c);
    *ret = b;
    return NULL;
}

void batcher_free(struct batcher *b)
{
    if (!b)
        return;
    CHECK(b->levels.waiting == 0 && list_empty(&b->dropped));
    pending_reset(b);
    batch_match_fini(&b->match);
    batch_goal_fini(&b->goal);
    mem_free(b->own_policies);
    deadline_heap_fini(&b->deadlines);
    levels_fini(&b->levels);
    mem_free(b);
}

/* -- the queue -- */

static void publish_depth(struct batcher *b)
{
    atomic_store_explicit(&b->depth, b->levels.waiting, memory_order_relaxed);
}

/* Takes a request out of the queue. The pending batch is then void. */
static void batcher_detach(struct batcher *b, struct request *r)
{
    if (r->queue_heap)
        deadline_heap_remove(&b->deadlines, r);
    levels_remove(&b->levels, r);
}

static void batcher_drop(struct batcher *b, struct request *r)
{
    batcher_detach(b, r);
    list_append(&b->dropped, &r->queue_node);
}

/* Applies the policies to the requests whose deadline has passed. */
static void batcher_sweep(struct batcher *b, time_ns now)
{
    if (b->hold_until || deadline_heap_first(&b->deadlines) > now)
        return;
    struct request *r;
    while ((r = deadline_heap_pop_due(&b->deadlines, now)) != NULL) {
        r->queue_deadline = TIME_NEVER;
        if (batcher_policy_of(b, r->queue_level)->action == BATCHER_TIMEOUT_DELAY)
            levels_make_late(&b->levels, r);
        else
            batcher_drop(b, r);
    }
    pending_reset(b);
    publish_depth(b);
}

static time_ns deadline_of(const struct batcher_policy *p, const struct request *r, time_ns now)
{
    uint64_t us = p->default_timeout_us;
    if (p->allow_timeout_override && r->timeout_us && (us == 0 || r->timeout_us < us))
        us = r->timeout_us;
    return us ? time_later(now, time_from_us(us)) : TIME_NEVER;
}

enum batcher_push batcher_push(struct batcher *b, time_ns now, struct request *r)
{
    uint64_t level = b->default_level;
    if (r->priority != 0 && r->priority <= b->level_count)
        level = r->priority;
    const struct batcher_policy *p = batcher_policy_of(b, level);
    if (p->max_queue_size != 0 && levels_waiting(&b->levels, level) >= p->max_queue_size) {
        batcher_sweep(b, now);
        if (levels_waiting(&b->levels, level) >= p->max_queue_size)
            return BATCHER_PUSH_FULL;
    }
    CHECK(r->queue_level == 0);
    r->times.queue_start = now;
    if (request_is_cancelled(r)) {
        list_append(&b->dropped, &r->queue_node);
        return BATCHER_PUSH_OK;
    }
    r->queue_deadline = deadline_of(p, r, now);
    r->queue_level = level;
    if (r->queue_deadline != TIME_NEVER)
        deadline_heap_add(&b->deadlines, r);
    if (!levels_after(&b->pending.last, level))
        pending_reset(b);
    levels_add(&b->levels, r);
    publish_depth(b);
    return BATCHER_PUSH_OK;
}

/* -- choosing -- */

static uint32_t rows_of(const struct request *r)
{
    return r->batch_size ? r->batch_size : 1;
}

static bool strategy_includes(struct batcher *b, const struct request *r)
{
    if (!b->pending.begun)
        b->strategy.begin(b->strategy.arg);
    b->pending.begun = true;
    return b->strategy.include(b->strategy.arg, r);
}

/* Adds waiting requests to the pending batch, as far as they can change the choice. */
static void pending_extend(struct batcher *b)
{
    struct pending *p = &b->pending;
    struct batch_growth *g = &p->growth;
    while (!batch_goal_settled(&b->goal, g)) {
        struct levels_cursor at = p->last;
        struct request *r = levels_next(&b->levels, &at);
        if (!r)
            return;
        if (request_is_cancelled(r)) {
            batcher_drop(b, r);
            publish_depth(b);
            continue;
        }
        if (g->count == 0)
            p->first = r;
        else if (g->rows + rows_of(r) > b->goal.max_rows ||
                 !batch_match_equal(&b->match, p->first, r)) {
            g->closed = true;
            return;
        }
        bool joins = !b->strategy.include || strategy_includes(b, r);
        if (joins || g->count == 0) {
            p->last = at;
            batch_goal_add(&b->goal, g, rows_of(r), r->times.queue_start);
        }
        g->closed = g->closed || !joins;
    }
}

/* Returns how many requests to run now; 0 = wait until *ret_wake. */
static uint32_t batcher_choose(struct batcher *b, time_ns now, time_ns *ret_wake)
{
    pending_extend(b);
    uint32_t n = batch_goal_choose(&b->goal, &b->pending.growth, now, ret_wake);
    /* A request that expires before *ret_wake changes the queue, so wake up then. */
    if (!n && deadline_heap_first(&b->deadlines) < *ret_wake)
        *ret_wake = deadline_heap_first(&b->deadlines);
    return n;
}

/* Requests of the pending batch may have been cancelled since they were looked at. In that case
 * the batch starts again without them. */
static void pending_recheck(struct batcher *b)
{
    struct levels_cursor at = {0};
    struct request *r = levels_next(&b->levels, &at);
    bool any = false;
    for (uint32_t left = b->pending.growth.count; left; left--) {
        struct request *next = levels_next(&b->levels, &at);
        if (request_is_cancelled(r)) {
            batcher_drop(b, r);
            any = true;
        }
        r = next;
    }
    if (any)
        pending_reset(b);
}

static size_t take_batch(struct batcher *b, time_ns now, struct request **out, time_ns *ret_wake)
{
    pending_recheck(b);
    uint32_t n = batcher_choose(b, now, ret_wake);
    for (uint32_t i = 0; i < n; i++) {
        struct levels_cursor at = {0};
        out[i] = levels_next(&b->levels, &at);
        batcher_detach(b, out[i]);
    }
    if (n)
        pending_reset(b);
    return n;
}

static size_t take_one(struct batcher *b, struct request **out, time_ns *ret_wake)
{
    struct levels_cursor first = {0};
    struct request *r;
    while ((r = levels_next(&b->levels, &first)) != NULL) {
        first = (struct levels_cursor){0};
        if (request_is_cancelled(r)) {
            batcher_drop(b, r);
            continue;
        }
        batcher_detach(b, r);
        out[0] = r;
        return 1;
    }
    *ret_wake = TIME_NEVER;
    return 0;
}

/* True if nothing may run until more requests wait. */
static bool batcher_holds(struct batcher *b, time_ns *ret_wake)
{
    if (b->levels.waiting < b->hold_until) {
        *ret_wake = TIME_NEVER;
        return true;
    }
    b->hold_until = 0;
    return false;
}

size_t batcher_take(struct batcher *b, time_ns now, struct request **out, size_t cap,
                    time_ns *ret_wake)
{
    CHECK(cap >= b->goal.max_count);
    if (batcher_holds(b, ret_wake))
        return 0;
    batcher_sweep(b, now);
    size_t n = b->dynamic ? take_batch(b, now, out, ret_wake) : take_one(b, out, ret_wake);
    publish_depth(b);
    return n;
}

bool batcher_ready(struct batcher *b, time_ns now, time_ns *ret_wake)
{
    if (batcher_holds(b, ret_wake))
        return false;
    batcher_sweep(b, now);
    if (b->dynamic)
        return batcher_choose(b, now, ret_wake) != 0;
    if (b->levels.waiting)
        return true;
    *ret_wake = TIME_NEVER;
    return false;
}

/* -- requests that will not run -- */

size_t batcher_expire(struct batcher *b, time_ns now, struct list *ret_list)
{
    batcher_sweep(b, now);
    size_t n = 0;
    LIST_EACH (it, &b->dropped)
        n++;
    list_splice(ret_list, &b->dropped);
    return n;
}

bool batcher_has_dropped(const struct batcher *b)
{
    return !list_empty(&b->dropped);
}

time_ns batcher_next_deadline(const struct batcher *b)
{
    if (!list_empty(&b->dropped))
        return 0;
    return b->hold_until ? TIME_NEVER : deadline_heap_first(&b->deadlines);
}

bool batcher_remove(struct batcher *b, struct request *r)
{
    if (r->queue_level == 0)
        return false;
    batcher_detach(b, r);
    pending_reset(b);
    publish_depth(b);
    return true;
}

size_t batcher_drain(struct batcher *b, struct list *ret_list)
{
    size_t n = batcher_expire(b, 0, ret_list);
    for (;;) {
        struct levels_cursor at = {0};
        struct request *r = levels_next(&b->levels, &at);
        if (!r)
            break;
        batcher_detach(b, r);
        list_append(ret_list, &r->queue_node);
        n++;
    }
    pending_reset(b);
    publish_depth(b);
    return n;
}

/* -- queries -- */

size_t batcher_slots(const struct batcher *b)
{
    return b->goal.max_count;
}

size_t batcher_depth(const struct batcher *b)
{
    return atomic_load_explicit(&b->depth, memory_order_relaxed);
}

time_ns batcher_oldest(const struct batcher *b)
{
    time_ns oldest = TIME_NEVER;
    for (size_t i = 0; i < b->levels.count; i++) {
        const struct levels_queue *q = b->levels.queues[i];
        const struct list *heads[] = {&q->in_time, &q->late};
        for (size_t k = 0; k < 2; k++) {
            if (list_empty(heads[k]))
                continue;
            time_ns start =
                LIST_ITEM(heads[k]->next, struct request, queue_node)->times.queue_start;
            oldest = start < oldest ? start : oldest;
        }
    }
    return oldest;
}

time_ns batcher_first(const struct batcher *b)
{
    struct levels_cursor at = {0};
    const struct request *r = levels_next(&b->levels, &at);
    return r ? r->times.queue_start : TIME_NEVER;
}
