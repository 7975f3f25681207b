#include "os/backlog.h"

void backlog_init(struct backlog *b)
{
    atomic_init(&b->count, 0);
    atomic_init(&b->wanted, false);
    mutex_init(&b->lock, MUTEX_RANK_LEAF);
    mutex_cond_init(&b->room);
}

void backlog_fini(struct backlog *b)
{
    mutex_cond_fini(&b->room);
    mutex_fini(&b->lock);
}

void backlog_add(struct backlog *b)
{
    atomic_fetch_add_explicit(&b->count, 1, memory_order_relaxed);
}

/* Sequentially consistent with backlog_wait_for_room: either the owner sees that somebody waits,
 * or whoever waits sees that there are few. */
void backlog_drop(struct backlog *b, unsigned count)
{
    if (atomic_fetch_sub(&b->count, count) - count > BACKLOG_FEW || !atomic_load(&b->wanted))
        return;
    mutex_lock(&b->lock);
    atomic_store(&b->wanted, false);
    mutex_cond_broadcast(&b->room);
    mutex_unlock(&b->lock);
}

void backlog_wait_for_room(struct backlog *b)
{
    if (atomic_load_explicit(&b->count, memory_order_relaxed) <= BACKLOG_MOST)
        return;
    time_ns until = clock_now_ns() + BACKLOG_LONGEST;
    mutex_lock(&b->lock);
    atomic_store(&b->wanted, true);
    if (atomic_load(&b->count) > BACKLOG_FEW) /* once: to go on too early does no harm */
        mutex_cond_wait_until(&b->room, &b->lock, until);
    mutex_unlock(&b->lock);
}
