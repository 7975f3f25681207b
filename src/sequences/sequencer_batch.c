/* Chooses what runs next among the sequences of one instance. */
#include "base/check.h"
#include "sequences/sequencer_priv.h"

static bool sequencer_batch_fits(const struct sequencer *s, const struct request *first,
                                 const struct request *r)
{
    if (first == r)
        return true;
    if (!batch_match_equal(&s->match, first, r))
        return false;
    return !r->states || state_fits(first, sequencer_of(first)->states, r, sequencer_of(r)->states);
}

/* The request of a slot that could run; NULL if it has none. A sequence whose first request is
 * cancelled ends here. */
static struct request *ready_in(struct sequencer *s, struct sequencer_instance *i, uint32_t slot)
{
    for (;;) {
        struct sequence *q = slot < i->used ? i->sequences[slot] : NULL;
        struct request *r = q ? sequencer_first(q) : NULL;
        if (!r || !request_is_cancelled(r))
            return r;
        sequencer_abort(s, q, true); /* another sequence may have the slot now */
    }
}

/* True if too few slots are ready and the oldest request may still wait. */
static bool sequencer_batch_may_wait(const struct sequencer *s, uint32_t ready, time_ns oldest,
                                     time_ns now, time_ns *ret_wake)
{
    if (s->goal.delay == 0 || s->min_utilization <= 0 ||
        (float)ready >= s->min_utilization * (float)s->goal.max_rows)
        return false;
    *ret_wake = time_later(oldest, s->goal.delay);
    return *ret_wake > now;
}

/* The oldest request of a slot that could run: others go with it as far as they fit, so that no
 * slot waits for ever for those before it. NULL if there is none. */
static struct request *oldest_in(struct sequencer *s, struct sequencer_instance *i,
                                 uint32_t *ret_ready)
{
    struct request *oldest = NULL;
    *ret_ready = 0;
    for (uint32_t k = 0; k < i->used; k++) {
        struct request *r = ready_in(s, i, k);
        *ret_ready += r != NULL;
        if (r && (!oldest || r->times.queue_start < oldest->times.queue_start))
            oldest = r;
    }
    return oldest;
}

size_t sequencer_batch_direct(struct sequencer *s, struct sequencer_instance *i, time_ns now,
                              struct request **out, time_ns *ret_wake)
{
    *ret_wake = TIME_NEVER;
    if (!i->ready)
        return 0;
    uint32_t ready, end = 0;
    const struct request *first = oldest_in(s, i, &ready);
    if (!first || sequencer_batch_may_wait(s, ready, first->times.queue_start, now, ret_wake))
        return 0;
    for (uint32_t k = 0; k < i->used; k++) {
        const struct request *r = i->sequences[k] ? sequencer_first(i->sequences[k]) : NULL;
        if (r && sequencer_batch_fits(s, first, r))
            end = k + 1;
    }
    if (!out)
        return end;
    for (uint32_t k = 0; k < end; k++) {
        struct sequence *q = k < i->used ? i->sequences[k] : NULL;
        struct request *r = q ? sequencer_first(q) : NULL;
        out[k] = r && sequencer_batch_fits(s, first, r) ? sequencer_pop(s, q) : NULL;
    }
    return end;
}

/* The candidates that fit in one batch, from the oldest on, as far as they can change the
 * choice. */
static struct batch_growth sequencer_batch_grow(struct sequencer *s, struct sequencer_instance *i)
{
    const struct request *first = NULL;
    struct batch_growth growth = BATCH_GROWTH_NONE;
    for (struct list *it = i->candidates.next, *next = it->next;
         it != &i->candidates && !batch_goal_settled(&s->goal, &growth);
         it = next, next = it->next) {
        struct sequence *q = LIST_ITEM(it, struct sequence, candidate);
        const struct request *r = sequencer_first(q);
        if (request_is_cancelled(r)) {
            sequencer_abort(s, q, true);
            /* A sequence that got the free slot may stand anywhere in the list, so start again. */
            next = i->candidates.next;
            growth = BATCH_GROWTH_NONE;
            first = NULL;
            continue;
        }
        if (!first)
            first = r;
        if (sequencer_batch_fits(s, first, r))
            batch_goal_add(&s->goal, &growth, 1, r->times.queue_start);
        else
            growth.closed = true;
    }
    return growth;
}

size_t sequencer_batch_oldest(struct sequencer *s, struct sequencer_instance *i, time_ns now,
                              struct request **out, time_ns *ret_wake)
{
    struct batch_growth growth = sequencer_batch_grow(s, i);
    uint32_t n = batch_goal_choose(&s->goal, &growth, now, ret_wake);
    for (uint32_t k = 0; out && k < n; k++)
        out[k] = sequencer_pop(s, LIST_ITEM(i->candidates.next, struct sequence, candidate));
    return n;
}
