#include "ensembles/ensemble_credit.h"

#include "base/check.h"
#include "infer/request.h"

void ensemble_credit_init(struct ensemble_credit *c)
{
    mutex_init(&c->lock, MUTEX_RANK_LEAF);
    c->under_way = 0;
    list_init(&c->parked);
    atomic_init(&c->waiting, 0);
}

void ensemble_credit_fini(struct ensemble_credit *c)
{
    CHECK(c->under_way == 0 && list_empty(&c->parked));
    mutex_fini(&c->lock);
}

bool ensemble_credit_take(struct ensemble_credit *c, uint32_t limit, struct ensemble_claim *claim)
{
    mutex_lock(&c->lock);
    claim->counted = c->under_way < limit;
    claim->parked = !claim->counted && !request_is_cancelled(claim->request);
    bool may = !claim->parked;
    if (claim->counted)
        c->under_way++;
    if (claim->parked) {
        claim->since = clock_now_ns();
        list_append(&c->parked, &claim->node);
        atomic_fetch_add_explicit(&c->waiting, 1, memory_order_relaxed);
    }
    mutex_unlock(&c->lock);
    return may;
}

/* Caller holds the lock. */
static void take_claim(struct ensemble_credit *c, struct ensemble_claim *claim)
{
    claim->parked = false;
    list_remove(&claim->node);
    atomic_fetch_sub_explicit(&c->waiting, 1, memory_order_relaxed);
}

bool ensemble_credit_remove(struct ensemble_credit *c, struct ensemble_claim *claim)
{
    mutex_lock(&c->lock);
    bool parked = claim->parked;
    if (parked)
        take_claim(c, claim);
    mutex_unlock(&c->lock);
    return parked;
}

struct request *ensemble_credit_give(struct ensemble_credit *c)
{
    struct ensemble_claim *next = NULL;
    mutex_lock(&c->lock);
    if (list_empty(&c->parked)) {
        c->under_way--;
    } else {
        next = LIST_ITEM(c->parked.next, struct ensemble_claim, node);
        take_claim(c, next);
        next->counted = true;
    }
    mutex_unlock(&c->lock);
    return next ? next->request : NULL;
}

time_ns ensemble_credit_oldest(struct ensemble_credit *c)
{
    mutex_lock(&c->lock);
    time_ns since = list_empty(&c->parked)
                        ? TIME_NEVER
                        : LIST_ITEM(c->parked.next, struct ensemble_claim, node)->since;
    mutex_unlock(&c->lock);
    return since;
}
