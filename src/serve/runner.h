#pragma once
/* What runs an instance: a thread while there is work (retired after 10 s without any), or the
 * loop that received the requests.
 *
 * Inline: a loop takes an idle runner and executes on its own thread when the backend opted in,
 * all inputs together are small, and nothing waits in the queue. After a run that took longer
 * than RUNNER_INLINE_NS the next ones are watched: a model that uses that much of a core, or
 * blocks, again and again is demoted. */
#include "base/err.h"
#include "base/list.h"
#include "os/clock.h"
#include "os/mutex.h"

#include <stdbool.h>
#include <stddef.h>

struct plugin_instance;
struct request;
struct scheduler;
struct serve_version;
struct thread;

#define RUNNER_RETIRE_NS    TIME_S(10)
#define RUNNER_INLINE_NS    TIME_US(50)
#define RUNNER_INLINE_BYTES 65536u /* inputs of an inline run, all requests together */

enum runner_state {
    RUNNER_IDLE,    /* no thread, or one that waits */
    RUNNER_BUSY,    /* its thread looks for work or executes */
    RUNNER_CLAIMED, /* a loop executes on it */
};

struct runner {
    struct serve_version *version;
    struct plugin_instance *instance; /* owned */
    struct request **batch;           /* room of them; the executing thread's */
    size_t room;                      /* as the scheduler needs it */
    struct thread *thread;            /* also after it retired, until joined */
    struct mutex_cond wake;
    enum runner_state state; /* guarded by version->lock, like all that follows */
    bool has_thread;
    unsigned watched;     /* inline runs still to be watched */
    unsigned slow_runs;   /* of those watched, the ones over the limit */
    time_ns retire_after; /* without work; RUNNER_RETIRE_NS, unless a test says otherwise */
    bool leaving;         /* takes no more work; the version does not list it any more */
    void *seat;           /* the scheduler's, which has something for it alone; NULL = it has not */
    void *limit; /* of what stands around the scheduler and limits it; NULL = nothing does */
};

/* runner_new - takes the instance over. */
struct runner *runner_new(struct serve_version *v, struct plugin_instance *instance);

/* runner_free - end the thread and free the runner with its instance. Nothing is queued and
 * version->stopping is set, or the runner left and is idle. NULL is fine. Blocks. */
void runner_free(struct runner *r);

/* runner_join - the version lists it, and its scheduler may count on it from here on. Caller
 * holds v->lock. */
void runner_join(struct runner *r);

/* runner_leave - it finishes what it is doing and takes nothing more; whatever it was woken for,
 * another one sees to. The version does not list it any more. Caller holds v->lock. */
void runner_leave(struct runner *r);

/* runner_is_idle - it executes nothing; one that left stays so. Caller holds v->lock. */
bool runner_is_idle(const struct runner *r);

/* runner_wake - after requests were queued: make idle runners look for which the scheduler has
 * something, or a time to wait for. Caller holds v->lock; returns with it held. */
void runner_wake(struct serve_version *v, time_ns now);

/* runner_turn, runner_pick - the ordinary `turn` and `pick` of a scheduler. */
bool runner_turn(struct scheduler *s, struct runner *r, time_ns *ret_wake);
struct runner *runner_pick(struct scheduler *s);

/* runner_wake_any - of a scheduler whose runners share a queue: what its `wake` does. Caller
 * holds v->lock. */
void runner_wake_any(struct serve_version *v, time_ns now);

/* runner_look - something waits for this runner alone: wake it, if it is idle. Caller holds
 * v->lock.
 * errors  UNAVAILABLE when it has no thread and none can be had */
struct err *runner_look(struct runner *r);

/* runner_give_up - no thread can be had: unless some runner of the model has one, what is queued
 * would wait for ever and is answered with `why`, which is taken over. Where the scheduler knows
 * its runners one by one it is answered in any case: no other runner can go on with it. Caller
 * holds v->lock; it is released meanwhile. */
void runner_give_up(struct serve_version *v, struct err *why);

/* runner_claim - an idle runner for the calling loop, or NULL. The queue is empty. Caller holds
 * v->lock. */
struct runner *runner_claim(struct serve_version *v);

/* runner_run_inline - run what is queued on a claimed runner until the queue has nothing that
 * may run now, then give the runner back. What others queue meanwhile is run for 50 us at most,
 * since all answers wait; the rest is a thread's.
 * now  when the caller queued its requests, a moment ago: these are run in any case
 * Caller holds v->lock; returns without it. */
void runner_run_inline(struct runner *r, time_ns now);

/* The steps of a runner's turn, for a scheduler, or what stands around one, whose turns are not
 * the ordinary ones. */

/* runner_take - the next batch, into r->batch; what the queue gave up is answered. Caller holds
 * v->lock, which may be released meanwhile, though not after the queue was asked for the last
 * time.
 * returns  requests taken; 0: nothing to run now, *ret_wake as batcher_take */
size_t runner_take(struct runner *r, time_ns now, time_ns *ret_wake);

/* runner_execute - one Execute with what was taken. Lock not held. */
void runner_execute(struct runner *r, size_t count, time_ns now);

/* runner_answer_dropped - answer what the queue gave up. Caller holds v->lock; it is released
 * meanwhile. */
void runner_answer_dropped(struct serve_version *v, time_ns now);
