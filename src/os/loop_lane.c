#include "os/loop_lane_priv.h"

#include "base/check.h"
#include "base/fault.h"

#include <errno.h>
#include <sys/epoll.h>
#include <unistd.h>

#define RESTS_TIMES 9
#define REST_LEAST  TIME_MS(1)
/* a limit, because a turn in which the thread waited for a CPU seems long */
#define REST_MOST TIME_MS(16)

static void on_gate(struct loop_fd *gate, uint32_t events)
{
    (void)events;
    LIST_ITEM(gate, struct loop_lane, gate)->due = true;
}

static void on_again(struct loop_timer *t)
{
    LIST_ITEM(t, struct loop_lane, again)->due = true;
}

void loop_lane_init(struct loop_lane *lane, struct loop *l, int loop_epoll_fd, bool rests)
{
    *lane = (struct loop_lane){
        .epoll_fd = -1,
        .gate = {.fd = -1, .ready = on_gate},
        .again = LOOP_TIMER_INIT(on_again),
        .loop = l,
        .loop_epoll_fd = loop_epoll_fd,
        .rests = rests,
    };
}

void loop_lane_fini(struct loop_lane *lane)
{
    if (lane->epoll_fd >= 0)
        close(lane->epoll_fd);
}

bool loop_lane_open(struct loop_lane *lane)
{
    if (lane->epoll_fd >= 0)
        return true;
    int fd = fault_hit() ? (errno = EMFILE, -1) : epoll_create1(EPOLL_CLOEXEC);
    if (fd < 0)
        return false;
    lane->gate.fd = fd;
    struct err *e =
        loop_add(lane->loop, &lane->gate, lane->rests ? EPOLLIN | EPOLLONESHOT : EPOLLIN);
    if (e) {
        err_free(e);
        close(fd);
        return false;
    }
    lane->epoll_fd = fd;
    return true;
}

/* Handles one event at a time, so that members whose turn does not come keep their place. */
bool loop_lane_turn(struct loop_lane *lane)
{
    lane->due = false;
    time_ns end = clock_now_ns() + LOOP_LANE_TIME;
    int handled = 0;
    struct epoll_event ev;
    do {
        if (epoll_wait(lane->epoll_fd, &ev, 1, 0) != 1)
            break;
        struct loop_fd *w = ev.data.ptr;
        w->ready(w, ev.events);
        handled++;
    } while (handled < LOOP_LANE_EVENTS && clock_now_ns() < end);
    return handled > 0;
}

void loop_lane_rest(struct loop_lane *lane, time_ns begun, bool any)
{
    if (!lane->rests)
        return;
    if (!any) {
        struct epoll_event ev = {.events = EPOLLIN | EPOLLONESHOT, .data.ptr = &lane->gate};
        CHECK(epoll_ctl(lane->loop_epoll_fd, EPOLL_CTL_MOD, lane->epoll_fd, &ev) == 0);
        return;
    }
    time_ns now = clock_now_ns();
    time_ns rest = (now - begun) * RESTS_TIMES;
    rest = rest > REST_LEAST ? rest : REST_LEAST;
    loop_timer_set(lane->loop, &lane->again, now + (rest < REST_MOST ? rest : REST_MOST));
}
