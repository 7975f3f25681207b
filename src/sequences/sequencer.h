#pragma once
/* The sequences of one stateful model version: which of them holds a slot of which instance, which
 * wait for one, and what runs next. A passive struct, as the batcher is (batching/batcher.h): no
 * thread, no clock, no lock of its own; the caller of every function holds the model's scheduler
 * lock.
 *
 * A sequence is known by its id from its START to its END. It takes a free slot, the one with the
 * lowest number over all instances, or waits in the backlog, in order, until one is free; all its
 * requests then run on that slot's instance, one after the other.
 *
 *   direct  an instance has as many slots as rows fit in a batch; a request of the sequence in slot
 *           k is row k of its batch, and a slot without a request that can join leaves a gap.
 *   oldest  an instance has max_candidate_sequences slots; a batch has at most one request of each
 *           of them, the oldest first, as the dynamic batcher would choose.
 *
 * A sequence ends with its END, when it was idle (no request queued or under way) for too long,
 * when one of its requests is cancelled, and when one waited past its time-out: a model that keeps
 * state cannot go on without it. What is still queued of it then is handed out by sequencer_expire.
 *
 * Implicit state (infer/state.h) is the sequence's from the START on that brings it; a request gets
 * its part when it is taken. Requests whose states differ in shape are not taken together.
 *
 * source  spec/model_config_proto.txt, ModelSequenceBatching; spec/sequence_extension.txt;
 *         docs/decisions/0010-request-timeouts.md */
#include "base/err.h"
#include "base/list.h"
#include "os/clock.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct request;
struct sequencer;
struct sequencer_instance;

/* What a sequencer is made of; borrowed for the call of sequencer_new. */
struct sequencer_config {
    /* Nothing runs until so many requests wait, once; 0 = at once. For tests of clients. Direct:
     * in the slots of all instances, and hold_backlog in the backlog. Oldest: of those of an
     * instance that may run next, for each instance. */
    size_t hold_until;
    size_t hold_backlog;
    bool oldest;    /* the strategy; false = direct */
    bool iterative; /* an END does not end a sequence, but its release (sequencer_released) */
    uint32_t max_batch_size; /* rows; 0 counts as 1 */
    uint64_t idle_us;        /* max_sequence_idle_microseconds; 0 = one second */
    uint64_t delay_us;       /* max_queue_delay_microseconds */
    /* direct: this part of the slots ready, or the delay over; 0 = at once */
    float min_utilization;
    uint32_t candidates; /* oldest: slots of an instance; 0 counts as 1 */
    /* oldest: in any order, each in [1, max_batch_size]; none = { max_batch_size }. */
    const int32_t *preferred;
    size_t preferred_count;
    /* Inputs whose contents must be equal in a batch, and whose shape has no batch dimension. */
    const char *const *shape_tensors;
    size_t shape_tensor_count;
};

enum sequencer_push {
    SEQUENCER_PUSH_OK = 0,
    /* A START while the sequence of that id goes on: it runs behind what is queued, in its slot. */
    SEQUENCER_PUSH_CONFLICT,
    /* Not a START, and no sequence of that id is known; the request stays the caller's. */
    SEQUENCER_PUSH_UNKNOWN,
};

/* sequencer_new - never NULL, without instances: sequences wait in the backlog. Free it with
 * sequencer_free. */
struct sequencer *sequencer_new(const struct sequencer_config *c);

/* sequencer_free - no request may be queued (sequencer_drain) or under way, no instance be left.
 * NULL is fine. */
void sequencer_free(struct sequencer *s);

/* sequencer_join - an instance more; sequences of the backlog may be its from here on. Never NULL.
 *                   owner: what sequencer_look returns for it
 * sequencer_leave - it gets no further sequences; those that it has go on.
 * sequencer_busy  - whether it has any.
 * sequencer_drop  - forget an instance that is not busy. NULL is fine. */
struct sequencer_instance *sequencer_join(struct sequencer *s, void *owner);
void sequencer_leave(struct sequencer_instance *i);
bool sequencer_busy(const struct sequencer_instance *i);
void sequencer_drop(struct sequencer_instance *i);

/* sequencer_most - how many requests sequencer_take can return now of an instance: no more than
 * it has slots in use. */
size_t sequencer_most(const struct sequencer *s, const struct sequencer_instance *i);

/* sequencer_push - enqueue a request. Sets times.queue_start (to now), queue_deadline and the
 * scheduler's other fields of it. Its id is not 0 or "".
 * r  the sequencer's unless SEQUENCER_PUSH_UNKNOWN, until take, expire, remove or drain gives it
 *    back */
enum sequencer_push sequencer_push(struct sequencer *s, time_ns now, struct request *r);

/* sequencer_take - the next batch of an idle instance.
 * out       cap slots, cap >= sequencer_most(s, i); NULL where a slot has no request in this batch
 *           (direct; never the last one, never all)
 * ret_wake  as in batcher_take
 * returns   how many of `out` were written; 0 = wait. Each request is to be reported by
 *           sequencer_released once the backend has released it */
size_t sequencer_take(struct sequencer *s, struct sequencer_instance *i, time_ns now,
                      struct request **out, size_t cap, time_ns *ret_wake);

/* sequencer_ready - whether sequencer_take would return a batch at `now`. */
bool sequencer_ready(struct sequencer *s, struct sequencer_instance *i, time_ns now,
                     time_ns *ret_wake);

/* sequencer_look - the owner of an instance for which something came since it was last returned:
 * it may have a batch now. NULL = no other. Ask after every call that takes `now`. */
void *sequencer_look(struct sequencer *s);

/* sequencer_released - the backend has released a request that was taken; it is of no
 * sequence afterwards. The next one of its sequence may run (oldest), so ask sequencer_ready again.
 * ends  its sequence ends with it, though it was no END */
void sequencer_released(struct sequencer *s, time_ns now, struct request *r, bool ends);

/* sequencer_again - the backend gave a request back that was taken, to have it again: it waits in
 * front of its sequence's queue, or is put aside when that was ended meanwhile. */
void sequencer_again(struct sequencer *s, time_ns now, struct request *r);

/* sequencer_expire - hand out what will not run, appended by queue_node. Answer each: CANCELLED
 * where request->cancelled is set, else UNAVAILABLE "timeout of the corresponding sequence has been
 * expired".
 * returns  how many */
size_t sequencer_expire(struct sequencer *s, time_ns now, struct list *ret_list);

/* sequencer_has_dropped, sequencer_next_deadline, sequencer_remove, sequencer_drain,
 * sequencer_depth - as of the batcher. Removing a request ends its sequence: the others of it lie
 * put aside, flagged as cancelled. Deadlines include the end of idle sequences. */
bool sequencer_has_dropped(const struct sequencer *s);
time_ns sequencer_next_deadline(const struct sequencer *s);
bool sequencer_remove(struct sequencer *s, struct request *r);
size_t sequencer_drain(struct sequencer *s, struct list *ret_list);
size_t sequencer_depth(const struct sequencer *s);

/* sequencer_oldest - the queue_start of the request that waits longest; TIME_NEVER when none does.
 * Looks at every sequence that holds a slot. */
time_ns sequencer_oldest(const struct sequencer *s);

/* sequencer_sequences - sequences that are known or hold a slot. */
size_t sequencer_sequences(const struct sequencer *s);
