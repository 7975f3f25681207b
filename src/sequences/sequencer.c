#include "sequences/sequencer.h"

#include "base/check.h"
#include "base/mem.h"
#include "sequences/sequencer_priv.h"

#include <search.h>
#include <string.h>

#define DEFAULT_IDLE_US 1000000u

/* -- making one -- */

struct sequencer *sequencer_new(const struct sequencer_config *c)
{
    struct sequencer *s = MEM_NEW(struct sequencer);
    s->oldest = c->oldest;
    s->iterative = c->iterative;
    s->hold_until = c->hold_until;
    s->hold_backlog = c->hold_backlog;
    batch_goal_init(&s->goal, c->max_batch_size, UINT32_MAX, c->preferred, c->preferred_count,
                    c->delay_us);
    batch_match_init(&s->match, c->max_batch_size > 0, c->shape_tensors, c->shape_tensor_count);
    s->limit = !c->oldest ? s->goal.max_rows : c->candidates ? c->candidates : 1;
    s->idle = time_from_us(c->idle_us ? c->idle_us : DEFAULT_IDLE_US);
    s->min_utilization = c->min_utilization;
    list_init(&s->instances);
    list_init(&s->backlog);
    list_init(&s->idlers);
    list_init(&s->looks);
    list_init(&s->dropped);
    return s;
}

/* -- sequences by id -- */

static int by_id(const void *a, const void *b)
{
    const struct sequence *x = a;
    const struct sequence *y = b;
    if (!x->text || !y->text)
        return x->text ? 1 : y->text ? -1 : (x->number > y->number) - (x->number < y->number);
    return strcmp(x->text, y->text);
}

static struct sequence *sequencer_find(struct sequencer *s, const struct request *r)
{
    if (r->unnamed)
        return NULL;
    struct sequence key = {.number = r->correlation_id, .text = r->correlation_string};
    struct sequence **found = tfind(&key, &s->by_id, by_id);
    return found ? *found : NULL;
}

static struct sequence *sequencer_start(struct sequencer *s, const struct request *r)
{
    struct sequence *q = MEM_NEW(struct sequence);
    q->number = r->correlation_id;
    q->text = r->correlation_string ? mem_strdup(r->correlation_string) : NULL;
    list_init(&q->node);
    list_init(&q->heir);
    list_init(&q->queue);
    list_init(&q->candidate);
    q->known = !r->unnamed;
    CHECK(r->unnamed || tsearch(q, &s->by_id, by_id));
    s->sequences++;
    return q;
}

/* Makes the id free: a START with it begins another sequence. */
static void let_id_go(struct sequencer *s, struct sequence *q)
{
    if (q->known)
        tdelete(q, &s->by_id, by_id);
    q->known = false;
}

/* Makes the id free and marks the sequence as over: nothing more will be queued for it. */
static void sequencer_forget(struct sequencer *s, struct sequence *q)
{
    let_id_go(s, q);
    q->over = true;
}

/* Nothing more will be queued for the sequence. An iterative one ends when the backend releases
 * it. */
static void close_sequence(struct sequencer *s, struct sequence *q)
{
    (s->iterative ? let_id_go : sequencer_forget)(s, q);
}

static void free_sequence(struct sequencer *s, struct sequence *q)
{
    s->sequences--;
    state_set_unref(q->states);
    mem_free((char *)(uintptr_t)q->text);
    mem_free(q);
}

/* -- slots -- */

/* Notes that the instance of this sequence may have a batch. */
static void sequencer_look_at(struct sequencer *s, const struct sequence *q)
{
    struct sequencer_instance *i = q->instance;
    if (i && list_empty(&i->look) && !list_empty(&q->queue))
        list_append(&s->looks, &i->look);
}

/* Makes the sequence a candidate if its first request waits and may run. */
static void make_candidate(struct sequencer *s, struct sequence *q)
{
    sequencer_look_at(s, q);
    if (!s->oldest || q->in_flight || !q->instance || !list_empty(&q->candidate))
        return;
    const struct request *first = sequencer_first(q);
    if (!first)
        return;
    struct list *all = &q->instance->candidates;
    struct list *at = all;
    for (; at->prev != all; at = at->prev) {
        const struct sequence *other = LIST_ITEM(at->prev, struct sequence, candidate);
        if (sequencer_first(other)->times.queue_start <= first->times.queue_start)
            break;
    }
    list_insert_before(at, &q->candidate);
}

static void take_slot(struct sequencer *s, struct sequence *q, struct sequencer_instance *i,
                      uint32_t slot)
{
    if (slot >= i->cap) {
        uint32_t cap = slot < 8 ? 8 : slot * 2;
        i->sequences = mem_realloc(i->sequences, cap * sizeof(*i->sequences));
        memset(i->sequences + i->cap, 0, (cap - i->cap) * sizeof(*i->sequences));
        i->cap = cap;
    }
    i->sequences[slot] = q;
    if (slot >= i->used)
        i->used = slot + 1;
    while (i->first_free < i->used && i->sequences[i->first_free])
        i->first_free++;
    q->instance = i;
    q->slot = slot;
    if (!list_empty(&q->queue))
        i->ready++;
    make_candidate(s, q);
}

/* Gives the sequence the free slot with the lowest number over all instances, so that batches
 * stay small. Returns false if none is free. */
static bool find_slot(struct sequencer *s, struct sequence *q)
{
    struct sequencer_instance *best = NULL;
    LIST_EACH (node, &s->instances) {
        struct sequencer_instance *i = LIST_ITEM(node, struct sequencer_instance, node);
        if (!i->leaving && (!best || i->first_free < best->first_free))
            best = i;
    }
    if (!best || best->first_free >= s->limit)
        return false;
    take_slot(s, q, best, best->first_free);
    return true;
}

/* Gives the sequence a slot, or puts it in the backlog. */
static void find_place(struct sequencer *s, struct sequence *q)
{
    if (!find_slot(s, q))
        list_append(&s->backlog, &q->node);
}

/* Gives the slot to the heir, or to the sequence that waits longest in the backlog, or makes the
 * slot free. */
static void leave_slot(struct sequencer *s, struct sequence *q)
{
    struct sequencer_instance *i = q->instance;
    uint32_t slot = q->slot;
    i->sequences[slot] = NULL;
    q->instance = NULL;
    struct list *heir = list_pop(&q->heir);
    struct list *next = i->leaving ? NULL : heir ? heir : list_pop(&s->backlog);
    if (next) {
        take_slot(s, LIST_ITEM(next, struct sequence, node), i, slot);
        return;
    }
    while (i->used && !i->sequences[i->used - 1])
        i->used--;
    if (slot < i->first_free)
        i->first_free = slot;
    if (heir)
        find_place(s, LIST_ITEM(heir, struct sequence, node));
}

/* Call it after a sequence changed: it may give up its slot, become idle, or be freed. */
static void sequencer_settle(struct sequencer *s, struct sequence *q, time_ns now)
{
    if (!list_empty(&q->queue) || (q->instance && s->oldest && q->in_flight))
        return;
    if (!q->over) {
        if (!q->in_flight && list_empty(&q->node)) {
            q->idle_since = now;
            list_append(&s->idlers, &q->node);
        }
        return;
    }
    if (q->instance)
        leave_slot(s, q);
    else if (sequencer_heir(q))
        list_insert_before(&q->node, list_pop(&q->heir));
    list_remove(&q->node);
    if (!q->in_flight)
        free_sequence(s, q);
}

struct sequencer_instance *sequencer_join(struct sequencer *s, void *owner)
{
    struct sequencer_instance *i = MEM_NEW(struct sequencer_instance);
    i->owner = owner;
    i->held = s->hold_until > 0;
    list_init(&i->look);
    list_init(&i->candidates);
    list_append(&s->instances, &i->node);
    struct list *next;
    while (i->first_free < s->limit && (next = list_pop(&s->backlog)))
        take_slot(s, LIST_ITEM(next, struct sequence, node), i, i->first_free);
    return i;
}

void sequencer_leave(struct sequencer_instance *i)
{
    i->leaving = true;
}

bool sequencer_busy(const struct sequencer_instance *i)
{
    return i->used > 0;
}

void sequencer_drop(struct sequencer_instance *i)
{
    if (!i)
        return;
    CHECK(!sequencer_busy(i));
    list_remove(&i->node);
    list_remove(&i->look);
    mem_free(i->sequences);
    mem_free(i);
}

/* -- the queues -- */

static void change_depth(struct sequencer *s, long by)
{
    size_t depth = atomic_load_explicit(&s->depth, memory_order_relaxed);
    atomic_store_explicit(&s->depth, depth + (size_t)by, memory_order_relaxed);
}

/* Takes a request out of its sequence's queue. */
static void sequencer_detach(struct sequencer *s, struct sequence *q, struct request *r)
{
    if (r->queue_heap)
        deadline_heap_remove(&s->deadlines, r);
    list_remove(&r->queue_node);
    r->queue_level = 0;
    change_depth(s, -1);
    if (q->instance && list_empty(&q->queue))
        q->instance->ready--;
}

struct request *sequencer_pop(struct sequencer *s, struct sequence *q)
{
    struct request *r = sequencer_first(q);
    sequencer_detach(s, q, r);
    list_remove(&q->candidate);
    q->in_flight++;
    s->taken++;
    if (r->states)
        state_enter(r, &q->states);
    if (q->over && !s->oldest)
        sequencer_settle(s, q, 0);
    return r;
}

void sequencer_abort(struct sequencer *s, struct sequence *q, bool cancelled)
{
    sequencer_forget(s, q);
    list_remove(&q->candidate);
    struct request *r;
    while ((r = sequencer_first(q)) != NULL) {
        sequencer_detach(s, q, r);
        r->slots[REQUEST_SLOT_SEQUENCE] = NULL;
        if (cancelled)
            atomic_store_explicit(&r->cancelled, true, memory_order_relaxed);
        list_append(&s->dropped, &r->queue_node);
    }
    sequencer_settle(s, q, 0);
}

/* Ends sequences that were idle for too long, or that have a request that waited too long. */
static void sequencer_sweep(struct sequencer *s, time_ns now)
{
    while (!list_empty(&s->idlers)) {
        struct sequence *q = LIST_ITEM(s->idlers.next, struct sequence, node);
        if (time_later(q->idle_since, s->idle) > now)
            break;
        sequencer_abort(s, q, false);
    }
    struct request *r;
    while ((r = deadline_heap_pop_due(&s->deadlines, now)) != NULL)
        sequencer_abort(s, sequencer_of(r), false);
}

static size_t length_of(const struct list *list)
{
    size_t n = 0;
    LIST_EACH (node, list)
        n++;
    return n;
}

/* Direct: true if enough requests wait in the slots and in the backlog. */
static bool enough_waits(const struct sequencer *s)
{
    size_t backlog = 0;
    LIST_EACH (node, &s->backlog)
        for (const struct sequence *q = LIST_ITEM(node, struct sequence, node); q;
             q = sequencer_heir(q))
            backlog += length_of(&q->queue);
    return sequencer_depth(s) - backlog >= s->hold_until && backlog >= s->hold_backlog;
}

static void let_all_go(struct sequencer *s)
{
    LIST_EACH (node, &s->instances) {
        struct sequencer_instance *i = LIST_ITEM(node, struct sequencer_instance, node);
        i->held = false;
        if (list_empty(&i->look))
            list_append(&s->looks, &i->look);
    }
    s->hold_until = 0;
}

/* Begins another sequence with the id of one that goes on, and gives it the place of that. */
static struct sequence *begin_anew(struct sequencer *s, struct sequence *old,
                                   const struct request *r)
{
    close_sequence(s, old);
    struct sequence *q = sequencer_start(s, r);
    list_append(&old->heir, &q->node);
    sequencer_settle(s, old, 0);
    return q;
}

enum sequencer_push sequencer_push(struct sequencer *s, time_ns now, struct request *r)
{
    sequencer_sweep(s, now);
    struct sequence *q = sequencer_find(s, r);
    bool starts = r->flags & REQUEST_SEQUENCE_START;
    bool conflict = q && starts;
    if (!q && !starts)
        return SEQUENCER_PUSH_UNKNOWN;
    if (!q) {
        q = sequencer_start(s, r);
        find_place(s, q);
    } else if (starts) {
        q = begin_anew(s, q, r);
    } else if (q->instance) {
        list_remove(&q->node); /* not idle any more */
    }
    CHECK(r->queue_level == 0);
    r->slots[REQUEST_SLOT_SEQUENCE] = q;
    r->queue_level = 1;
    r->times.queue_start = now;
    r->queue_deadline = r->timeout_us ? time_later(now, time_from_us(r->timeout_us)) : TIME_NEVER;
    if (r->queue_deadline != TIME_NEVER)
        deadline_heap_add(&s->deadlines, r);
    if (q->instance && list_empty(&q->queue))
        q->instance->ready++;
    list_append(&q->queue, &r->queue_node);
    change_depth(s, 1);
    if (r->flags & REQUEST_SEQUENCE_END)
        close_sequence(s, q);
    if (request_is_cancelled(r))
        sequencer_abort(s, q, true);
    else
        make_candidate(s, q);
    if (s->hold_until && !s->oldest && enough_waits(s))
        let_all_go(s);
    return conflict ? SEQUENCER_PUSH_CONFLICT : SEQUENCER_PUSH_OK;
}

/* True if the instance may not run anything until more requests wait. */
static bool sequencer_holds(const struct sequencer *s, struct sequencer_instance *i)
{
    if (i->held && s->oldest)
        i->held = length_of(&i->candidates) < s->hold_until;
    return i->held;
}

static size_t sequencer_choose(struct sequencer *s, struct sequencer_instance *i, time_ns now,
                               struct request **out, time_ns *ret_wake)
{
    sequencer_sweep(s, now);
    if (sequencer_holds(s, i)) {
        *ret_wake = TIME_NEVER;
        return 0;
    }
    return s->oldest ? sequencer_batch_oldest(s, i, now, out, ret_wake)
                     : sequencer_batch_direct(s, i, now, out, ret_wake);
}

size_t sequencer_take(struct sequencer *s, struct sequencer_instance *i, time_ns now,
                      struct request **out, size_t cap, time_ns *ret_wake)
{
    CHECK(cap >= sequencer_most(s, i));
    return sequencer_choose(s, i, now, out, ret_wake);
}

bool sequencer_ready(struct sequencer *s, struct sequencer_instance *i, time_ns now,
                     time_ns *ret_wake)
{
    return sequencer_choose(s, i, now, NULL, ret_wake) > 0;
}

void sequencer_released(struct sequencer *s, time_ns now, struct request *r, bool ends)
{
    struct sequence *q = sequencer_of(r);
    r->slots[REQUEST_SLOT_SEQUENCE] = NULL;
    q->in_flight--;
    s->taken--;
    if (ends && !q->in_flight && list_empty(&q->queue))
        sequencer_forget(s, q);
    if (!q->instance && q->over) { /* another sequence already has its slot */
        if (!q->in_flight)
            free_sequence(s, q);
        return;
    }
    make_candidate(s, q);
    sequencer_settle(s, q, now);
}

void sequencer_again(struct sequencer *s, time_ns now, struct request *r)
{
    struct sequence *q = sequencer_of(r);
    if (q->over) { /* the sequence has ended meanwhile */
        sequencer_released(s, now, r, true);
        list_append(&s->dropped, &r->queue_node);
        return;
    }
    r->times.queue_start = now;
    r->queue_level = 1;
    list_remove(&q->node); /* not idle any more */
    if (q->instance && list_empty(&q->queue))
        q->instance->ready++;
    list_insert_before(q->queue.next, &r->queue_node);
    change_depth(s, 1);
    q->in_flight--;
    s->taken--;
    if (request_is_cancelled(r))
        sequencer_abort(s, q, true);
    else
        make_candidate(s, q);
}

void *sequencer_look(struct sequencer *s)
{
    struct list *node = list_pop(&s->looks);
    return node ? LIST_ITEM(node, struct sequencer_instance, look)->owner : NULL;
}

/* -- requests that will not run -- */

size_t sequencer_expire(struct sequencer *s, time_ns now, struct list *ret_list)
{
    sequencer_sweep(s, now);
    size_t n = 0;
    LIST_EACH (it, &s->dropped)
        n++;
    list_splice(ret_list, &s->dropped);
    return n;
}

bool sequencer_has_dropped(const struct sequencer *s)
{
    return !list_empty(&s->dropped);
}

time_ns sequencer_next_deadline(const struct sequencer *s)
{
    if (!list_empty(&s->dropped))
        return 0;
    time_ns next = deadline_heap_first(&s->deadlines);
    if (list_empty(&s->idlers))
        return next;
    time_ns idle =
        time_later(LIST_ITEM(s->idlers.next, struct sequence, node)->idle_since, s->idle);
    return idle < next ? idle : next;
}

bool sequencer_remove(struct sequencer *s, struct request *r)
{
    if (r->queue_level == 0)
        return false;
    struct sequence *q = sequencer_of(r);
    sequencer_detach(s, q, r);
    r->slots[REQUEST_SLOT_SEQUENCE] = NULL;
    sequencer_abort(s, q, true);
    return true;
}

static void drain_all(struct sequencer *s, struct list *sequences)
{
    while (!list_empty(sequences))
        sequencer_abort(s, LIST_ITEM(sequences->next, struct sequence, node), false);
}

void sequencer_close(struct sequencer *s)
{
    drain_all(s, &s->idlers);
}

static void abort_with_heirs(struct sequencer *s, struct sequence *q)
{
    for (struct sequence *heir; q; q = heir) {
        heir = sequencer_heir(q);
        sequencer_abort(s, q, false);
    }
}

size_t sequencer_drain(struct sequencer *s, struct list *ret_list)
{
    drain_all(s, &s->backlog);
    drain_all(s, &s->idlers);
    LIST_EACH (node, &s->instances) {
        struct sequencer_instance *i = LIST_ITEM(node, struct sequencer_instance, node);
        for (uint32_t k = i->used; k-- > 0;)
            if (k < i->used && i->sequences[k])
                abort_with_heirs(s, i->sequences[k]);
    }
    return sequencer_expire(s, 0, ret_list);
}

/* -- queries -- */

size_t sequencer_most(const struct sequencer *s, const struct sequencer_instance *i)
{
    return i->used < s->goal.max_rows ? i->used : s->goal.max_rows;
}

size_t sequencer_depth(const struct sequencer *s)
{
    return atomic_load_explicit(&s->depth, memory_order_relaxed);
}

size_t sequencer_taken(const struct sequencer *s)
{
    return s->taken;
}

static time_ns older(time_ns than, const struct sequence *q)
{
    while (q && list_empty(&q->queue))
        q = sequencer_heir(q);
    const struct request *r = q ? sequencer_first(q) : NULL;
    return r && r->times.queue_start < than ? r->times.queue_start : than;
}

time_ns sequencer_oldest(const struct sequencer *s)
{
    time_ns oldest = TIME_NEVER;
    if (!list_empty(&s->backlog))
        oldest = older(oldest, LIST_ITEM(s->backlog.next, struct sequence, node));
    LIST_EACH (node, &s->instances) {
        const struct sequencer_instance *i = LIST_ITEM(node, struct sequencer_instance, node);
        for (uint32_t k = 0; k < i->used; k++)
            oldest = older(oldest, i->sequences[k]);
    }
    return oldest;
}

size_t sequencer_sequences(const struct sequencer *s)
{
    return s->sequences;
}

void sequencer_free(struct sequencer *s)
{
    if (!s)
        return;
    CHECK(sequencer_depth(s) == 0 && list_empty(&s->dropped));
    drain_all(s, &s->idlers);
    CHECK(s->sequences == 0 && list_empty(&s->instances));
    batch_match_fini(&s->match);
    batch_goal_fini(&s->goal);
    deadline_heap_fini(&s->deadlines);
    mem_free(s);
}
