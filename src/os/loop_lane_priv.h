#pragma once
/* A lane of a loop: a separate epoll descriptor, which the loop's epoll watches. However many
 * members are ready, others wait for only a few of their events. A lane that rests gets about a
 * tenth of the loop's time; it is for descriptors that took more turns than they had work. A
 * lane that does not rest gets the time that the front lane leaves; it is for descriptors that
 * always have more to do: docs/internals/loop.md. Used by the loop's thread only. */
#include "os/loop.h"

#include <stdbool.h>

/* A turn of the lane ends after this many events, or after this time. */
#define LOOP_LANE_EVENTS 16
#define LOOP_LANE_TIME   TIME_US(100)

struct loop_lane {
    int epoll_fd; /* -1 until it has its first member */
    /* epoll_fd as the loop watches it. For a lane that rests it is one-shot: it fires once and
     * must be armed again. */
    struct loop_fd gate;
    struct loop_timer again; /* when the rest of the lane ends */
    struct loop *loop;
    int loop_epoll_fd;
    bool rests;
    bool due; /* its turn comes at the end of this turn of the loop */
};

/* loop_lane_init - loop_epoll_fd: the loop's own. */
void loop_lane_init(struct loop_lane *lane, struct loop *l, int loop_epoll_fd, bool rests);
void loop_lane_fini(struct loop_lane *lane);

/* loop_lane_open - make the epoll descriptor if there is none. Returns false, with errno, if the
 * system has none. */
bool loop_lane_open(struct loop_lane *lane);

/* loop_lane_turn - call `ready` of some ready members. Returns true if there was one. */
bool loop_lane_turn(struct loop_lane *lane);

/* loop_lane_rest - call it after a turn that began at `begun` and the tasks that followed. The
 * next turn comes when a member is ready. If the lane rests and members were ready, it comes
 * after nine times the duration at the earliest. */
void loop_lane_rest(struct loop_lane *lane, time_ns begun, bool any);
