#pragma once
/* What waits in front of a version, whichever scheduler it has: the batcher (sched/batcher.h), or the sequencer of a stateful model
 * (sched/sequencer.h). Each function is theirs of that name; the caller holds version->lock. */
#include "sched/batcher.h"
#include "sched/sequencer.h"
#include "serve/sequences.h"
#include "serve/version.h"

static inline size_t queue_depth(const struct serve_version *v)
{
    return v->sequences ? sequencer_depth(v->sequences->queue) : batcher_depth(v->batcher);
}

static inline time_ns queue_oldest(const struct serve_version *v)
{
    return v->sequences ? sequencer_oldest(v->sequences->queue) : batcher_oldest(v->batcher);
}

static inline size_t queue_expire(struct serve_version *v, time_ns now, struct list *ret_list)
{
    return v->sequences ? sequencer_expire(v->sequences->queue, now, ret_list)
                        : batcher_expire(v->batcher, now, ret_list);
}

static inline bool queue_has_dropped(const struct serve_version *v)
{
    return v->sequences ? sequencer_has_dropped(v->sequences->queue)
                        : batcher_has_dropped(v->batcher);
}

static inline time_ns queue_next_deadline(const struct serve_version *v)
{
    return v->sequences ? sequencer_next_deadline(v->sequences->queue)
                        : batcher_next_deadline(v->batcher);
}

static inline bool queue_remove(struct serve_version *v, struct request *r)
{
    return v->sequences ? sequencer_remove(v->sequences->queue, r) : batcher_remove(v->batcher, r);
}

static inline size_t queue_drain(struct serve_version *v, struct list *ret_list)
{
    return v->sequences ? sequencer_drain(v->sequences->queue, ret_list)
                        : batcher_drain(v->batcher, ret_list);
}
