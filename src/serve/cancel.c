#include "serve/cancel.h"

#include "infer/request.h"
#include "os/clock.h"
#include "serve/reject.h"
#include "serve/runner.h"
#include "serve/scheduler.h"
#include "serve/version.h"

/* Takes the request out of the queue. `others` gets the requests that cannot run without it.
 * Returns false if the request is not queued. */
static bool cancel_take_out(struct serve_version *v, struct request *r, struct list *others)
{
    struct scheduler *s = v->scheduler;
    mutex_lock(&v->lock);
    time_ns now = clock_now_ns();
    bool waited = s->ops.remove(s, r);
    if (waited && s->ops.has_dropped(s))
        s->ops.expire(s, now, others);
    if (waited)
        /* Requests behind this one may run now: a sequence gets its slot, or the rest forms a
         * batch. */
        runner_wake(v, now);
    mutex_unlock(&v->lock);
    return waited;
}

void cancel_queued(struct request *r)
{
    struct serve_version *v = version_of(r);
    struct list others;
    list_init(&others);
    version_pin(v);
    if (cancel_take_out(v, r, &others)) {
        reject_request(r, STATS_CANCELED,
                       err_new(STATUS_CANCELLED, "request was cancelled before it was executed"));
        reject_dropped(&others);
    }
    version_unpin(v);
}
