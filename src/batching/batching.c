#include "batching/batching.h"

#include "base/mem.h"
#include "infer/request.h"
#include "model/config.h"
#include "plugin/batch_strategy.h"
#include "plugin/model.h"
#include "proto/model_config.pb-c.h"
#include "batching/batcher.h"
#include "batching/batcher_setup.h"
#include "serve/ordering.h"
#include "serve/runner.h"
#include "serve/version.h"

struct batching {
    struct scheduler base;
    struct batcher *queue;           /* owned */
    struct batch_strategy *strategy; /* the model's; NULL = it has none */
};

static struct batcher *batching_queue(const struct scheduler *s)
{
    return ((const struct batching *)s)->queue;
}

static bool batching_push(struct scheduler *s, struct request *r, time_ns now)
{
    return batcher_push(batching_queue(s), now, r) == BATCHER_PUSH_OK;
}

static struct err *batching_refusal(const struct scheduler *s, const struct request *r,
                                    enum stats_reason *ret_reason)
{
    (void)s;
    *ret_reason = STATS_REJECTED;
    struct err *e = err_recode(request_error(r, "Exceeds maximum queue size"), STATUS_UNAVAILABLE);
    return err_retry_after(e, ERR_RETRY_SOON);
}

static size_t batching_take(struct scheduler *s, struct runner *r, time_ns now, time_ns *ret_wake)
{
    return batcher_take(batching_queue(s), now, r->batch, r->room, ret_wake);
}

static bool batching_ready(struct scheduler *s, struct runner *r, time_ns now, time_ns *ret_wake)
{
    (void)r;
    return batcher_ready(batching_queue(s), now, ret_wake);
}

static void batching_wake(struct scheduler *s, time_ns now)
{
    runner_wake_any(s->version, now);
}

static size_t batching_expire(struct scheduler *s, time_ns now, struct list *ret_list)
{
    return batcher_expire(batching_queue(s), now, ret_list);
}

static bool batching_has_dropped(const struct scheduler *s)
{
    return batcher_has_dropped(batching_queue(s));
}

static time_ns batching_next_deadline(const struct scheduler *s)
{
    return batcher_next_deadline(batching_queue(s));
}

static bool batching_remove(struct scheduler *s, struct request *r)
{
    return batcher_remove(batching_queue(s), r);
}

static size_t batching_drain(struct scheduler *s, struct list *ret_list)
{
    return batcher_drain(batching_queue(s), ret_list);
}

static size_t batching_depth(const struct scheduler *s)
{
    return batcher_depth(batching_queue(s));
}

static time_ns batching_oldest(const struct scheduler *s)
{
    return batcher_oldest(batching_queue(s));
}

static time_ns batching_first(const struct scheduler *s)
{
    return batcher_first(batching_queue(s));
}

static void batching_report(struct scheduler *s)
{
    batch_strategy_report(((struct batching *)s)->strategy);
}

static void batching_free(struct scheduler *s)
{
    batcher_free(batching_queue(s));
    mem_free(s);
}

static const struct scheduler_ops batching_ops = {
    .push = batching_push,
    .refusal = batching_refusal,
    .take = batching_take,
    .ready = batching_ready,
    .turn = runner_turn,
    .pick = runner_pick,
    .wake = batching_wake,
    .expire = batching_expire,
    .has_dropped = batching_has_dropped,
    .next_deadline = batching_next_deadline,
    .remove = batching_remove,
    .drain = batching_drain,
    .depth = batching_depth,
    .oldest = batching_oldest,
    .first = batching_first,
    .free = batching_free,
};

static struct err *batching_make(struct serve_version *v, struct scheduler **ret)
{
    if (v->config->scheduler != CONFIG_SCHEDULER_DEFAULT &&
        v->config->scheduler != CONFIG_SCHEDULER_DYNAMIC)
        return NULL;
    const Inference__ModelDynamicBatching *dynamic =
        v->config->scheduler == CONFIG_SCHEDULER_DYNAMIC ? v->config->proto->dynamic_batching
                                                         : NULL;
    struct batch_strategy *strategy = v->model ? v->model->strategy : NULL;
    struct batcher *queue;
    struct err *e = batcher_setup_new(v->config, strategy, &queue);
    if (e)
        return e;
    struct batching *b = MEM_NEW(struct batching);
    b->base = (struct scheduler){.ops = batching_ops,
                                 .version = v,
                                 .room = batcher_slots(queue),
                                 /* The functions of a backend's own strategy might wait for what
                                  * its Execute holds. */
                                 .takes_ahead = !strategy,
                                 /* On a loop, a batch that waits for more requests would block
                                  * the loop. */
                                 .may_inline = !dynamic || !dynamic->max_queue_delay_microseconds,
                                 .late = "Request timeout expired"};
    if (strategy)
        b->base.ops.report = batching_report;
    b->queue = queue;
    b->strategy = strategy;
    if (dynamic && dynamic->preserve_ordering)
        ordering_wrap(&b->base, ORDERING_BY_PUSH);
    *ret = &b->base;
    return NULL;
}

const struct feature batching_feature = {.make = batching_make};
