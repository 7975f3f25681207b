#pragma once
/* A lane of a loop: an epoll descriptor of its own, watched by the loop's. However many of its
 * members are ready, others wait for a few of their events at most. One that rests gets about a
 * tenth of the loop's time, for descriptors that took more turns than they gave work; one that
 * does not gets whatever those in front leave, for descriptors that always have more:
 * docs/internals/loop.md. The loop's thread only. */
#include "os/loop.h"

#include <stdbool.h>

/* After so many events, or when so much time has passed, a turn of the lane ends. */
#define LOOP_LANE_EVENTS 16
#define LOOP_LANE_TIME   TIME_US(100)

struct loop_lane {
    int epoll_fd; /* -1 until it has its first member */
    /* epoll_fd as the loop watches it. Of a lane that rests it tells once, then waits to be
     * asked again. */
    struct loop_fd gate;
    struct loop_timer again; /* the lane rests until then */
    struct loop *loop;
    int loop_epoll_fd;
    bool rests;
    bool due; /* its turn comes at the end of this turn of the loop */
};

/* loop_lane_init - loop_epoll_fd: the loop's own. */
void loop_lane_init(struct loop_lane *lane, struct loop *l, int loop_epoll_fd, bool rests);
void loop_lane_fini(struct loop_lane *lane);

/* loop_lane_open - make the descriptor, if there is none; false, and errno, when the system
 * gives none. */
bool loop_lane_open(struct loop_lane *lane);

/* loop_lane_turn - call `ready` of some members that are; returns whether any was. */
bool loop_lane_turn(struct loop_lane *lane);

/* loop_lane_rest - after a turn and what came of it, begun at `begun`: the next one comes when a
 * member is ready, and, where the lane rests and some were, not before nine times as long has
 * passed. */
void loop_lane_rest(struct loop_lane *lane, time_ns begun, bool any);
