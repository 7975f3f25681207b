#pragma once
/* What stands in front of a version and decides which of its requests runs when. A version has one, chosen when the version is made
 * (serve/schedulers.c); everybody else knows only this.
 *
 *     serve/batching.c       the default scheduler and the dynamic batcher: one queue for all instances
 *     serve/sequences.c      sequences, each on the instance that has its slot
 *     serve/ensemble_run.c   ensembles: nothing is queued, the steps are requests to other models
 *
 * A scheduler is a struct whose first member is a struct scheduler. Its functions are copied into it when it is made: a call is one
 * load and one jump. The caller of a function holds version->lock, unless its comment says otherwise. */
#include "base/err.h"
#include "base/list.h"
#include "infer/stats.h"
#include "os/clock.h"

#include <stdbool.h>
#include <stddef.h>

struct request;
struct runner;
struct scheduler;
struct serve_version;

struct scheduler_ops {
    /* Looks at requests before they are queued: what it answers, or runs by itself, it takes out of the list. Lock not held.
     * NULL = it lets all of them pass.
     * on_loop  the caller is a loop at the end of its turn, and the inputs are small */
    void (*accept)(struct scheduler *s, struct list *requests, bool on_loop);

    /* sample - a request of a warm-up, which is not queued, gets what it does not bring. Lock not held. NULL = nothing is missing.
     * errors  INVALID_ARG: too many inputs */
    struct err *(*sample)(struct scheduler *s, struct request *r);

    /* push - queue a request. false: it stays the caller's, who answers it with `refusal`. */
    bool (*push)(struct scheduler *s, struct request *r, time_ns now);
    /* refusal - why push did not take it. Lock not held. */
    struct err *(*refusal)(const struct scheduler *s, const struct request *r,
                           enum stats_reason *ret_reason);

    /* take - the next batch for an idle runner, into r->batch.
     * ret_wake  written when nothing was taken: when trying again can succeed without new work; TIME_NEVER = only new work helps
     * returns   requests taken; 0 = wait */
    size_t (*take)(struct scheduler *s, struct runner *r, time_ns now, time_ns *ret_wake);
    /* ready - whether take would return a batch. r may be NULL where all runners share one queue. */
    bool (*ready)(struct scheduler *s, struct runner *r, time_ns now, time_ns *ret_wake);
    /* wake - who is to be woken is woken: runner_wake_any, or runner_look for each. The lock may be released meanwhile. */
    void (*wake)(struct scheduler *s, time_ns now);

    /* expire - hand out what will not run any more, by queue_node: time-outs and cancelled requests (reject_dropped).
     * has_dropped - whether something lies ready for expire, without looking at the clock.
     * next_deadline - when expire is to be called though nothing else happens; 0 = at once, TIME_NEVER = not.
     * remove - take one request out; false: it is not queued. What cannot go on without it lies ready for expire then.
     * drain - hand out everything. */
    size_t (*expire)(struct scheduler *s, time_ns now, struct list *ret_list);
    bool (*has_dropped)(const struct scheduler *s);
    time_ns (*next_deadline)(const struct scheduler *s);
    bool (*remove)(struct scheduler *s, struct request *r);
    size_t (*drain)(struct scheduler *s, struct list *ret_list);

    /* depth - requests that wait. Any thread, no lock. oldest - since when the longest has waited; TIME_NEVER = none waits. */
    size_t (*depth)(const struct scheduler *s);
    time_ns (*oldest)(const struct scheduler *s);

    /* report - log what was noticed while the lock was held. Lock not held. NULL = it notices nothing. */
    void (*report)(struct scheduler *s);

    /* Of a scheduler that knows its runners one by one; NULL of all others, whose runners have no seat.
     * join - a runner more; returns its seat, never NULL. leave - it gets nothing new: what it has goes on.
     * busy - whether it has something still. drop - forget the seat; lock not held. */
    void *(*join)(struct scheduler *s, struct runner *r);
    void (*leave)(void *seat);
    bool (*busy)(const void *seat);
    void (*drop)(void *seat);

    /* stop - no request is left, and the runners go. NULL = nothing is to be done. */
    void (*stop)(struct scheduler *s);
    /* free - no runner is left. Lock not held. */
    void (*free)(struct scheduler *s);
};

struct scheduler {
    struct scheduler_ops ops;
    struct serve_version *version;
    size_t room;      /* the most requests of one take; 0 = take sees to the room of r->batch */
    bool may_inline;  /* what is pushed may be taken at once, by the thread that pushed it */
    const char *late; /* what a client hears whose request has waited for too long */
};

/* scheduler_make_fn - a scheduler for a version that is being made: name, number, config and model are set.
 * ret     NULL: the configuration asks for another one
 * errors  INVALID_ARG from the configuration's settings. Blocks: may read files of the model */
typedef struct err *scheduler_make_fn(struct serve_version *v, struct scheduler **ret);

/* schedulers_make - the scheduler that the configuration asks for.
 * errors  as above */
struct err *schedulers_make(struct serve_version *v, struct scheduler **ret);

/* scheduler_free - no runner is left. NULL is fine. */
static inline void scheduler_free(struct scheduler *s)
{
    if (s)
        s->ops.free(s);
}
