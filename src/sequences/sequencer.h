#pragma once
/* The sequences of one stateful model version: which sequence holds which slot of which
 * instance, which sequences wait for a slot, and what runs next. It is a passive struct like the
 * batcher (batching/batcher.h): no thread, clock or lock of its own. The caller of every
 * function holds the model's scheduler lock.
 *
 * A sequence is known by its id from its START to its END. It takes the free slot with the
 * lowest number over all instances. If no slot is free, it waits in the backlog, in order. All
 * its requests run on the instance of its slot, one after the other.
 *
 *   direct  an instance has as many slots as a batch has rows. A request of the sequence in slot
 *           k is row k of the batch; a slot without a suitable request leaves a gap.
 *   oldest  an instance has max_candidate_sequences slots. A batch has at most one request of
 *           each sequence, oldest first, chosen as by the dynamic batcher.
 *
 * A sequence ends with its END, when it was idle (no request queued or in flight) for too long,
 * when one of its requests is cancelled or times out: a model that keeps state cannot skip a
 * request. sequencer_expire hands out the requests of an ended sequence that are still queued.
 *
 * Implicit state (infer/state.h) belongs to the sequence; its START brings the first values. A
 * request gets its state inputs when it is taken. Requests whose states have different shapes
 * are not taken together.
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

/* The settings of a sequencer; borrowed during sequencer_new. */
struct sequencer_config {
    /* Nothing runs until this many requests wait, once; 0 = no such wait. For tests of clients.
     * Direct: requests in the slots of all instances; hold_backlog counts the backlog. Oldest:
     * for each instance, sequences of it with a request that may run. */
    size_t hold_until;
    size_t hold_backlog;
    bool oldest; /* the strategy; false = direct */
    /* a sequence ends not with END but when the backend releases it (sequencer_released) */
    bool iterative;
    uint32_t max_batch_size; /* rows; 0 counts as 1 */
    uint64_t idle_us;        /* max_sequence_idle_microseconds; 0 = one second */
    uint64_t delay_us;       /* max_queue_delay_microseconds */
    /* direct: run when this share of the slots is ready or the delay is over; 0 = at once */
    float min_utilization;
    uint32_t candidates; /* oldest: slots per instance; 0 counts as 1 */
    /* oldest: any order, each in [1, max_batch_size]; none = { max_batch_size }. */
    const int32_t *preferred;
    size_t preferred_count;
    /* Inputs without a batch dimension, whose contents must be equal in a batch. */
    const char *const *shape_tensors;
    size_t shape_tensor_count;
};

enum sequencer_push {
    SEQUENCER_PUSH_OK = 0,
    /* A START while the sequence with that id goes on. That one ends when its queued requests are
     * over; the new sequence has its slot then. */
    SEQUENCER_PUSH_CONFLICT,
    /* Not a START, and no sequence with that id is known. The caller keeps the request. */
    SEQUENCER_PUSH_UNKNOWN,
};

/* sequencer_new - make a sequencer without instances, so sequences wait in the backlog. Never
 * NULL. Free it with sequencer_free. */
struct sequencer *sequencer_new(const struct sequencer_config *c);

/* sequencer_free - free it; no request is queued (sequencer_drain) or in flight, and no instance
 * is left. NULL is fine. */
void sequencer_free(struct sequencer *s);

/* sequencer_join - add an instance; sequences of the backlog may get its slots. Never NULL.
 *                   owner: what sequencer_look returns for it
 * sequencer_leave - the instance gets no new sequences; those that it has go on.
 * sequencer_busy  - true if it has sequences.
 * sequencer_drop  - forget an instance that is not busy. NULL is fine. */
struct sequencer_instance *sequencer_join(struct sequencer *s, void *owner);
void sequencer_leave(struct sequencer_instance *i);
bool sequencer_busy(const struct sequencer_instance *i);
void sequencer_drop(struct sequencer_instance *i);

/* sequencer_most - the most requests that sequencer_take can return now for an instance: at most
 * the number of its slots in use. */
size_t sequencer_most(const struct sequencer *s, const struct sequencer_instance *i);

/* sequencer_push - queue a request. Sets times.queue_start (to now), queue_deadline and the
 * other scheduler fields of it. Its id is not 0 or "".
 * r  owned by the sequencer, unless SEQUENCER_PUSH_UNKNOWN is returned, until take, expire,
 *    remove or drain gives it back */
enum sequencer_push sequencer_push(struct sequencer *s, time_ns now, struct request *r);

/* sequencer_take - the next batch of an idle instance.
 * out       `cap` slots, cap >= sequencer_most(s, i); NULL for a slot without a request in this
 *           batch (direct only; never the last slot, never all)
 * ret_wake  as in batcher_take
 * returns   how many slots of `out` were written; 0 = wait. When the backend has released a
 *           request, report it by sequencer_released */
size_t sequencer_take(struct sequencer *s, struct sequencer_instance *i, time_ns now,
                      struct request **out, size_t cap, time_ns *ret_wake);

/* sequencer_ready - true if sequencer_take would return a batch at `now`. */
bool sequencer_ready(struct sequencer *s, struct sequencer_instance *i, time_ns now,
                     time_ns *ret_wake);

/* sequencer_look - the owner of an instance that got work since it was last returned: it may
 * have a batch now. NULL = no other instance. Call it after every call that takes `now`. */
void *sequencer_look(struct sequencer *s);

/* sequencer_released - the backend has released a request that was taken; it no longer belongs
 * to its sequence. The sequence's next request may run now (oldest), so call sequencer_ready
 * again.
 * ends  the sequence ends with this request, even if it is not an END, unless others of it are
 *       queued or in flight */
void sequencer_released(struct sequencer *s, time_ns now, struct request *r, bool ends);

/* sequencer_again - the backend gave back a request to execute it again: it waits at the front
 * of its sequence's queue. If the sequence has ended meanwhile, the request is dropped. */
void sequencer_again(struct sequencer *s, time_ns now, struct request *r);

/* sequencer_close - no further request will come: end the sequences that are idle, which have no
 * END to wait for. Those of the backlog get their slots. */
void sequencer_close(struct sequencer *s);

/* sequencer_expire - hand out the requests that will not run, appended by queue_node. Answer
 * each with CANCELLED if request->cancelled is set, else with UNAVAILABLE "timeout of the
 * corresponding sequence has been expired".
 * returns  how many were appended */
size_t sequencer_expire(struct sequencer *s, time_ns now, struct list *ret_list);

/* sequencer_has_dropped, sequencer_next_deadline, sequencer_remove, sequencer_drain,
 * sequencer_depth - as those of the batcher. Removing a request ends its sequence: its other
 * requests are marked as cancelled and dropped. The next deadline includes the end of idle
 * sequences. */
bool sequencer_has_dropped(const struct sequencer *s);
time_ns sequencer_next_deadline(const struct sequencer *s);
bool sequencer_remove(struct sequencer *s, struct request *r);
size_t sequencer_drain(struct sequencer *s, struct list *ret_list);
size_t sequencer_depth(const struct sequencer *s);

/* sequencer_taken - requests that were taken and not released yet. */
size_t sequencer_taken(const struct sequencer *s);

/* sequencer_oldest - the queue_start of the request that waits longest; TIME_NEVER if none
 * waits. Looks at every sequence that holds a slot. */
time_ns sequencer_oldest(const struct sequencer *s);

/* sequencer_sequences - the number of sequences that are known or hold a slot. */
size_t sequencer_sequences(const struct sequencer *s);
