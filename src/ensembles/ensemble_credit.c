#include "ensembles/ensemble_credit.h"

#include "base/check.h"
#include "infer/request.h"

void ensemble_credit_init(struct ensemble_credit *c)
{
    mutex_init(&c->lock, MUTEX_RANK_LEAF);
    c->under_way = 0;
    list_init(&c->parked);
}

void ensemble_credit_fini(struct ensemble_credit *c)
{
    CHECK(c->under_way == 0 && list_empty(&c->parked));
    mutex_fini(&c->lock);
}

bool ensemble_credit_take(struct ensemble_credit *c, uint32_t limit, struct request *r)
{
    mutex_lock(&c->lock);
    bool may = c->under_way < limit;
    if (may)
        c->under_way++;
    else
        list_append(&c->parked, &r->queue_node);
    mutex_unlock(&c->lock);
    return may;
}

struct request *ensemble_credit_give(struct ensemble_credit *c)
{
    mutex_lock(&c->lock);
    struct list *next = list_pop(&c->parked);
    if (!next)
        c->under_way--;
    mutex_unlock(&c->lock);
    return next ? LIST_ITEM(next, struct request, queue_node) : NULL;
}
