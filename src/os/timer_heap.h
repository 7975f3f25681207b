#pragma once
/* A binary heap of timers, earliest first. It shrinks when it is mostly empty. Pure: time is a
 * parameter. */
#include "os/loop.h"

struct timer_heap {
    struct loop_timer **items; /* items[1..count]; a timer knows its index */
    size_t count;
    size_t cap;
};

void timer_heap_set(struct timer_heap *h, struct loop_timer *t, time_ns when);
void timer_heap_clear(struct timer_heap *h, struct loop_timer *t);

/* timer_heap_first - when the earliest timer is due; TIME_NEVER if there is none. */
time_ns timer_heap_first(const struct timer_heap *h);

/* timer_heap_pop_due - take out the earliest timer if it is due at `now`; else NULL. */
struct loop_timer *timer_heap_pop_due(struct timer_heap *h, time_ns now);
void timer_heap_fini(struct timer_heap *h);
