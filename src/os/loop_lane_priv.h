#pragma once
/* The slow lane of a loop: a second epoll descriptor, watched by the loop's own, for descriptors that took more turns than they gave
 * work. However many of them are ready, others wait for a few of their events at most, and all of them together get about a tenth
 * of the loop's time: docs/internals/loop.md. The loop's thread only. */
#include "os/loop.h"

#include <stdbool.h>

/* After so many events, or when so much time has passed, a turn of the lane ends. */
#define LOOP_LANE_EVENTS 16
#define LOOP_LANE_TIME   TIME_US(100)

struct loop_lane {
    int epoll_fd; /* -1 until it has its first member */
    struct loop_fd
        gate; /* epoll_fd as the loop watches it: it tells once, then waits to be asked again */
    struct loop_timer again; /* the lane rests until then */
    struct loop *loop;
    int loop_epoll_fd;
    bool due; /* its turn comes at the end of this turn of the loop */
};

/* loop_lane_init - loop_epoll_fd: the loop's own. */
void loop_lane_init(struct loop_lane *lane, struct loop *l, int loop_epoll_fd);
void loop_lane_fini(struct loop_lane *lane);

/* loop_lane_open - make the descriptor, if there is none; false when the system gives none. */
bool loop_lane_open(struct loop_lane *lane);

/* loop_lane_turn - call `ready` of some members that are; returns whether any was. */
bool loop_lane_turn(struct loop_lane *lane);

/* loop_lane_rest - after a turn and what came of it, begun at `begun`: the next one comes when nine times as long has passed, or,
 * where no member was ready, when one is. */
void loop_lane_rest(struct loop_lane *lane, time_ns begun, bool any);
