#pragma once
/* Queued requests by deadline, earliest first; equal deadlines in the order of addition. A
 * request knows its index (queue_heap), so removing it takes O(log n). The caller does the
 * locking. */
#include "os/clock.h"

#include <stddef.h>
#include <stdint.h>

struct request;

struct deadline_heap_item {
    time_ns when;
    uint64_t added; /* running number: orders requests with equal deadlines */
    struct request *request;
};

/* All zeros is an empty heap. */
struct deadline_heap {
    struct deadline_heap_item *items; /* items[1..count] */
    size_t count;
    size_t cap;
    uint64_t added;
};

/* deadline_heap_add - add r by r->queue_deadline; r is not in a heap yet. */
void deadline_heap_add(struct deadline_heap *h, struct request *r);

/* deadline_heap_remove - take r out and set r->queue_heap to 0. A request that is in no heap is
 * ignored. */
void deadline_heap_remove(struct deadline_heap *h, struct request *r);

/* deadline_heap_first - the earliest deadline; TIME_NEVER when empty. */
static inline time_ns deadline_heap_first(const struct deadline_heap *h)
{
    return h->count ? h->items[1].when : TIME_NEVER;
}

/* deadline_heap_pop_due - take out the request with the earliest deadline if the deadline is not
 * after `now`; else NULL. */
struct request *deadline_heap_pop_due(struct deadline_heap *h, time_ns now);

void deadline_heap_fini(struct deadline_heap *h);
