#include "os/ticker.h"

#include "base/fault.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

static void ticker_ready(struct loop_fd *w, uint32_t events)
{
    struct ticker *t = LIST_ITEM(w, struct ticker, watch);
    uint64_t count;
    (void)events;
    if (read(w->fd, &count, sizeof(count)) == sizeof(count))
        t->due(t);
}

struct err *ticker_open(struct ticker *t, struct loop *l, void (*due)(struct ticker *t))
{
    int fd = fault_hit() ? (errno = EMFILE, -1)
                         : timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    if (fd < 0)
        return err_errno(errno, "creating a timer");
    *t = (struct ticker){.watch = {.fd = fd, .ready = ticker_ready}, .loop = l, .due = due};
    struct err *e = loop_add(l, &t->watch, EPOLLIN);
    if (e) {
        close(fd);
        t->loop = NULL;
    }
    return e;
}

void ticker_set(struct ticker *t, time_ns when)
{
    struct itimerspec at = {
        .it_value = {.tv_sec = (time_t)(when / TIME_S(1)), .tv_nsec = (long)(when % TIME_S(1))}};
    timerfd_settime(t->watch.fd, TFD_TIMER_ABSTIME, &at, NULL);
}

void ticker_close(struct ticker *t)
{
    if (!t->loop)
        return;
    loop_del(t->loop, &t->watch);
    close(t->watch.fd);
    t->loop = NULL;
}
