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
    uint64_t number;  /* its id, if the id is a number */
    const char *text; /* its id as a string; owned; NULL = the id is a number */
    /* in the backlog, in the list of idle sequences, in `heir` of another one, or in no list */
    struct list node;
    /* by node: the sequence that began with its id and gets its place; empty = none did */
    struct list heir;
    struct list queue;                   /* requests by queue_node, in order */
    struct sequencer_instance *instance; /* NULL = it has no slot yet */
    uint32_t slot;                       /* its slot in the instance */
    uint32_t in_flight;                  /* requests taken and not released yet */
    bool known;                          /* it can be found by its id */
    bool over;                           /* no request will follow the queued ones */
    time_ns idle_since;                  /* since when it is idle */
    /* a reference; NULL until its START is taken, and for models without state */
    struct state_set *states;
    /* oldest: in its instance's list of sequences that may run, by age of the first request */
    struct list candidate;
};

/* An instance with its slots. The array of slots grows when needed. */
struct sequencer_instance {
    struct list node; /* in the list of all instances that were not dropped */
    struct list look; /* in the list of instances that sequencer_look will return */
    void *owner;
    bool leaving;                /* it gets no new sequences */
    struct sequence **sequences; /* `used` of `cap` slots; NULL = free */
    uint32_t cap;
    uint32_t used;          /* one more than the highest slot that is not free */
    uint32_t first_free;    /* no lower slot is free */
    struct list candidates; /* oldest: sequences whose first request may run, oldest first */
    uint32_t ready;         /* direct: number of slots with a queued request */
    bool held;              /* it runs nothing yet, see sequencer_config.hold_until */
};

struct sequencer {
    bool oldest;
    bool iterative;
    size_t hold_until;
    size_t hold_backlog;
    struct batch_goal goal; /* a request of a sequence counts as one row */
    struct batch_match match;
    uint32_t limit; /* slots per instance */
    time_ns idle;
    size_t taken; /* in flight, of all sequences */
    float min_utilization;
    struct list instances;
    void *by_id; /* tsearch tree of the known sequences */
    struct list backlog;
    struct list idlers; /* idle sequences, longest idle first */
    struct list looks;
    struct list dropped;
    struct deadline_heap deadlines;
    atomic_size_t depth; /* queued requests; changed under the lock, read by any thread */
    size_t sequences;
};

/* sequencer_of - the sequence of a request; NULL = it has none, or was released. */
static inline struct sequence *sequencer_of(const struct request *r)
{
    return r->slots[REQUEST_SLOT_SEQUENCE];
}

/* sequencer_first - the first queued request of a sequence; NULL if there is none. */
static inline struct request *sequencer_first(const struct sequence *q)
{
    return list_empty(&q->queue) ? NULL : LIST_ITEM(q->queue.next, struct request, queue_node);
}

/* sequencer_heir - the sequence that gets the place of this one; NULL if there is none. */
static inline struct sequence *sequencer_heir(const struct sequence *q)
{
    return list_empty(&q->heir) ? NULL : LIST_ITEM(q->heir.next, struct sequence, node);
}

/* sequencer_pop - take the first request of a sequence out for execution. The sequence may lose
 * its slot. */
struct request *sequencer_pop(struct sequencer *s, struct sequence *q);

/* sequencer_abort - end a sequence and drop its queued requests. The sequence may be freed.
 * cancelled  mark the requests as cancelled */
void sequencer_abort(struct sequencer *s, struct sequence *q, bool cancelled);

/* sequencer_batch_direct, sequencer_batch_oldest - how many slots of `out` a take at `now`
 * writes; 0 = wait until *ret_wake. With out NULL they only say whether there is a batch; else
 * they take the requests. */
size_t sequencer_batch_direct(struct sequencer *s, struct sequencer_instance *i, time_ns now,
                              struct request **out, time_ns *ret_wake);
size_t sequencer_batch_oldest(struct sequencer *s, struct sequencer_instance *i, time_ns now,
                              struct request **out, time_ns *ret_wake);
