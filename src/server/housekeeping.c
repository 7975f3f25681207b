#include "server/housekeeping.h"

#include "os/pool.h"

#define PERIOD_NS TIME_S(1)

static void due(struct loop_timer *t)
{
    struct housekeeping *h = LIST_ITEM(t, struct housekeeping, timer);
    time_ns now = loop_now(h->loop);
    pool_trim(now > PERIOD_NS ? now - PERIOD_NS : 0);
    loop_timer_set(h->loop, t, now + PERIOD_NS);
}

void housekeeping_start(struct housekeeping *h, struct loop *loop)
{
    h->loop = loop;
    h->timer = (struct loop_timer)LOOP_TIMER_INIT(due);
    loop_timer_set(loop, &h->timer, loop_now(loop) + PERIOD_NS);
}
