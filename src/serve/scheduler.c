#include "serve/scheduler.h"

#include "base/check.h"

void scheduler_put_around(struct scheduler *s, enum scheduler_wrap_slot slot,
                          struct scheduler_wrap *w)
{
    for (int outside = slot; outside < SCHEDULER_WRAPS; outside++)
        CHECK(!s->wraps[outside]);
    w->inner = s->ops;
    s->wraps[slot] = w;
}
