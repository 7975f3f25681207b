#include "batching/deadline_heap.h"

#include "base/check.h"
#include "base/mem.h"
#include "infer/request.h"

#include <stdbool.h>

#define FIRST_CAP 16u

static bool before(const struct deadline_heap_item *a, const struct deadline_heap_item *b)
{
    return a->when != b->when ? a->when < b->when : a->added < b->added;
}

static void deadline_heap_put(struct deadline_heap *h, size_t at, struct deadline_heap_item item)
{
    h->items[at] = item;
    item.request->queue_heap = (uint32_t)at;
}

static void deadline_heap_sift_up(struct deadline_heap *h, size_t at,
                                  struct deadline_heap_item item)
{
    while (at > 1 && before(&item, &h->items[at / 2])) {
        deadline_heap_put(h, at, h->items[at / 2]);
        at /= 2;
    }
    deadline_heap_put(h, at, item);
}

static void deadline_heap_sift_down(struct deadline_heap *h, size_t at,
                                    struct deadline_heap_item item)
{
    for (;;) {
        size_t child = at * 2;
        if (child > h->count)
            break;
        if (child < h->count && before(&h->items[child + 1], &h->items[child]))
            child++;
        if (!before(&h->items[child], &item))
            break;
        deadline_heap_put(h, at, h->items[child]);
        at = child;
    }
    deadline_heap_put(h, at, item);
}

static void deadline_heap_resize(struct deadline_heap *h, size_t cap)
{
    h->items = mem_realloc(h->items, (cap + 1) * sizeof(h->items[0]));
    h->cap = cap;
}

void deadline_heap_add(struct deadline_heap *h, struct request *r)
{
    CHECK(r->queue_heap == 0);
    CHECK(h->count < UINT32_MAX);
    if (h->count == h->cap)
        deadline_heap_resize(h, h->cap ? h->cap * 2 : FIRST_CAP);
    h->count++;
    deadline_heap_sift_up(h, h->count,
                          (struct deadline_heap_item){r->queue_deadline, h->added++, r});
}

void deadline_heap_remove(struct deadline_heap *h, struct request *r)
{
    size_t at = r->queue_heap;
    if (at == 0)
        return;
    CHECK(at <= h->count && h->items[at].request == r);
    r->queue_heap = 0;
    struct deadline_heap_item last = h->items[h->count];
    h->count--;
    if (last.request != r) {
        if (at > 1 && before(&last, &h->items[at / 2]))
            deadline_heap_sift_up(h, at, last);
        else
            deadline_heap_sift_down(h, at, last);
    }
    /* Give memory back after a burst. */
    if (h->cap > FIRST_CAP && h->count < h->cap / 4)
        deadline_heap_resize(h, h->cap / 2);
}

struct request *deadline_heap_pop_due(struct deadline_heap *h, time_ns now)
{
    if (h->count == 0 || h->items[1].when > now)
        return NULL;
    struct request *r = h->items[1].request;
    deadline_heap_remove(h, r);
    return r;
}

void deadline_heap_fini(struct deadline_heap *h)
{
    mem_free(h->items);
    *h = (struct deadline_heap){0};
}
