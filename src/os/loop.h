#pragma once
/* An event loop on epoll: descriptors, timers, messages from other threads, and work put off to
 * the end of a turn. One thread runs a loop; everything here but loop_post and loop_stop is for
 * that thread alone (or before it runs).
 *
 * A turn: wait; descriptors that are ready; messages; timers that are due; then the put-off work
 * of each phase in order; then some descriptors of the busy lane, some tasks of phase SPARE and,
 * at times, some descriptors of the slow lane, and what they put off. Phase SUBMIT hands the
 * requests gathered in this turn to their models; phase FLUSH writes what connections have to
 * say, so that a connection writes once a turn however many answers it got. Phase SPARE is for
 * what many may ask for at once and nobody needs at once: it never holds up a turn for long. */
#include "base/err.h"
#include "base/list.h"
#include "os/clock.h"
#include "os/mailbox.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct loop;

/* Where a descriptor is watched: docs/internals/loop.md */
enum loop_lane_id {
    LOOP_LANE_FRONT, /* called in each turn in which it is ready */
    LOOP_LANE_BUSY,  /* when those in front had theirs: one by one, for 100 us a turn */
    /* the same, and all its members together get about a tenth of the loop's time */
    LOOP_LANE_SLOW,
};

/* A descriptor under watch. Embedded in its owner; must stay where it is while added. */
struct loop_fd {
    int fd;
    uint32_t events; /* EPOLL* bits asked for now */
    enum loop_lane_id lane;
    void (*ready)(struct loop_fd *w, uint32_t events);
};

/* A timer. Embedded in its owner. heap_index is the loop's. */
struct loop_timer {
    time_ns when;
    size_t heap_index; /* 0 = not set */
    void (*due)(struct loop_timer *t);
};

#define LOOP_TIMER_INIT(fn) \
    {                       \
        0, 0, (fn)          \
    }

enum loop_phase {
    LOOP_PHASE_SUBMIT,
    LOOP_PHASE_FLUSH,
    LOOP_PHASE_SPARE, /* like the busy lane: when those in front had theirs, for 100 us a turn */
    LOOP_PHASES,
};

/* Work at the end of this turn, in phase SPARE perhaps of a later one; put off again while it
 * runs, it runs in this turn once more. */
struct loop_task {
    struct list node; /* list_init before first use */
    void (*run)(struct loop_task *t);
};

struct err *loop_new(struct loop **ret);

/* loop_free - the loop must not run; descriptors and timers left are forgotten, messages left
 * are delivered. NULL is fine. */
void loop_free(struct loop *l);

/* loop_run - until loop_stop, and what was posted or put off to phase SPARE before that is done. */
void loop_run(struct loop *l);

/* loop_stop - make loop_run return after its turn. Any thread. */
void loop_stop(struct loop *l);

/* loop_add, loop_mod, loop_del - watch w->fd for w->events (set by add and mod), in w->lane; in
 * front when the system gives no descriptor for the lane. */
struct err *loop_add(struct loop *l, struct loop_fd *w, uint32_t events);
void loop_mod(struct loop *l, struct loop_fd *w, uint32_t events);
void loop_del(struct loop *l, struct loop_fd *w);

/* loop_move - move w to another lane. It stays where it is when the system gives no descriptor. */
void loop_move(struct loop *l, struct loop_fd *w, enum loop_lane_id lane);

/* loop_timer_set - (re)arm; `when` in the past fires in this turn. loop_timer_clear - not armed
 * is fine. */
void loop_timer_set(struct loop *l, struct loop_timer *t, time_ns when);
void loop_timer_clear(struct loop *l, struct loop_timer *t);

/* loop_later - run the task at the end of this turn, in phase SPARE of this or a later one,
 * unless it already waits.
 * loop_task_cancel - it will not run. */
void loop_later(struct loop *l, enum loop_phase phase, struct loop_task *t);
void loop_task_cancel(struct loop_task *t);

/* loop_post - deliver messages first..last (linked by next, oldest first) on the loop's thread.
 * Any thread. */
void loop_post(struct loop *l, struct mail *first, struct mail *last);

/* loop_now - the time at which this turn began; cheap. */
time_ns loop_now(const struct loop *l);

/* loop_current - the loop that the calling thread runs, NULL if none. */
struct loop *loop_current(void);
