#pragma once
/* The queue of one model version, and the choice of what runs next: the default scheduler (each
 * request alone, in order) and the dynamic batcher. It is a passive struct without a thread,
 * clock or lock of its own: submitters, idle instances and the timer of the model's home loop
 * call it. The caller of every function below holds the model's scheduler lock unless the
 * function says otherwise.
 *
 * Any function that takes `now` may drop requests that will not run: timed-out requests at once,
 * cancelled requests (request->cancelled) when they are looked at for a batch, at the latest
 * when they would be taken. batcher_expire hands the dropped requests out, so call it whenever
 * batcher_has_dropped returns true. Call batcher_remove to take a cancelled request out at once.
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

/* A library of the model that also decides which requests share a batch; the batcher knows only
 * these functions. They are called by the functions below, so under the lock and one at a time.
 * They must be quick and must not call the batcher. */
struct batcher_strategy {
    void *arg;
    void (*begin)(void *arg); /* a batch begins; it has no request yet */
    /* True if a request that fits otherwise may join. Called once per request while the batch
     * grows, also for the first one, which runs in any case. After false the batch is closed.
     * NULL = every request may join. */
    bool (*include)(void *arg, const struct request *r);
    void (*end)(void *arg); /* the batch was taken, or starts again because the queue changed */
};

/* The settings of a batcher; borrowed during batcher_new. All zeros is the default scheduler. */
struct batcher_config {
    /* Nothing runs until this many requests wait, once; 0 = no such wait. For tests of clients. */
    size_t hold_until;
    bool dynamic;            /* dynamic_batching is set; if false, the fields below are ignored */
    uint32_t max_batch_size; /* rows; 0 counts as 1 */
    /* Any order, each in [1, max_batch_size]; none = { max_batch_size }. */
    const int32_t *preferred;
    size_t preferred_count;
    uint64_t delay_us;        /* max_queue_delay_microseconds */
    uint64_t priority_levels; /* 0 = one queue */
    uint64_t default_level;   /* in [1, priority_levels] when there are levels */
    struct batcher_policy default_policy;
    const struct batcher_level_policy *level_policies;
    size_t level_policy_count;
    /* Inputs without a batch dimension, whose contents must be equal in a batch. */
    const char *const *shape_tensors;
    size_t shape_tensor_count;
    struct batcher_strategy strategy; /* copied; all zeros = none */
};

enum batcher_push {
    BATCHER_PUSH_OK = 0,
    /* max_queue_size is reached; the caller keeps the request and answers it with UNAVAILABLE
     * "Exceeds maximum queue size". */
    BATCHER_PUSH_FULL,
};

/* batcher_new - make a batcher for one model version.
 * c        borrowed, names are copied
 * ret      the batcher, on success; free it with batcher_free
 * errors   INVALID_ARG for a preferred size, level or count outside its range. No lock needed. */
struct err *batcher_new(const struct batcher_config *c, struct batcher **ret);

/* batcher_free - free the batcher; it must be empty (batcher_drain). NULL is fine. */
void batcher_free(struct batcher *b);

/* batcher_slots - the most requests that one batcher_take returns; constant. Any thread, no
 * lock. */
size_t batcher_slots(const struct batcher *b);

/* batcher_push - queue a request. Sets times.queue_start (to now), queue_deadline and the other
 * scheduler fields of it.
 * r        owned by the batcher on OK, until take, expire, remove or drain gives it back. A
 *          priority of 0, or above the number of levels, means the default level
 * returns  see enum batcher_push */
enum batcher_push batcher_push(struct batcher *b, time_ns now, struct request *r);

/* batcher_take - choose the next batch for an idle instance.
 * now       monotonic ns
 * out       `cap` slots, cap >= batcher_slots(b); the caller owns the requests, which are in the
 *           order in which they run
 * ret_wake  written only if nothing was taken: absolute ns at which trying again can succeed
 *           without new work; TIME_NEVER = only new work helps. After a batch was taken, call
 *           batcher_ready if another instance is idle
 * returns   requests taken; 0 = wait. Cannot fail */
size_t batcher_take(struct batcher *b, time_ns now, struct request **out, size_t cap,
                    time_ns *ret_wake);

/* batcher_ready - true if batcher_take would return a batch at `now`. It is cheap enough to call
 * after every push while an instance is idle. Call it again after batcher_remove and
 * batcher_expire: the remaining requests may make a batch.
 * ret_wake  written if false, as in batcher_take
 * returns   exact, unless requests were cancelled since they were looked at: then take may
 *           return 0 after true, and false may stay until *ret_wake */
bool batcher_ready(struct batcher *b, time_ns now, time_ns *ret_wake);

/* batcher_expire - hand out the requests that will not run: those timed out (policy REJECT), now
 * or earlier, and those found cancelled. Answer each with CANCELLED if request->cancelled is
 * set, else with UNAVAILABLE "Request timeout expired".
 * ret_list  initialised list; requests are appended by their queue_node
 * returns   how many were appended */
size_t batcher_expire(struct batcher *b, time_ns now, struct list *ret_list);

/* batcher_has_dropped - true if batcher_expire would hand out requests without looking at the
 * clock. */
bool batcher_has_dropped(const struct batcher *b);

/* batcher_next_deadline - when batcher_expire must be called next even if nothing else happens;
 * 0 if dropped requests wait for it, TIME_NEVER if nothing can expire. */
time_ns batcher_next_deadline(const struct batcher *b);

/* batcher_remove - take one request out, for example because it was cancelled.
 * returns  true: the caller owns it now. false: it is not queued; it was taken, or waits for
 *          batcher_expire */
bool batcher_remove(struct batcher *b, struct request *r);

/* batcher_drain - hand out all queued and dropped requests, in the order in which they would
 * have run.
 * returns  how many were appended to ret_list */
size_t batcher_drain(struct batcher *b, struct list *ret_list);

/* batcher_depth - the number of waiting requests. Any thread, no lock; the number may be
 * slightly old. */
size_t batcher_depth(const struct batcher *b);

/* batcher_oldest - the smallest queue_start of the requests at the heads of the queues;
 * TIME_NEVER if none waits. */
time_ns batcher_oldest(const struct batcher *b);

/* batcher_first - queue_start of the request that runs next; TIME_NEVER if none waits. */
time_ns batcher_first(const struct batcher *b);
