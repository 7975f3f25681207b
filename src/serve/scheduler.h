#pragma once
/* A scheduler holds the requests of one version and decides which of them runs when. It is
 * chosen when the version is made (serve/features.h); other folders use only this interface.
 *
 *     batching/batching.c       the default scheduler and the dynamic batcher: one queue
 *     sequences/sequences.c     sequences, each on the instance that has its slot
 *     ensembles/ensemble_run.c  ensembles: nothing is queued; steps are requests to other models
 *
 * A scheduler is a struct whose first member is a struct scheduler. The functions are copied
 * into it, so a call costs one load and one jump. The caller of a function holds version->lock
 * unless the comment of the function says otherwise. */
#include "base/err.h"
#include "base/list.h"
#include "infer/stats.h"
#include "os/clock.h"

#include <stdbool.h>
#include <stddef.h>

struct Inference__ModelConfig;
struct request;
struct runner;
struct scheduler;
struct serve_version;

struct scheduler_ops {
    /* accept - look at requests before they are queued. The scheduler removes from the list
     * those that it answers or runs itself. Lock not held. NULL = all requests are queued.
     * on_loop  the caller is a loop at the end of its turn, and the inputs are small */
    void (*accept)(struct scheduler *s, struct list *requests, bool on_loop);

    /* arrive - a request arrived whose `accept` is decided later: it gets its place in the order
     * now. NULL = no order is kept. */
    void (*arrive)(struct scheduler *s, struct request *r);

    /* sample - add the inputs that a warm-up request lacks (it is not queued). Lock not held.
     * NULL = nothing is missing.
     * errors  INVALID_ARG: too many inputs */
    struct err *(*sample)(struct scheduler *s, struct request *r);

    /* push - queue a request. If it returns false, the caller still owns the request and answers
     * it with `refusal`. */
    bool (*push)(struct scheduler *s, struct request *r, time_ns now);
    /* refusal - the error that says why push returned false. Lock not held. */
    struct err *(*refusal)(const struct scheduler *s, const struct request *r,
                           enum stats_reason *ret_reason);

    /* take - the next batch for an idle runner, into r->batch.
     * ret_wake  written when nothing was taken: when trying again can succeed without new work;
     *           TIME_NEVER = only new work helps
     * returns   requests taken; 0 = wait */
    size_t (*take)(struct scheduler *s, struct runner *r, time_ns now, time_ns *ret_wake);
    /* ready - true if take would return a batch. r NULL: for any runner of a shared queue. */
    bool (*ready)(struct scheduler *s, struct runner *r, time_ns now, time_ns *ret_wake);
    /* turn - one round of a runner's thread: take, execute, deliver (runner_turn). The lock is
     * released meanwhile.
     * ret_wake  as for take, if it returns false
     * returns   false: there was nothing to run */
    bool (*turn)(struct scheduler *s, struct runner *r, time_ns *ret_wake);
    /* pick - the idle runner that is next (runner_pick); NULL = none is idle. */
    struct runner *(*pick)(struct scheduler *s);
    /* wake - wake the runners that have work: runner_wake_any, or runner_look for each. The lock
     * may be released meanwhile. */
    void (*wake)(struct scheduler *s, time_ns now);

    /* expire - hand out, linked by queue_node, the requests that will not run any more: timed
     * out or cancelled (then call reject_dropped).
     * has_dropped - true if expire would hand out requests without looking at the clock.
     * next_deadline - the time at which expire must be called even if nothing else happens; 0 =
     * at once, TIME_NEVER = no deadline.
     * remove - take one request out; false: it is not queued. Requests that cannot run without
     * it are handed out by the next expire.
     * drain - hand out all requests. */
    size_t (*expire)(struct scheduler *s, time_ns now, struct list *ret_list);
    bool (*has_dropped)(const struct scheduler *s);
    time_ns (*next_deadline)(const struct scheduler *s);
    bool (*remove)(struct scheduler *s, struct request *r);
    size_t (*drain)(struct scheduler *s, struct list *ret_list);

    /* depth - number of waiting requests. Any thread, no lock.
     * oldest - when the request that waits longest was queued; TIME_NEVER = none waits.
     * first - the same of the request that runs next; only of schedulers without `pick`. */
    size_t (*depth)(const struct scheduler *s);
    time_ns (*oldest)(const struct scheduler *s);
    time_ns (*first)(const struct scheduler *s);

    /* report - log what was noticed under the lock. Lock not held. NULL = nothing to log. */
    void (*report)(struct scheduler *s);

    /* part - the version serves no more. Called again and again until it is drained, with the
     * number of requests that hold it: when the scheduler has them all, no other comes. NULL =
     * nothing to do. */
    void (*part)(struct scheduler *s, size_t requests);

    /* Runners that come and go. Each function may be NULL = nothing to do, or false.
     * join - the version lists r, for the first time or again.
     * leave - r gets no new work; it finishes what it has.
     * busy - true if the scheduler still has work for r.
     * drop - forget r; its thread has ended. Lock not held. */
    void (*join)(struct scheduler *s, struct runner *r);
    void (*leave)(struct scheduler *s, struct runner *r);
    bool (*busy)(const struct scheduler *s, const struct runner *r);
    void (*drop)(struct scheduler *s, struct runner *r);

    /* Resources that runners need to execute. Each function may be NULL = nothing to do.
     * equip - give a new runner what its instance group asks for. Lock not held.
     *         errors  INVALID_ARG: it asks for more than there can ever be
     * commit - from now on the version's runners are those of this configuration.
     * hold, release - take and give back the resources for an execution outside of a turn.
     * Blocks. Lock not held.
     * nudge - make r's thread look at the queue again, whatever it waits for.
     * quit - r's thread ends and needs no resources any more. */
    struct err *(*equip)(struct scheduler *s, struct runner *r,
                         const struct Inference__ModelConfig *proto);
    void (*commit)(struct scheduler *s, const struct Inference__ModelConfig *proto);
    void (*hold)(struct scheduler *s, struct runner *r);
    void (*release)(struct scheduler *s, struct runner *r);
    void (*nudge)(struct scheduler *s, struct runner *r);
    void (*quit)(struct scheduler *s, struct runner *r);

    /* stop - no request is left, and the runners are about to end. NULL = nothing to do. */
    void (*stop)(struct scheduler *s);
    /* free - free the scheduler; no runner is left. Lock not held. */
    void (*free)(struct scheduler *s);
};

/* A wrapper stands around a scheduler: it replaces some of its functions and calls the replaced
 * ones. The slots go from the inside to the outside. */
enum scheduler_wrap_slot {
    SCHEDULER_ORDERING, /* serve/ordering.h */
    SCHEDULER_LIMITS,   /* limits/limits.h */
    SCHEDULER_CACHE,    /* cache/cache_stage.h */
    SCHEDULER_WRAPS,
};

/* The first member of a wrapper's struct. */
struct scheduler_wrap {
    struct scheduler_ops inner; /* the functions before this wrapper replaced some */
};

struct scheduler {
    struct scheduler_ops ops;
    struct serve_version *version;
    /* the most requests of one take; 0 = take itself fits r->batch to the batch */
    size_t room;
    bool takes_ahead; /* the thread in Execute may call `take` for its runner */
    bool may_inline;  /* a pushed request may run at once on the thread that pushed it */
    bool follows;     /* its answers depend on which other versions serve */
    const char *late; /* the error text for a request that waited too long */
    /* each is freed by its own `free`; NULL = none */
    struct scheduler_wrap *wraps[SCHEDULER_WRAPS];
};

/* scheduler_make_fn - make the scheduler of a version that is being made. Its name, number,
 * config and model are set. Blocks: may read files of the model.
 * ret     NULL: the configuration asks for a different scheduler
 * errors  INVALID_ARG from the configuration's settings */
typedef struct err *scheduler_make_fn(struct serve_version *v, struct scheduler **ret);

/* scheduler_put_around - install a wrapper, before requests come. The caller then replaces
 * functions in s->ops, always including `free`. */
void scheduler_put_around(struct scheduler *s, enum scheduler_wrap_slot slot,
                          struct scheduler_wrap *w);

/* scheduler_free - free the scheduler; no runner is left. NULL is fine. */
static inline void scheduler_free(struct scheduler *s)
{
    if (s)
        s->ops.free(s);
}
