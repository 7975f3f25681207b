#pragma once
/* A runner drives one instance: on its own thread while there is work (the thread ends after 10
 * s without work), or inline on the loop that received the requests.
 *
 * Inline: a loop claims an idle runner and executes on its own thread. This is allowed if the
 * backend opted in, all inputs together are small and the queue is empty. After an inline run
 * longer than RUNNER_INLINE_NS the next runs are measured. A model that uses more CPU time than
 * that on average, or blocks again and again, is demoted: it runs on instance threads only. Single
 * long runs are forgiven, three are not that make up the average. */
#include "base/err.h"
#include "base/list.h"
#include "os/clock.h"
#include "os/mutex.h"
#include "os/thread.h"

#include <stdbool.h>
#include <stddef.h>

struct begun;
struct plugin_instance;
struct request;
struct scheduler;
struct serve_version;

#define RUNNER_RETIRE_NS TIME_S(10)
#define RUNNER_INLINE_NS TIME_US(50)
/* the least number of inline runs that are measured after a long one */
#define RUNNER_WATCH 64u
/* a run that blocks counts as one that takes this long, or what it took if that is more: a third
 * of what so many runs may take */
#define RUNNER_BLOCKED_NS (RUNNER_WATCH * RUNNER_INLINE_NS / 3 + 1)
/* the next batch is taken before the answers of one go out that took this long or longer, if the
 * backend promised to answer last */
#define RUNNER_AHEAD_NS TIME_MS(1)
/* after so many runs in a row, each shorter than RUNNER_INLINE_NS, answers may wait for another */
#define RUNNER_QUICK_RUNS 64u
/* the most input bytes of an inline run, all requests together */
#define RUNNER_INLINE_BYTES 65536u

enum runner_state {
    RUNNER_IDLE,    /* no thread, or a thread that waits */
    RUNNER_BUSY,    /* its thread looks for work or executes */
    RUNNER_CLAIMED, /* a loop executes on it, or waits for what it began */
};

struct runner {
    struct serve_version *version;
    struct plugin_instance *instance; /* owned */
    struct request **batch;           /* `room` slots; used by the executing thread only */
    struct request **ahead; /* the same, for the batch after it; NULL = never taken ahead */
    size_t room;            /* the most requests of a batch; set from the scheduler */
    struct thread *thread;  /* kept after the thread ended, until it is joined */
    struct mutex_cond wake;
    enum runner_state state; /* guarded by version->lock, like all fields below */
    bool has_thread;
    unsigned watch;   /* how many inline runs are measured after the last long one, */
    unsigned watched; /* and how many of them are still to come */
    time_ns slow_ns;  /* what those of them took that exceeded the limit */
    /* runs in a row on the thread that were shorter than RUNNER_INLINE_NS; for that thread only */
    unsigned quick_runs;
    bool answers_apart; /* the backend sent those of the last run one by one; likewise */
    /* how long the thread waits without work; RUNNER_RETIRE_NS except in tests */
    time_ns retire_after;
    bool leaving;        /* takes no more work; no longer in the version's list */
    void *seat;          /* owned by the scheduler: work for this runner alone; NULL = none */
    struct begun *begun; /* owned; NULL = the instance executes in one piece */
    void *limit;         /* owned by the rate limiter around the scheduler; NULL = no limit */
};

/* runner_new - the runner owns the instance. */
struct runner *runner_new(struct serve_version *v, struct plugin_instance *instance);

/* runner_halt - end the thread; the same holds as for runner_free. Blocks. */
void runner_halt(struct runner *r);

/* runner_free - end the thread, free the runner and its instance. Either nothing is queued and
 * version->stopping is set, or the runner has left and is idle. NULL is fine. Blocks. */
void runner_free(struct runner *r);

/* runner_join - the version now lists r, and the scheduler may use it. Caller holds v->lock. */
void runner_join(struct runner *r);

/* runner_leave - r finishes its current work and takes no more. If it was woken for a request,
 * another runner takes that request. The version no longer lists r. Caller holds v->lock. */
void runner_leave(struct runner *r);

/* runner_is_idle - true if r executes nothing. A runner that has left and is idle stays idle.
 * Caller holds v->lock. */
bool runner_is_idle(const struct runner *r);

/* runner_wake - call it after requests were queued: wakes the idle runners for which the
 * scheduler has a batch or a time to wait for. Caller holds v->lock; it may be released
 * meanwhile and is held again on return. */
void runner_wake(struct serve_version *v, time_ns now);

/* runner_turn, runner_pick - the default `turn` and `pick` of a scheduler. */
bool runner_turn(struct scheduler *s, struct runner *r, time_ns *ret_wake);
struct runner *runner_pick(struct scheduler *s);

/* runner_wake_any - the default `wake` of a scheduler whose runners share one queue. Caller
 * holds v->lock. */
void runner_wake_any(struct serve_version *v, time_ns now);

/* runner_look - work waits for this runner alone: wake it if it is idle. Caller holds v->lock.
 * errors  UNAVAILABLE if it has no thread and none can be started */
struct err *runner_look(struct runner *r);

/* runner_give_up - no thread can be started. If no runner of the model has a thread, queued
 * requests would wait for ever, so they are answered with `why`. If the scheduler assigns
 * requests to single runners, they are answered in any case, because no other runner can take
 * them. `why` is freed. Caller holds v->lock, which is released meanwhile. */
void runner_give_up(struct serve_version *v, struct err *why);

/* runner_claim - claim an idle runner for the calling loop; NULL = none is idle, or this thread is
 * no loop and the instance needs one. No delay holds back what is queued. Caller holds v->lock. */
struct runner *runner_claim(struct serve_version *v);

/* runner_run_inline - run queued requests on a claimed runner until nothing more may run now,
 * then give the runner back. Requests that others queue meanwhile run here for 50 us at most,
 * because no answer is delivered before the end; an instance thread runs the rest.
 * now  when the caller queued its requests, a moment ago: these always run here
 * Caller holds v->lock; it is released on return. */
void runner_run_inline(struct runner *r, time_ns now);

/* The steps of a runner's turn, for schedulers and wrappers that have a `turn` of their own. */

/* runner_take - take the next batch into r->batch, and answer the requests that the queue gave
 * up. Caller holds v->lock. The lock may be released meanwhile, but not after the last `take`.
 * returns  requests taken; 0: nothing to run now, *ret_wake is as for scheduler_ops.take */
size_t runner_take(struct runner *r, time_ns now, time_ns *ret_wake);

/* runner_execute - one Execute call with the requests taken. Caller does not hold the lock.
 * runner_announce, runner_call - its two parts: what logs and traces say of it before; the call. */
void runner_execute(struct runner *r, size_t count);
void runner_announce(struct runner *r, size_t count);
void runner_call(struct runner *r, size_t count);

/* What a loop does for a runner that it has claimed, measured: always by the clock, and, while
 * the runner is watched, by what the thread used. */
struct runner_measure {
    time_ns limit; /* what is longer is slow, if it is the model's own fault */
    time_ns start, end;
    struct thread_usage before;
    bool closely;
    time_ns took;
};

/* runner_measure_begin, runner_measure_end - around calls of the backend, on one thread; the
 * lock is not needed.
 * runner_measured - notes what was measured. Caller holds v->lock, which may be released
 * meanwhile. */
void runner_measure_begin(struct runner_measure *m, const struct runner *r, time_ns limit,
                          time_ns now);
void runner_measure_end(struct runner_measure *m);
void runner_measured(struct runner *r, const struct runner_measure *m);

/* runner_note_slow - a run for which the loop has waited so long, or would have had to wait. A
 * model that does that again and again runs on instance threads only. Caller holds v->lock, which
 * may be released meanwhile. */
void runner_note_slow(struct runner *r, time_ns took);

/* runner_answer_dropped - answer the requests that the queue gave up. Caller holds v->lock,
 * which is released meanwhile. */
void runner_answer_dropped(struct serve_version *v, time_ns now);
