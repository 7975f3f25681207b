#include "sched/levels.h"

#include "base/mem.h"
#include "infer/request.h"

#include <string.h>

bool levels_init(struct levels *l, uint32_t count)
{
    size_t words = (count + 63u) / 64u;
    *l = (struct levels){.count = count};
    l->queues = mem_try_alloc(mem_array_bytes(count, sizeof(l->queues[0])), 8);
    l->occupied = mem_try_alloc(words * sizeof(uint64_t), 8);
    if (!l->queues || !l->occupied) {
        levels_fini(l);
        return false;
    }
    memset(l->occupied, 0, words * sizeof(uint64_t));
    for (uint32_t i = 0; i < count; i++) {
        list_init(&l->queues[i].in_time);
        list_init(&l->queues[i].late);
        l->queues[i].count = 0;
        l->queues[i].policy = NULL;
    }
    return true;
}

void levels_fini(struct levels *l)
{
    mem_free(l->queues);
    mem_free(l->occupied);
    *l = (struct levels){0};
}

void levels_add(struct levels *l, struct request *r)
{
    uint32_t i = r->queue_level - 1;
    struct levels_queue *q = &l->queues[i];
    list_append(&q->in_time, &r->queue_node);
    q->count++;
    l->waiting++;
    l->occupied[i / 64] |= 1ull << (i % 64);
}

void levels_remove(struct levels *l, struct request *r)
{
    uint32_t i = r->queue_level - 1;
    struct levels_queue *q = &l->queues[i];
    list_remove(&r->queue_node);
    r->queue_level = 0;
    q->count--;
    l->waiting--;
    if (q->count == 0)
        l->occupied[i / 64] &= ~(1ull << (i % 64));
}

void levels_make_late(struct levels *l, struct request *r)
{
    list_remove(&r->queue_node);
    list_append(&l->queues[r->queue_level - 1].late, &r->queue_node);
}

/* The first level >= from whose queues are not empty; l->count when there is none. */
static uint32_t next_occupied(const struct levels *l, uint32_t from)
{
    if (from >= l->count)
        return l->count;
    uint32_t word = from / 64;
    uint64_t bits = l->occupied[word] & (~0ull << (from % 64));
    uint32_t words = (l->count + 63u) / 64u;
    while (bits == 0) {
        if (++word == words)
            return l->count;
        bits = l->occupied[word];
    }
    return word * 64u + (uint32_t)__builtin_ctzll(bits);
}

static struct request *move_to(struct levels_cursor *c, struct list *node, uint32_t level,
                               bool late)
{
    *c = (struct levels_cursor){node, level, late};
    return LIST_ITEM(node, struct request, queue_node);
}

struct request *levels_next(const struct levels *l, struct levels_cursor *c)
{
    uint32_t level = 0;
    if (c->node) {
        const struct levels_queue *q = &l->queues[c->level];
        if (c->node->next != (c->late ? &q->late : &q->in_time))
            return move_to(c, c->node->next, c->level, c->late);
        if (!c->late && !list_empty(&q->late))
            return move_to(c, q->late.next, c->level, true);
        level = c->level + 1;
    }
    level = next_occupied(l, level);
    if (level == l->count)
        return NULL;
    const struct levels_queue *q = &l->queues[level];
    if (!list_empty(&q->in_time))
        return move_to(c, q->in_time.next, level, false);
    return move_to(c, q->late.next, level, true);
}

bool levels_after(const struct levels_cursor *c, uint32_t level)
{
    if (!c->node)
        return true;
    return level - 1 > c->level || (level - 1 == c->level && !c->late);
}
