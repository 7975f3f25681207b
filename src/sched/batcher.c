#include "sched/batcher.h"

#include "base/check.h"
#include "base/mem.h"
#include "infer/request.h"
#include "sched/batch_match.h"
#include "sched/deadline_heap.h"
#include "sched/levels.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* The batch that would be taken now, as far as it was looked at: a prefix of the running order.
 * It is kept between calls, so that each request is compared once while a batch grows. */
struct pending {
    struct levels_cursor last; /* its last request; before the first while empty */
    struct request *first;
    uint32_t count;
    bool closed; /* the next request cannot join, or no more may */
    uint64_t rows;
    size_t next_preferred; /* index of the smallest preferred size > rows */
    /* Requests of the prefix whose rows are the largest preferred size so far; 0 = none yet. */
    uint32_t best_count;
    time_ns oldest; /* smallest queue_start */
};

struct batcher {
    struct levels levels;
    struct deadline_heap deadlines;
    struct list dropped;
    atomic_size_t depth; /* a copy of levels.waiting for readers without the lock; orders nothing */
    bool dynamic;
    bool batched; /* shapes begin with the batch dimension */
    uint32_t max_rows;
    uint32_t slots;
    uint32_t default_level;
    time_ns delay;
    struct pending pending;
    uint32_t *preferred; /* rising, at least one */
    size_t preferred_count;
    struct batcher_policy *policies; /* [0] is the default one */
    char **shape_tensors;
    size_t shape_tensor_count;
};

/* -- making one -- */

static struct err *check_config(const struct batcher_config *c)
{
    for (size_t i = 0; i < c->preferred_count; i++) {
        if (c->preferred[i] == 0)
            return err_new(STATUS_INVALID_ARG, "dynamic batching preferred size must be positive");
        if (c->preferred[i] > c->max_batch_size)
            return err_new(STATUS_INVALID_ARG,
                           "dynamic batching preferred size must be <= max batch size");
    }
    if (c->priority_levels > BATCHER_MAX_LEVELS)
        return err_new(STATUS_INVALID_ARG, "priority levels must be at most %u, got %llu",
                       BATCHER_MAX_LEVELS, (unsigned long long)c->priority_levels);
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

static int rising(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a;
    uint32_t y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

static void set_preferred(struct batcher *b, const struct batcher_config *c)
{
    b->preferred_count = c->preferred_count ? c->preferred_count : 1;
    b->preferred = mem_alloc(b->preferred_count * sizeof(uint32_t));
    b->preferred[0] = b->max_rows;
    if (c->preferred_count)
        memcpy(b->preferred, c->preferred, c->preferred_count * sizeof(uint32_t));
    qsort(b->preferred, b->preferred_count, sizeof(uint32_t), rising);
}

static void set_policies(struct batcher *b, const struct batcher_config *c)
{
    size_t own = b->dynamic && c->priority_levels ? c->level_policy_count : 0;
    b->policies = mem_zalloc((own + 1) * sizeof(struct batcher_policy));
    /* The default scheduler has no policy to set: a time-out that a request brings holds. */
    b->policies[0] =
        b->dynamic ? c->default_policy : (struct batcher_policy){.allow_timeout_override = true};
    for (uint32_t i = 0; i < b->levels.count; i++)
        b->levels.queues[i].policy = &b->policies[0];
    for (size_t i = 0; i < own; i++) {
        b->policies[i + 1] = c->level_policies[i].policy;
        b->levels.queues[c->level_policies[i].level - 1].policy = &b->policies[i + 1];
    }
}

static void pending_reset(struct batcher *b)
{
    b->pending = (struct pending){.oldest = TIME_NEVER};
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
    b->batched = c->max_batch_size > 0;
    b->max_rows = c->max_batch_size ? c->max_batch_size : 1;
    b->slots = !b->dynamic                          ? 1
               : b->max_rows < BATCHER_MAX_REQUESTS ? b->max_rows
                                                    : BATCHER_MAX_REQUESTS;
    b->delay = time_from_us(c->delay_us);
    b->default_level = b->dynamic && c->priority_levels ? (uint32_t)c->default_level : 1;
    pending_reset(b);
    if (!levels_init(&b->levels,
                     b->dynamic && c->priority_levels ? (uint32_t)c->priority_levels : 1)) {
        batcher_free(b);
        return err_new(STATUS_UNAVAILABLE, "no memory for %llu priority levels",
                       (unsigned long long)c->priority_levels);
    }
    set_preferred(b, c);
    set_policies(b, c);
    b->shape_tensors = mem_zalloc(c->shape_tensor_count * sizeof(char *));
    for (size_t i = 0; i < c->shape_tensor_count; i++)
        b->shape_tensors[i] = mem_strdup(c->shape_tensors[i]);
    b->shape_tensor_count = c->shape_tensor_count;
    *ret = b;
    return NULL;
}

void batcher_free(struct batcher *b)
{
    if (!b)
        return;
    CHECK(b->levels.waiting == 0 && list_empty(&b->dropped));
    for (size_t i = 0; i < b->shape_tensor_count; i++)
        mem_free(b->shape_tensors[i]);
    mem_free(b->shape_tensors);
    mem_free(b->policies);
    mem_free(b->preferred);
    deadline_heap_fini(&b->deadlines);
    levels_fini(&b->levels);
    mem_free(b);
}

/* -- the queue -- */

static void publish_depth(struct batcher *b)
{
    atomic_store_explicit(&b->depth, b->levels.waiting, memory_order_relaxed);
}

/* Take a request out of the queue. What was known of the pending batch is void then. */
static void detach(struct batcher *b, struct request *r)
{
    if (r->queue_heap)
        deadline_heap_remove(&b->deadlines, r);
    levels_remove(&b->levels, r);
}

static void drop(struct batcher *b, struct request *r)
{
    detach(b, r);
    list_append(&b->dropped, &r->queue_node);
}

/* Apply the policies to the requests whose deadline has come. */
static void sweep(struct batcher *b, time_ns now)
{
    if (deadline_heap_first(&b->deadlines) > now)
        return;
    struct request *r;
    while ((r = deadline_heap_pop_due(&b->deadlines, now)) != NULL) {
        r->queue_deadline = TIME_NEVER;
        if (b->levels.queues[r->queue_level - 1].policy->action == BATCHER_TIMEOUT_DELAY)
            levels_make_late(&b->levels, r);
        else
            drop(b, r);
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
    uint32_t level = b->default_level;
    if (r->priority != 0 && r->priority <= b->levels.count)
        level = (uint32_t)r->priority;
    const struct levels_queue *q = &b->levels.queues[level - 1];
    const struct batcher_policy *p = q->policy;
    if (p->max_queue_size != 0 && q->count >= p->max_queue_size) {
        sweep(b, now);
        if (q->count >= p->max_queue_size)
            return BATCHER_PUSH_FULL;
    }
    CHECK(r->queue_level == 0);
    r->times.queue_start = now;
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

/* No larger preferred size than what is there can still be made. */
static bool past_preferred(const struct batcher *b)
{
    return b->pending.next_preferred == b->preferred_count;
}

static void pending_add(struct batcher *b, struct request *r, const struct levels_cursor *at)
{
    struct pending *p = &b->pending;
    if (p->count == 0)
        p->first = r;
    p->last = *at;
    p->count++;
    p->rows += rows_of(r);
    if (r->times.queue_start < p->oldest)
        p->oldest = r->times.queue_start;
    while (!past_preferred(b) && b->preferred[p->next_preferred] <= p->rows) {
        if (b->preferred[p->next_preferred] == p->rows)
            p->best_count = p->count;
        p->next_preferred++;
    }
    p->closed = p->rows >= b->max_rows || p->count == b->slots;
}

/* Grow the pending batch by what waits behind it, as far as that can matter. */
static void pending_extend(struct batcher *b)
{
    struct pending *p = &b->pending;
    while (!p->closed && !(p->best_count && past_preferred(b))) {
        struct levels_cursor at = p->last;
        struct request *r = levels_next(&b->levels, &at);
        if (!r)
            return;
        if (request_is_cancelled(r)) {
            drop(b, r);
            publish_depth(b);
            continue;
        }
        if (p->count && (p->rows + rows_of(r) > b->max_rows ||
                         !batch_match_equal(p->first, r, b->batched, b->shape_tensors,
                                            b->shape_tensor_count))) {
            p->closed = true;
            return;
        }
        pending_add(b, r, &at);
    }
}

/* How many requests to run now; 0 = wait until *ret_wake. */
static uint32_t choose(struct batcher *b, time_ns now, time_ns *ret_wake)
{
    pending_extend(b);
    const struct pending *p = &b->pending;
    if (p->best_count)
        return p->best_count;
    if (p->count == 0) {
        *ret_wake = TIME_NEVER;
        return 0;
    }
    time_ns until = time_later(p->oldest, b->delay);
    if (p->closed || past_preferred(b) || b->delay == 0 || until <= now)
        return p->count;
    /* A deadline in between changes what waits. */
    time_ns deadline = deadline_heap_first(&b->deadlines);
    *ret_wake = deadline < until ? deadline : until;
    return 0;
}

/* Requests of the pending batch may have been cancelled since they were looked at: start again
 * without them. */
static void pending_recheck(struct batcher *b)
{
    struct levels_cursor at = {0};
    struct request *r = levels_next(&b->levels, &at);
    bool any = false;
    for (uint32_t left = b->pending.count; left; left--) {
        struct request *next = levels_next(&b->levels, &at);
        if (request_is_cancelled(r)) {
            drop(b, r);
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
    uint32_t n = choose(b, now, ret_wake);
    for (uint32_t i = 0; i < n; i++) {
        struct levels_cursor at = {0};
        out[i] = levels_next(&b->levels, &at);
        detach(b, out[i]);
    }
    if (n)
        pending_reset(b);
    return n;
}

static size_t take_one(struct batcher *b, struct request **out, time_ns *ret_wake)
{
    struct list *queue = &b->levels.queues[0].in_time;
    while (!list_empty(queue)) {
        struct request *r = LIST_ITEM(queue->next, struct request, queue_node);
        if (request_is_cancelled(r)) {
            drop(b, r);
            continue;
        }
        detach(b, r);
        out[0] = r;
        return 1;
    }
    *ret_wake = TIME_NEVER;
    return 0;
}

size_t batcher_take(struct batcher *b, time_ns now, struct request **out, size_t cap,
                    time_ns *ret_wake)
{
    CHECK(cap >= b->slots);
    sweep(b, now);
    size_t n = b->dynamic ? take_batch(b, now, out, ret_wake) : take_one(b, out, ret_wake);
    publish_depth(b);
    return n;
}

bool batcher_ready(struct batcher *b, time_ns now, time_ns *ret_wake)
{
    sweep(b, now);
    if (b->dynamic)
        return choose(b, now, ret_wake) != 0;
    if (b->levels.waiting)
        return true;
    *ret_wake = TIME_NEVER;
    return false;
}

/* -- what will not run -- */

size_t batcher_expire(struct batcher *b, time_ns now, struct list *ret_list)
{
    sweep(b, now);
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
    return list_empty(&b->dropped) ? deadline_heap_first(&b->deadlines) : 0;
}

bool batcher_remove(struct batcher *b, struct request *r)
{
    if (r->queue_level == 0)
        return false;
    detach(b, r);
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
        detach(b, r);
        list_append(ret_list, &r->queue_node);
        n++;
    }
    pending_reset(b);
    publish_depth(b);
    return n;
}

/* -- what others ask -- */

size_t batcher_slots(const struct batcher *b)
{
    return b->slots;
}

size_t batcher_depth(const struct batcher *b)
{
    return atomic_load_explicit(&b->depth, memory_order_relaxed);
}

time_ns batcher_oldest(const struct batcher *b)
{
    time_ns oldest = TIME_NEVER;
    for (uint32_t i = 0; i < b->levels.count; i++) {
        const struct levels_queue *q = &b->levels.queues[i];
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
