#include "infer/tally.h"

#include "base/mem.h"
#include "infer/first_response.h"
#include "infer/stats.h"
#include "os/mutex.h"

#include <stdatomic.h>

struct tally {
    atomic_uint refs;
    struct mutex lock; /* rank LEAF; guards what follows */
    struct list parts;
    struct stats *past; /* the sum of the loads that have left; NULL = none has left */
    struct first_response *past_first_response;
};

struct tally *tally_new(void)
{
    struct tally *t = MEM_NEW(struct tally);
    atomic_init(&t->refs, 1);
    mutex_init(&t->lock, MUTEX_RANK_LEAF);
    list_init(&t->parts);
    return t;
}

struct tally *tally_ref(struct tally *t)
{
    atomic_fetch_add_explicit(&t->refs, 1, memory_order_relaxed);
    return t;
}

void tally_unref(struct tally *t)
{
    if (!t || atomic_fetch_sub_explicit(&t->refs, 1, memory_order_acq_rel) != 1)
        return;
    stats_free(t->past);
    first_response_free(t->past_first_response);
    mutex_fini(&t->lock);
    mem_free(t);
}

void tally_join(struct tally *t, struct tally_part *part, struct stats *stats,
                struct first_response *first_response)
{
    *part = (struct tally_part){.tally = t, .stats = stats, .first_response = first_response};
    mutex_lock(&t->lock);
    list_append(&t->parts, &part->node);
    mutex_unlock(&t->lock);
}

void tally_leave(struct tally_part *part)
{
    struct tally *t = part->tally;
    if (!t)
        return;
    mutex_lock(&t->lock);
    list_remove(&part->node);
    if (!t->past)
        t->past = stats_new();
    stats_absorb(t->past, part->stats);
    if (part->first_response)
        first_response_absorb(&t->past_first_response, part->first_response);
    mutex_unlock(&t->lock);
    part->tally = NULL;
    tally_unref(t);
}

struct stats *tally_total(const struct tally_part *part)
{
    struct tally *t = part->tally;
    if (!t)
        return NULL;
    struct stats *total = NULL;
    mutex_lock(&t->lock);
    bool alone = !t->past && t->parts.next == t->parts.prev;
    if (!alone)
        total = stats_new();
    if (!alone && t->past)
        stats_absorb(total, t->past);
    LIST_EACH (node, &t->parts)
        if (!alone)
            stats_absorb(total, LIST_ITEM(node, struct tally_part, node)->stats);
    mutex_unlock(&t->lock);
    return total;
}

void tally_first_response(const struct tally_part *part, uint64_t *counts, uint64_t *sum_ms)
{
    struct tally *t = part->tally;
    if (!t)
        return;
    mutex_lock(&t->lock);
    if (t->past_first_response)
        first_response_add(t->past_first_response, part->first_response, counts, sum_ms);
    LIST_EACH (node, &t->parts) {
        const struct tally_part *other = LIST_ITEM(node, struct tally_part, node);
        if (other != part && other->first_response)
            first_response_add(other->first_response, part->first_response, counts, sum_ms);
    }
    mutex_unlock(&t->lock);
}
