#pragma once
/* The queue of one model version, and the choice of what runs next: the default scheduler (each
 * request alone, in order) and the dynamic batcher. A passive struct: no thread, no clock, no lock
 * of its own. Whoever enqueues, the instance that is idle, and the timer of the model's home loop
 * drive it; the caller of every function below holds the model's scheduler lock unless the function
 * says otherwise.
 *
 * Requests that will not run are put aside as they are found, by any function that takes `now`:
 * those whose time-out is over at once, those flagged as cancelled (request->cancelled) when they
 * are looked at for a batch, at the latest when they would be taken. batcher_expire hands them out,
 * so call it whenever batcher_has_dropped says so. Who wants a cancelled request out at once calls
 * batcher_remove.
 *
 * source  spec/model_configuration.txt, "Scheduling And Batching"; spec/model_config_proto.txt,
 *         ModelDynamicBatching and ModelQueuePolicy; docs/decisions/0010-request-timeouts.md */
#include "base/err.h"
#include "base/list.h"
#include "os/clock.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct batcher;
struct request;

/* The most requests in one batch (rows may be more: a request can carry many). */
#define BATCHER_MAX_REQUESTS 16384u

enum batcher_timeout_action {
    BATCHER_TIMEOUT_REJECT = 0,
    BATCHER_TIMEOUT_DELAY = 1,
};

/* ModelQueuePolicy. All zeros is the default policy. */
struct batcher_policy {
    enum batcher_timeout_action action;
    bool allow_timeout_override;
    uint64_t default_timeout_us; /* 0 = none */
    uint32_t max_queue_size;     /* requests; 0 = no limit */
};

struct batcher_level_policy {
    uint64_t level; /* in [1, priority_levels] */
    struct batcher_policy policy;
};

/* Who else decides which requests share a batch: a library of the model's, to which the batcher
 * knows only these functions. Called by the functions below, so under their lock and one at a
 * time; they are quick, and call none of the batcher's. */
struct batcher_strategy {
    void *arg;
    void (*begin)(void *arg); /* a batch begins, which has no request yet */
    /* Whether a request joins that fits otherwise: asked once for each while the batch grows,
     * for the first one too, which runs in any case. After a "no" the batch grows no more. NULL
     * = nobody decides. */
    bool (*include)(void *arg, const struct request *r);
    void (*end)(void *arg); /* the batch was taken, or is begun anew since the queue changed */
};

/* What a batcher is made of; borrowed for the call of batcher_new. All zeros is the default
 * scheduler. */
struct batcher_config {
    /* Nothing runs until so many requests wait, once; 0 = at once. For tests of clients. */
    size_t hold_until;
    bool dynamic; /* dynamic_batching is set; false: the fields below are not looked at */
    uint32_t max_batch_size; /* rows; 0 counts as 1 */
    /* In any order, each in [1, max_batch_size]; none = { max_batch_size }. */
    const int32_t *preferred;
    size_t preferred_count;
    uint64_t delay_us;        /* max_queue_delay_microseconds */
    uint64_t priority_levels; /* 0 = one queue */
    uint64_t default_level;   /* in [1, priority_levels] when there are levels */
    struct batcher_policy default_policy;
    const struct batcher_level_policy *level_policies;
    size_t level_policy_count;
    /* Inputs whose contents must be equal in a batch, and whose shape has no batch dimension. */
    const char *const *shape_tensors;
    size_t shape_tensor_count;
    struct batcher_strategy strategy; /* copied; all zeros = none */
};

enum batcher_push {
    BATCHER_PUSH_OK = 0,
    /* max_queue_size is reached; the request stays the caller's. Answer it with UNAVAILABLE
     * "Exceeds maximum queue size". */
    BATCHER_PUSH_FULL,
};

/* batcher_new - a batcher for one model version.
 * c        borrowed, names are copied
 * ret      the batcher, on success; free it with batcher_free
 * errors   INVALID_ARG for a preferred size, level or count out of its range. No lock needed. */
struct err *batcher_new(const struct batcher_config *c, struct batcher **ret);

/* batcher_free - no request may be left (batcher_drain). NULL is fine. */
void batcher_free(struct batcher *b);

/* batcher_slots - how many requests one batcher_take can return; constant. Any thread, no lock. */
size_t batcher_slots(const struct batcher *b);

/* batcher_push - enqueue a request. Sets times.queue_start (to now), queue_deadline and the
 * scheduler's other fields of it.
 * r        the batcher's on OK, until take, expire, remove or drain gives it back; its priority 0,
 *          or one above the number of levels, means the default level
 * returns  see enum batcher_push */
enum batcher_push batcher_push(struct batcher *b, time_ns now, struct request *r);

/* batcher_take - choose the next batch for an idle instance.
 * now       monotonic ns
 * out       cap slots, cap >= batcher_slots(b); requests move to the caller, in the order in which
 *           they run
 * ret_wake  written when nothing was taken: absolute ns when trying again can succeed without new
 *           work; TIME_NEVER = only new work helps. After a batch was taken, ask batcher_ready if
 *           another instance is idle
 * returns   requests taken; 0 = wait. Cannot fail */
size_t batcher_take(struct batcher *b, time_ns now, struct request **out, size_t cap,
                    time_ns *ret_wake);

/* batcher_ready - whether batcher_take would return a batch at `now`; cheap enough to ask after
 * every push, while an instance is idle. Ask again after batcher_remove and batcher_expire too:
 * what is left may make a batch.
 * ret_wake  written when false, as in batcher_take
 * returns   exact unless requests were flagged as cancelled since they were looked at: then take
 *           may return 0 after a true, and a false may last until *ret_wake */
bool batcher_ready(struct batcher *b, time_ns now, time_ns *ret_wake);

/* batcher_expire - hand out what will not run: requests whose time-out is over (policy REJECT), due
 * or put aside earlier, and those found cancelled. Answer each: CANCELLED where request->cancelled
 * is set, else UNAVAILABLE "Request timeout expired".
 * ret_list  initialised list; the requests are appended by their queue_node
 * returns   how many */
size_t batcher_expire(struct batcher *b, time_ns now, struct list *ret_list);

/* batcher_has_dropped - whether batcher_expire has something to hand out without looking at the
 * clock. */
bool batcher_has_dropped(const struct batcher *b);

/* batcher_next_deadline - when batcher_expire is to be called next though nothing else happens;
 * 0 when requests lie put aside, TIME_NEVER when nothing can expire. */
time_ns batcher_next_deadline(const struct batcher *b);

/* batcher_remove - take one request out, e.g. because it was cancelled.
 * returns  true: it is the caller's now. false: it is not queued (any more): it was taken, or
 *          waits for batcher_expire */
bool batcher_remove(struct batcher *b, struct request *r);

/* batcher_drain - give up everything that is queued or put aside, in the order in which it would
 * have run.
 * returns  how many were appended to ret_list */
size_t batcher_drain(struct batcher *b, struct list *ret_list);

/* batcher_depth - requests that wait. Any thread, no lock: a reader may be a moment behind. */
size_t batcher_depth(const struct batcher *b);

/* batcher_oldest - the queue_start of the longest waiting request at the head of a queue;
 * TIME_NEVER when none waits. */
time_ns batcher_oldest(const struct batcher *b);
