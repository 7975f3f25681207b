#include "server/housekeeping.h"

#include "os/pages.h"
#include "os/pool.h"
#include "server/worker.h"

#include <malloc.h>

#define PERIOD_NS TIME_S(1)

/* A receive buffer that was filled goes back once a second passed without much being received. */
static void trim_receive(struct worker *w)
{
    if (w->receive_high > WORKER_RECEIVE_KEEP)
        w->receive_full = true;
    else if (w->receive_full) {
        pages_forget(w->receive + WORKER_RECEIVE_KEEP, w->receive_bytes - WORKER_RECEIVE_KEEP);
        w->receive_full = false;
    }
    w->receive_high = 0;
}

/* The pools of the process are the first worker's business. Once they have cooled down the heap gives back what a burst left. */
static void trim_pools(struct housekeeping *h, time_ns now)
{
    bool warm = pool_trim(now > PERIOD_NS ? now - PERIOD_NS : 0) > 0;
    if (h->warm && !warm)
        malloc_trim(0);
    h->warm = warm;
}

static void due(struct loop_timer *t)
{
    struct housekeeping *h = LIST_ITEM(t, struct housekeeping, timer);
    struct worker *w = h->worker;
    time_ns now = loop_now(w->loop);
    trim_receive(w);
    if (w->index == 0)
        trim_pools(h, now);
    loop_timer_set(w->loop, t, now + PERIOD_NS);
}

void housekeeping_start(struct worker *w)
{
    w->housekeeping = (struct housekeeping){.worker = w, .timer = LOOP_TIMER_INIT(due)};
    loop_timer_set(w->loop, &w->housekeeping.timer, loop_now(w->loop) + PERIOD_NS);
}
