#pragma once
/* What stands in front of a version and decides which of its requests runs when. A version has
 * one, chosen when the version is made (serve/features.h); everybody else knows only this.
 *
 *     batching/batching.c       the default scheduler and the dynamic batcher: one queue
 *     sequences/sequences.c     sequences, each on the instance that has its slot
 *     ensembles/ensemble_run.c  ensembles: nothing is queued, steps are requests to other models
 *
 * A scheduler is a struct whose first member is a struct scheduler. Its functions are copied into
 * it when it is made: a call is one load and one jump. The caller of a function holds
 * version->lock, unless its comment says otherwise. */
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
    /* Looks at requests before they are queued: what it answers, or runs by itself, it takes out
     * of the list. Lock not held. NULL = it lets all of them pass.
     * on_loop  the caller is a loop at the end of its turn, and the inputs are small */
    void (*accept)(struct scheduler *s, struct list *requests, bool on_loop);

    /* arrive - a request of which accept decides later: its place in what keeps an order is now.
     * NULL = nothing does. */
    void (*arrive)(struct scheduler *s, struct request *r);

    /* sample - a request of a warm-up, which is not queued, gets what it does not bring. Lock not
     * held. NULL = nothing is missing.
     * errors  INVALID_ARG: too many inputs */
    struct err *(*sample)(struct scheduler *s, struct request *r);

    /* push - queue a request. false: it stays the caller's, who answers it with `refusal`. */
    bool (*push)(struct scheduler *s, struct request *r, time_ns now);
    /* refusal - why push did not take it. Lock not held. */
    struct err *(*refusal)(const struct scheduler *s, const struct request *r,
                           enum stats_reason *ret_reason);

    /* take - the next batch for an idle runner, into r->batch.
     * ret_wake  written when nothing was taken: when trying again can succeed without new work;
     *           TIME_NEVER = only new work helps
     * returns   requests taken; 0 = wait */
    size_t (*take)(struct scheduler *s, struct runner *r, time_ns now, time_ns *ret_wake);
    /* ready - whether take would return a batch. r NULL: for any runner of a shared queue. */
    bool (*ready)(struct scheduler *s, struct runner *r, time_ns now, time_ns *ret_wake);
    /* turn - one round of a runner's thread: take, execute, deliver (runner_turn). The lock is
     * released meanwhile.
     * ret_wake  as take, where false is returned
     * returns   false: there was nothing to run */
    bool (*turn)(struct scheduler *s, struct runner *r, time_ns *ret_wake);
    /* pick - the idle runner whose turn it is (runner_pick); NULL = none is idle. */
    struct runner *(*pick)(struct scheduler *s);
    /* wake - who is to be woken is woken: runner_wake_any, or runner_look for each. The lock may
     * be released meanwhile. */
    void (*wake)(struct scheduler *s, time_ns now);

    /* expire - hand out what will not run any more, by queue_node: time-outs and cancelled
     * requests (reject_dropped).
     * has_dropped - whether something lies ready for expire, without looking at the clock.
     * next_deadline - when expire is to be called though nothing else happens; 0 = at once,
     * TIME_NEVER = not.
     * remove - take one request out; false: it is not queued. What cannot go on without it lies
     * ready for expire then.
     * drain - hand out everything. */
    size_t (*expire)(struct scheduler *s, time_ns now, struct list *ret_list);
    bool (*has_dropped)(const struct scheduler *s);
    time_ns (*next_deadline)(const struct scheduler *s);
    bool (*remove)(struct scheduler *s, struct request *r);
    size_t (*drain)(struct scheduler *s, struct list *ret_list);

    /* depth - requests that wait. Any thread, no lock. oldest - since when the longest has waited;
     * TIME_NEVER = none waits. */
    size_t (*depth)(const struct scheduler *s);
    time_ns (*oldest)(const struct scheduler *s);

    /* report - log what was noticed while the lock was held. Lock not held. NULL = it notices
     * nothing. */
    void (*report)(struct scheduler *s);

    /* Runners that come and go. Each may be NULL = nothing is to be done, or false.
     * join - the version lists it, again or for the first time.
     * leave - it gets nothing new: what it has goes on.
     * busy - whether it has something still.
     * drop - forget it; its thread is over. Lock not held. */
    void (*join)(struct scheduler *s, struct runner *r);
    void (*leave)(struct scheduler *s, struct runner *r);
    bool (*busy)(const struct scheduler *s, const struct runner *r);
    void (*drop)(struct scheduler *s, struct runner *r);

    /* What runners need to execute. Each may be NULL = nothing.
     * equip - of a runner that is being made, as its group says. Lock not held.
     *         errors  INVALID_ARG: it needs what can never be had
     * commit - the version's runners are those of this configuration from now on.
     * hold, release - for an execution outside of a turn. Blocks. Lock not held.
     * nudge - its thread shall look at the queue again, whatever else it waits for.
     * quit - its thread ends: it wants nothing any more. */
    struct err *(*equip)(struct scheduler *s, struct runner *r,
                         const struct Inference__ModelConfig *proto);
    void (*commit)(struct scheduler *s, const struct Inference__ModelConfig *proto);
    void (*hold)(struct scheduler *s, struct runner *r);
    void (*release)(struct scheduler *s, struct runner *r);
    void (*nudge)(struct scheduler *s, struct runner *r);
    void (*quit)(struct scheduler *s, struct runner *r);

    /* stop - no request is left, and the runners go. NULL = nothing is to be done. */
    void (*stop)(struct scheduler *s);
    /* free - no runner is left. Lock not held. */
    void (*free)(struct scheduler *s);
};

/* What stands around a scheduler: it takes the place of some functions, and calls those that were
 * there. From inside to outside. */
enum scheduler_wrap_slot {
    SCHEDULER_ORDERING, /* serve/ordering.h */
    SCHEDULER_LIMITS,   /* limits/limits.h */
    SCHEDULER_CACHE,    /* cache/cache_stage.h */
    SCHEDULER_WRAPS,
};

/* First member of a wrapper's struct. */
struct scheduler_wrap {
    struct scheduler_ops inner; /* as they were before */
};

struct scheduler {
    struct scheduler_ops ops;
    struct serve_version *version;
    size_t room;      /* the most requests of one take; 0 = take sees to the room of r->batch */
    bool may_inline;  /* what is pushed may be taken at once, by the thread that pushed it */
    bool adds_inputs; /* requests have inputs besides those of the configuration */
    bool follows;     /* its answers depend on which other versions serve */
    const char *late; /* what a client hears whose request has waited for too long */
    struct scheduler_wrap *wraps[SCHEDULER_WRAPS]; /* each its own owner; NULL = none */
};

/* scheduler_make_fn - a scheduler for a version that is being made: name, number, config and model
 * are set.
 * ret     NULL: the configuration asks for another one
 * errors  INVALID_ARG from the configuration's settings. Blocks: may read files of the model */
typedef struct err *scheduler_make_fn(struct serve_version *v, struct scheduler **ret);

/* scheduler_put_around - a wrapper is made; it then sets what it changes of s->ops, and always
 * `free`. Before requests come. */
void scheduler_put_around(struct scheduler *s, enum scheduler_wrap_slot slot,
                          struct scheduler_wrap *w);

/* scheduler_free - no runner is left. NULL is fine. */
static inline void scheduler_free(struct scheduler *s)
{
    if (s)
        s->ops.free(s);
}
