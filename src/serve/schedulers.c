#include "base/check.h"
#include "serve/batching.h"
#include "serve/ensemble_run.h"
#include "serve/scheduler.h"
#include "serve/sequences.h"

/* One line a scheduler; the last one takes what no other wants. */
static scheduler_make_fn *const makers[] = {
    sequences_make,
    ensemble_run_make,
    batching_make,
};

void schedulers_put_around(struct scheduler *s, enum scheduler_wrap_slot slot,
                           struct scheduler_wrap *w)
{
    for (int outside = slot; outside < SCHEDULER_WRAPS; outside++)
        CHECK(!s->wraps[outside]);
    w->inner = s->ops;
    s->wraps[slot] = w;
}

struct err *schedulers_make(struct serve_version *v, struct scheduler **ret)
{
    struct err *e = NULL;
    *ret = NULL;
    for (size_t i = 0; !e && !*ret && i < sizeof(makers) / sizeof(makers[0]); i++)
        e = makers[i](v, ret);
    return e;
}
