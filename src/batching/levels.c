#include "batching/levels.h"

#include "base/check.h"
#include "base/mem.h"
#include "infer/request.h"

#include <string.h>

void levels_fini(struct levels *l)
{
    CHECK(l->count == 0);
    while (l->spare) {
        struct levels_queue *q = l->spare;
        l->spare = q->next_spare;
        mem_free(q);
    }
    mem_free(l->queues);
    *l = (struct levels){0};
}

/* The index of the first queue whose level is at least `level`; l->count if there is none. */
static size_t place_of(const struct levels *l, uint64_t level)
{
    size_t low = 0;
    size_t high = l->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (l->queues[middle]->level < level)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static struct levels_queue *find_level(const struct levels *l, uint64_t level)
{
    size_t at = place_of(l, level);
    return at < l->count && l->queues[at]->level == level ? l->queues[at] : NULL;
}

static struct levels_queue *open_level(struct levels *l, uint64_t level)
{
    struct levels_queue *q = l->spare;
    if (q)
        l->spare = q->next_spare;
    else
        q = mem_alloc(sizeof(*q));
    *q = (struct levels_queue){.level = level};
    list_init(&q->in_time);
    list_init(&q->late);
    if (l->count == l->cap) {
        l->cap = l->cap ? l->cap * 2 : 4;
        l->queues = mem_realloc(l->queues, l->cap * sizeof(struct levels_queue *));
    }
    size_t at = place_of(l, level);
    memmove(&l->queues[at + 1], &l->queues[at], (l->count - at) * sizeof(struct levels_queue *));
    l->queues[at] = q;
    l->count++;
    return q;
}

static void close_level(struct levels *l, struct levels_queue *q)
{
    size_t at = place_of(l, q->level);
    l->count--;
    memmove(&l->queues[at], &l->queues[at + 1], (l->count - at) * sizeof(struct levels_queue *));
    q->next_spare = l->spare;
    l->spare = q;
}

void levels_add(struct levels *l, struct request *r)
{
    struct levels_queue *q = find_level(l, r->queue_level);
    if (!q)
        q = open_level(l, r->queue_level);
    list_append(&q->in_time, &r->queue_node);
    q->count++;
    l->waiting++;
}

void levels_remove(struct levels *l, struct request *r)
{
    struct levels_queue *q = find_level(l, r->queue_level);
    list_remove(&r->queue_node);
    r->queue_level = 0;
    l->waiting--;
    if (--q->count == 0)
        close_level(l, q);
}

void levels_make_late(struct levels *l, struct request *r)
{
    list_remove(&r->queue_node);
    list_append(&find_level(l, r->queue_level)->late, &r->queue_node);
}

uint32_t levels_waiting(const struct levels *l, uint64_t level)
{
    const struct levels_queue *q = find_level(l, level);
    return q ? q->count : 0;
}

static struct request *move_to(struct levels_cursor *c, struct list *node,
                               const struct levels_queue *q, bool late)
{
    *c = (struct levels_cursor){node, q, late};
    return LIST_ITEM(node, struct request, queue_node);
}

struct request *levels_next(const struct levels *l, struct levels_cursor *c)
{
    const struct levels_queue *q = c->queue;
    size_t at = 0;
    if (c->node) {
        if (c->node->next != (c->late ? &q->late : &q->in_time))
            return move_to(c, c->node->next, q, c->late);
        if (!c->late && !list_empty(&q->late))
            return move_to(c, q->late.next, q, true);
        at = place_of(l, q->level) + 1;
    }
    if (at == l->count)
        return NULL;
    q = l->queues[at];
    if (!list_empty(&q->in_time))
        return move_to(c, q->in_time.next, q, false);
    return move_to(c, q->late.next, q, true);
}

bool levels_after(const struct levels_cursor *c, uint64_t level)
{
    if (!c->node)
        return true;
    return level > c->queue->level || (level == c->queue->level && !c->late);
}
