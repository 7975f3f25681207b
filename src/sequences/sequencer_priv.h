#pragma once
/* Shared by the files of the sequencer. */
#include "infer/request.h"
#include "infer/state.h"
#include "batching/batch_goal.h"
#include "batching/batch_match.h"
#include "batching/deadline_heap.h"
#include "sequences/sequencer.h"

#include <stdatomic.h>

struct sequence {
    uint64_t number;                     /* its id, unless it is a string */
    const char *text;                    /* owned; NULL = numeric id */
    struct list node;                    /* in the backlog, among the idle ones, or in no list */
    struct list queue;                   /* requests by queue_node, in order */
    struct sequencer_instance *instance; /* NULL in the backlog */
    uint32_t slot;                       /* its slot there */
    uint32_t in_flight;                  /* taken, not released */
    bool known;                          /* found by its id */
    bool over;                           /* no request will follow those queued */
    time_ns idle_since;                  /* while it is idle */
    /* a reference; NULL until its START is taken, and for models without */
    struct state_set *states;
    /* oldest: among those of its instance that may run, by age of the head */
    struct list candidate;
};

/* An instance with its slots, which grow as they are used. */
struct sequencer_instance {
    struct list node; /* among all that were not dropped */
    struct list look; /* among those that sequencer_look is to return */
    void *owner;
    bool leaving;                /* no sequence comes to it any more */
    struct sequence **sequences; /* [used] of cap; NULL = free */
    uint32_t cap;
    uint32_t used;          /* above the highest that is not free */
    uint32_t first_free;    /* no lower one is free */
    struct list candidates; /* oldest: sequences whose first request may run, oldest first */
    uint32_t ready;         /* direct: slots with a request queued */
    bool held;              /* nothing of it runs yet: see sequencer_config.hold_until */
};

struct sequencer {
    bool oldest;
    bool iterative;
    size_t hold_until;
    size_t hold_backlog;
    struct batch_goal goal; /* a request of a sequence is one row */
    struct batch_match match;
    uint32_t limit; /* slots of an instance */
    time_ns idle;
    float min_utilization;
    struct list instances;
    void *by_id; /* tsearch: the sequences that are known */
    struct list backlog;
    struct list idlers; /* longest idle first */
    struct list looks;
    struct list dropped;
    struct deadline_heap deadlines;
    atomic_size_t depth; /* requests queued; changed under the lock, read by anyone */
    size_t sequences;
};

/* sequencer_of - the sequence of a request; NULL = of none, or released. */
static inline struct sequence *sequencer_of(const struct request *r)
{
    return r->slots[REQUEST_SLOT_SEQUENCE];
}

/* sequencer_first - the first request queued of a sequence; NULL when there is none. */
static inline struct request *sequencer_first(const struct sequence *q)
{
    return list_empty(&q->queue) ? NULL : LIST_ITEM(q->queue.next, struct request, queue_node);
}

/* sequencer_pop - the same, taken out for execution. The sequence may lose its slot by it. */
struct request *sequencer_pop(struct sequencer *s, struct sequence *q);

/* sequencer_abort - end a sequence: what is queued of it is put aside. The sequence may be gone
 * afterwards.
 * cancelled  flag the requests as such */
void sequencer_abort(struct sequencer *s, struct sequence *q, bool cancelled);

/* sequencer_batch_direct, sequencer_batch_oldest - how many of `out` would be written by a take
 * at `now`; 0 = wait until *ret_wake. out NULL = only say whether there is a batch; else the
 * requests are taken. */
size_t sequencer_batch_direct(struct sequencer *s, struct sequencer_instance *i, time_ns now,
                              struct request **out, time_ns *ret_wake);
size_t sequencer_batch_oldest(struct sequencer *s, struct sequencer_instance *i, time_ns now,
                              struct request **out, time_ns *ret_wake);
