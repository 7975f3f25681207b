#include "os/loop.h"

#include "base/check.h"
#include "base/fault.h"
#include "base/mem.h"
#include "os/backlog.h"
#include "os/loop_lane_priv.h"
#include "os/timer_heap.h"

#include <errno.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define EVENTS_PER_TURN 128

_Static_assert(LOOP_BELL == ((uint32_t)EPOLLIN | (uint32_t)EPOLLET), "as loop.h says");

struct loop {
    int epoll_fd;
    struct loop_fd wake; /* eventfd that other threads write to when the loop sleeps */
    struct mailbox mail, many;
    struct backlog backlog; /* of many */
    struct loop_lane busy, slow;
    struct timer_heap timers;
    struct list later[LOOP_PHASES];
    time_ns now;
    atomic_bool stop; /* read once per turn; a message that follows wakes the loop */
    /* Events of this turn that were not handled yet: loop_del removes its descriptor from them. */
    struct epoll_event events[EVENTS_PER_TURN];
    int event_count;
};

static _Thread_local struct loop *current;

struct loop *loop_current(void)
{
    return current;
}

/* Nothing to do: the only purpose was to wake the loop. The descriptor is edge-triggered, so its
 * count need not be read. */
static void on_wake(struct loop_fd *w, uint32_t events)
{
    (void)w;
    (void)events;
}

struct err *loop_new(struct loop **ret)
{
    struct loop *l = MEM_NEW(struct loop);
    l->wake.fd = -1;
    l->wake.ready = on_wake;
    mailbox_init(&l->mail);
    mailbox_init(&l->many);
    backlog_init(&l->backlog);
    for (int i = 0; i < LOOP_PHASES; i++)
        list_init(&l->later[i]);
    l->now = clock_now_ns();
    struct err *e = NULL;
    l->epoll_fd = fault_hit() ? (errno = EMFILE, -1) : epoll_create1(EPOLL_CLOEXEC);
    if (l->epoll_fd >= 0)
        l->wake.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    loop_lane_init(&l->busy, l, l->epoll_fd, false);
    loop_lane_init(&l->slow, l, l->epoll_fd, true);
    if (l->epoll_fd < 0 || l->wake.fd < 0)
        e = err_errno(errno, "creating an event loop");
    else
        e = loop_add(l, &l->wake, EPOLLIN | EPOLLET);
    if (!e && !loop_lane_open(&l->busy)) /* every connection begins in the busy lane */
        e = err_errno(errno, "creating an event loop");
    if (e) {
        loop_free(l);
        return e;
    }
    *ret = l;
    return NULL;
}

static int epoll_of(const struct loop *l, const struct loop_fd *w)
{
    const int fds[] = {
        [LOOP_LANE_FRONT] = l->epoll_fd,
        [LOOP_LANE_BUSY] = l->busy.epoll_fd,
        [LOOP_LANE_SLOW] = l->slow.epoll_fd,
    };
    return fds[w->lane];
}

static bool has_spare(const struct loop *l)
{
    return !list_empty(&l->later[LOOP_PHASE_SPARE]) || mailbox_waits(&l->many);
}

static bool open_lane(struct loop *l, enum loop_lane_id lane)
{
    return lane == LOOP_LANE_FRONT || loop_lane_open(lane == LOOP_LANE_BUSY ? &l->busy : &l->slow);
}

struct err *loop_add(struct loop *l, struct loop_fd *w, uint32_t events)
{
    struct epoll_event ev = {.events = events, .data.ptr = w};
    w->events = events;
    if (!open_lane(l, w->lane))
        w->lane = LOOP_LANE_FRONT;
    if (fault_hit())
        errno = ENOMEM;
    else if (epoll_ctl(epoll_of(l, w), EPOLL_CTL_ADD, w->fd, &ev) == 0)
        return NULL;
    return err_errno(errno, "watching descriptor %d", w->fd);
}

void loop_mod(struct loop *l, struct loop_fd *w, uint32_t events)
{
    if (w->events == events)
        return;
    struct epoll_event ev = {.events = events, .data.ptr = w};
    w->events = events;
    CHECK(epoll_ctl(epoll_of(l, w), EPOLL_CTL_MOD, w->fd, &ev) == 0);
}

void loop_del(struct loop *l, struct loop_fd *w)
{
    CHECK(epoll_ctl(epoll_of(l, w), EPOLL_CTL_DEL, w->fd, NULL) == 0);
    for (int i = 0; i < l->event_count; i++)
        if (l->events[i].data.ptr == w)
            l->events[i].data.ptr = NULL;
}

void loop_del_from_elsewhere(struct loop *l, const struct loop_fd *w)
{
    CHECK(epoll_ctl(epoll_of(l, w), EPOLL_CTL_DEL, w->fd, NULL) == 0);
}

void loop_move(struct loop *l, struct loop_fd *w, enum loop_lane_id lane)
{
    enum loop_lane_id was = w->lane;
    if (was == lane || !open_lane(l, lane))
        return;
    int from = epoll_of(l, w);
    w->lane = lane;
    struct err *e = loop_add(l, w, w->events);
    if (e) {
        err_free(e);
        w->lane = was;
        return;
    }
    CHECK(epoll_ctl(from, EPOLL_CTL_DEL, w->fd, NULL) == 0);
}

void loop_timer_set(struct loop *l, struct loop_timer *t, time_ns when)
{
    timer_heap_set(&l->timers, t, when);
}

void loop_timer_clear(struct loop *l, struct loop_timer *t)
{
    timer_heap_clear(&l->timers, t);
}

void loop_later(struct loop *l, enum loop_phase phase, struct loop_task *t)
{
    if (list_empty(&t->node))
        list_append(&l->later[phase], &t->node);
}

void loop_task_cancel(struct loop_task *t)
{
    list_remove(&t->node);
}

static void loop_post_to(const struct loop *l, struct mailbox *box, struct mail *first,
                         struct mail *last)
{
    if (!mailbox_push(box, first, last))
        return;
    uint64_t one = 1;
    ssize_t ignored = write(l->wake.fd, &one, sizeof(one));
    (void)ignored;
}

void loop_post(struct loop *l, struct mail *first, struct mail *last)
{
    loop_post_to(l, &l->mail, first, last);
}

void loop_post_many(struct loop *l, struct mail *first, struct mail *last)
{
    for (const struct mail *m = first; m; m = m == last ? NULL : m->next)
        backlog_add(&l->backlog);
    loop_post_to(l, &l->many, first, last);
}

void loop_wait_for_room(struct loop *l)
{
    if (!current)
        backlog_wait_for_room(&l->backlog);
}

void loop_give_way(void)
{
    if (!current)
        sched_yield();
}

static void stop_noted(struct mail *m)
{
    mem_free(m);
}

void loop_stop(struct loop *l)
{
    atomic_store(&l->stop, true);
    struct mail *m = MEM_NEW(struct mail);
    m->deliver = stop_noted;
    loop_post(l, m, m);
}

time_ns loop_now(const struct loop *l)
{
    return l->now;
}

/* Rounded up to the next millisecond, so that a timer never fires early. */
static int wait_ms(const struct loop *l)
{
    time_ns when = timer_heap_first(&l->timers);
    if (when == TIME_NEVER)
        return -1;
    time_ns now = clock_now_ns();
    if (when <= now)
        return 0;
    time_ns ms = (when - now + 999999) / 1000000;
    return ms > 60000 ? 60000 : (int)ms;
}

static void wait_for_events(struct loop *l)
{
    int timeout = has_spare(l) ? 0 : wait_ms(l);
    if (timeout != 0 && (!mailbox_may_sleep(&l->mail) || !mailbox_may_sleep(&l->many)))
        timeout = 0;
    l->event_count = epoll_wait(l->epoll_fd, l->events, EVENTS_PER_TURN, timeout);
    mailbox_awake(&l->mail);
    mailbox_awake(&l->many);
    l->now = clock_now_ns();
}

static void run_events(struct loop *l)
{
    for (int i = 0; i < l->event_count; i++) {
        struct loop_fd *w = l->events[i].data.ptr;
        if (w)
            w->ready(w, l->events[i].events);
    }
    l->event_count = 0;
}

static void run_timers(struct loop *l)
{
    struct loop_timer *t;
    while ((t = timer_heap_pop_due(&l->timers, l->now)))
        t->due(t);
}

/* Runs the tasks of the phases. A later phase may add tasks to an earlier one (an answer lets
 * the next pipelined request start), so the phases are repeated. */
static void run_later(struct loop *l)
{
    for (int phase = 0; phase < LOOP_PHASE_SPARE;) {
        struct list *node = list_pop(&l->later[phase]);
        if (!node) {
            phase++;
            continue;
        }
        struct loop_task *t = LIST_ITEM(node, struct loop_task, node);
        t->run(t);
        if (!list_empty(&l->later[LOOP_PHASE_SUBMIT]))
            phase = LOOP_PHASE_SUBMIT;
    }
}

static void run_spare(struct loop *l)
{
    if (!has_spare(l))
        return;
    l->now = clock_now_ns();
    time_ns end = l->now + LOOP_LANE_TIME;
    int handled = 0;
    do {
        struct list *node = list_pop(&l->later[LOOP_PHASE_SPARE]);
        if (!node)
            break;
        struct loop_task *t = LIST_ITEM(node, struct loop_task, node);
        t->run(t);
        handled++;
    } while (handled < LOOP_LANE_EVENTS && clock_now_ns() < end);
    backlog_drop(&l->backlog, mailbox_deliver_until(&l->many, end));
    run_later(l);
}

/* Handles everything that was posted or added to phase SPARE. */
static void run_rest(struct loop *l)
{
    while (mailbox_deliver(&l->mail) || has_spare(l))
        run_spare(l);
}

static void run_lane(struct loop *l, struct loop_lane *lane)
{
    if (!lane->due)
        return;
    time_ns begun = l->now = clock_now_ns();
    bool any = loop_lane_turn(lane);
    run_later(l);
    loop_lane_rest(lane, begun, any);
}

void loop_run(struct loop *l)
{
    current = l;
    while (!atomic_load(&l->stop)) {
        wait_for_events(l);
        run_events(l);
        mailbox_deliver(&l->mail);
        run_timers(l);
        run_later(l);
        run_lane(l, &l->busy);
        run_spare(l);
        run_lane(l, &l->slow);
    }
    run_rest(l); /* the owners of this work may end before the loop is freed */
    atomic_store(&l->stop, false);
    current = NULL;
}

void loop_free(struct loop *l)
{
    if (!l)
        return;
    run_rest(l);
    backlog_fini(&l->backlog);
    timer_heap_fini(&l->timers);
    loop_lane_fini(&l->busy);
    loop_lane_fini(&l->slow);
    if (l->wake.fd >= 0)
        close(l->wake.fd);
    if (l->epoll_fd >= 0)
        close(l->epoll_fd);
    mem_free(l);
}
