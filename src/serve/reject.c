#include "serve/reject.h"

#include "infer/response.h"
#include "serve/scheduler.h"
#include "serve/version.h"

void reject_request(struct request *r, enum stats_reason reason, struct err *e)
{
    if (!r->gap)
        stats_failure(version_of(r)->stats, reason, r->times.start, clock_now_ns());
    response_fail(r, e);
}

void reject_dropped(struct list *dropped)
{
    struct list *node;
    while ((node = list_pop(dropped))) {
        struct request *r = LIST_ITEM(node, struct request, queue_node);
        if (request_is_cancelled(r))
            reject_request(
                r, STATS_CANCELED,
                err_new(STATUS_CANCELLED, "request was cancelled before it was executed"));
        else
            reject_request(r, STATS_REJECTED, err_busy("%s", version_of(r)->scheduler->late));
    }
}
