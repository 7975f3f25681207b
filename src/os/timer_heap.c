#include "os/timer_heap.h"

#include "base/mem.h"

#define CAP_LEAST ((size_t)64)

static void timer_heap_resize(struct timer_heap *h, size_t cap)
{
    h->cap = cap;
    h->items = mem_realloc(h->items, cap * sizeof(struct loop_timer *));
}

static void timer_heap_place(struct timer_heap *h, struct loop_timer *t, size_t i)
{
    h->items[i] = t;
    t->heap_index = i;
}

static void timer_heap_sift_up(struct timer_heap *h, struct loop_timer *t, size_t i)
{
    for (; i > 1 && h->items[i / 2]->when > t->when; i /= 2)
        timer_heap_place(h, h->items[i / 2], i);
    timer_heap_place(h, t, i);
}

static void timer_heap_sift_down(struct timer_heap *h, struct loop_timer *t, size_t i)
{
    for (;;) {
        size_t child = i * 2;
        if (child > h->count)
            break;
        if (child < h->count && h->items[child + 1]->when < h->items[child]->when)
            child++;
        if (h->items[child]->when >= t->when)
            break;
        timer_heap_place(h, h->items[child], i);
        i = child;
    }
    timer_heap_place(h, t, i);
}

void timer_heap_set(struct timer_heap *h, struct loop_timer *t, time_ns when)
{
    timer_heap_clear(h, t);
    if (h->count + 2 > h->cap)
        timer_heap_resize(h, h->cap ? h->cap * 2 : CAP_LEAST);
    t->when = when;
    timer_heap_sift_up(h, t, ++h->count);
}

void timer_heap_clear(struct timer_heap *h, struct loop_timer *t)
{
    size_t i = t->heap_index;
    if (!i)
        return;
    t->heap_index = 0;
    struct loop_timer *last = h->items[h->count--];
    if (last != t) {
        if (i > 1 && h->items[i / 2]->when > last->when)
            timer_heap_sift_up(h, last, i);
        else
            timer_heap_sift_down(h, last, i);
    }
    if (h->cap > CAP_LEAST && h->count < h->cap / 4)
        timer_heap_resize(h, h->cap / 2);
}

time_ns timer_heap_first(const struct timer_heap *h)
{
    return h->count ? h->items[1]->when : TIME_NEVER;
}

struct loop_timer *timer_heap_pop_due(struct timer_heap *h, time_ns now)
{
    if (!h->count || h->items[1]->when > now)
        return NULL;
    struct loop_timer *t = h->items[1];
    timer_heap_clear(h, t);
    return t;
}

void timer_heap_fini(struct timer_heap *h)
{
    for (size_t i = 1; i <= h->count; i++)
        h->items[i]->heap_index = 0;
    mem_free(h->items);
    *h = (struct timer_heap){0};
}
