#pragma once
/* Queued requests by deadline, earliest first; of equal deadlines the one that was added first.
 * A request knows its place (queue_heap), so that any of them leaves in O(log n). Locks are the
 * caller's. */
#include "os/clock.h"

#include <stddef.h>
#include <stdint.h>

struct request;

struct deadline_heap_item {
    time_ns when;
    uint64_t added; /* running number: the order of those with one deadline */
    struct request *request;
};

/* All zeros is empty. */
struct deadline_heap {
    struct deadline_heap_item *items; /* items[1..count] */
    size_t count;
    size_t cap;
    uint64_t added;
};

/* deadline_heap_add - r->queue_deadline decides; r is not in a heap yet. */
void deadline_heap_add(struct deadline_heap *h, struct request *r);

/* deadline_heap_remove - r->queue_heap becomes 0; one that is in no heap is left alone. */
void deadline_heap_remove(struct deadline_heap *h, struct request *r);

/* deadline_heap_first - the earliest deadline; TIME_NEVER when empty. */
static inline time_ns deadline_heap_first(const struct deadline_heap *h)
{
    return h->count ? h->items[1].when : TIME_NEVER;
}

/* deadline_heap_pop_due - the request with the earliest deadline, if that is not after `now`;
 * else NULL. */
struct request *deadline_heap_pop_due(struct deadline_heap *h, time_ns now);

void deadline_heap_fini(struct deadline_heap *h);
