#pragma once
/* An event loop on epoll: descriptors, timers, messages from other threads, and tasks at the end
 * of a turn. One thread runs a loop. Only loop_post, loop_stop and loop_del_from_elsewhere may be
 * called by other threads (all functions may be called before the loop runs).
 *
 * A turn: wait; ready descriptors; messages; due timers; then the tasks of each phase in order;
 * then some descriptors of the busy lane, some tasks of phase SPARE and sometimes some
 * descriptors of the slow lane, with the tasks that these add. Phase SUBMIT submits the requests
 * of this turn to their models. Phase FLUSH writes the output of connections, so that a
 * connection writes once per turn however many answers it has. Phase SPARE is for work that is
 * not urgent and that many may need at the same time; it never delays a turn for long. */
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
    LOOP_LANE_FRONT, /* called in every turn in which it is ready */
    LOOP_LANE_BUSY,  /* called after the front lane, one by one, for 100 us per turn */
    /* the same, but all members together get about a tenth of the loop's time */
    LOOP_LANE_SLOW,
};

/* A descriptor that the loop watches. Embedded in its owner; must not move while it is added. */
struct loop_fd {
    int fd;
    uint32_t events; /* EPOLL* bits that are watched now */
    enum loop_lane_id lane;
    void (*ready)(struct loop_fd *w, uint32_t events);
};

/* A timer. Embedded in its owner. heap_index belongs to the loop. */
struct loop_timer {
    time_ns when;
    size_t heap_index; /* 0 = not set */
    void (*due)(struct loop_timer *t);
};

#define LOOP_TIMER_INIT(fn) \
    {                       \
        0, 0, (fn)          \
    }

/* EPOLLIN | EPOLLET, for watching an eventfd: called once for each time that it is written to, and
 * once where that was before it was added. */
#define LOOP_BELL (1u | 1u << 31)

enum loop_phase {
    LOOP_PHASE_SUBMIT,
    LOOP_PHASE_FLUSH,
    LOOP_PHASE_SPARE, /* like the busy lane: after the front lane, for 100 us per turn */
    LOOP_PHASES,
};

/* A task runs at the end of this turn, or in phase SPARE of this or a later turn. If it is added
 * again while it runs, it runs once more in the same turn. */
struct loop_task {
    struct list node; /* list_init before first use */
    void (*run)(struct loop_task *t);
};

struct err *loop_new(struct loop **ret);

/* loop_free - free a loop that does not run. Remaining descriptors and timers are forgotten,
 * remaining messages are delivered. NULL is fine. */
void loop_free(struct loop *l);

/* loop_run - run until loop_stop, and until everything that was posted or added to phase SPARE
 * before it was done. */
void loop_run(struct loop *l);

/* loop_stop - make loop_run return after its turn. Any thread. */
void loop_stop(struct loop *l);

/* loop_add, loop_mod, loop_del - watch w->fd for w->events (set by add and mod), in w->lane. If
 * the system has no descriptor for that lane, w goes to the front lane. */
struct err *loop_add(struct loop *l, struct loop_fd *w, uint32_t events);
void loop_mod(struct loop *l, struct loop_fd *w, uint32_t events);
void loop_del(struct loop *l, struct loop_fd *w);

/* loop_del_from_elsewhere - loop_del by another thread: w->ready may still be called in the turn
 * that the loop is in. */
void loop_del_from_elsewhere(struct loop *l, const struct loop_fd *w);

/* loop_move - move w to another lane. If the system has no descriptor for that lane, w stays
 * where it is. */
void loop_move(struct loop *l, struct loop_fd *w, enum loop_lane_id lane);

/* loop_timer_set - set or change a timer; a time in the past fires in this turn.
 * loop_timer_clear - clear a timer; it need not be set. */
void loop_timer_set(struct loop *l, struct loop_timer *t, time_ns when);
void loop_timer_clear(struct loop *l, struct loop_timer *t);

/* loop_later - run the task at the end of this turn, or in phase SPARE of this or a later turn.
 * Does nothing if the task already waits.
 * loop_task_cancel - the task will not run. */
void loop_later(struct loop *l, enum loop_phase phase, struct loop_task *t);
void loop_task_cancel(struct loop_task *t);

/* loop_post - deliver messages first..last (linked by next, oldest first) on the loop's thread.
 * Any thread.
 * loop_post_many - the same for messages of which somebody may post thousands at once. They are
 * delivered in their order when phase SPARE has its turn, so that others do not wait for all of
 * them. Their order with those of loop_post is not kept.
 * loop_wait_for_room - if many of the latter wait, wait until few do, some milliseconds at most
 * (os/backlog.h). Returns at once on a loop's thread.
 * loop_give_way - threads that are ready for the processor go before the calling one, loops above
 * all: it works for nobody. Returns at once on a loop's thread. */
void loop_post(struct loop *l, struct mail *first, struct mail *last);
void loop_post_many(struct loop *l, struct mail *first, struct mail *last);
void loop_wait_for_room(struct loop *l);
void loop_give_way(void);

/* loop_now - the time at which this turn began; cheap. */
time_ns loop_now(const struct loop *l);

/* loop_current - the loop that the calling thread runs, NULL if none. */
struct loop *loop_current(void);
