#include "serve/ordering.h"

#include "base/mem.h"
#include "infer/response.h"
#include "serve/order_gate.h"
#include "serve/runner.h"
#include "serve/version.h"

struct ordering {
    struct scheduler_wrap base;
    struct mutex lock; /* rank LEAF; guards gate */
    struct order_gate gate;
};

static struct ordering *ordering_of(const struct scheduler *s)
{
    return (struct ordering *)s->wraps[SCHEDULER_ORDERING];
}

/* A response was sent. The gate holds it, or this thread delivers it and the responses that
 * waited for it. */
static void ordering_hold(struct response *r)
{
    struct serve_version *v = version_of(r->request);
    struct ordering *o = ordering_of(v->scheduler);
    bool final = r->flags & RESPONSE_FINAL;
    version_pin(v); /* delivery releases the requests' pins, so v needs one more */
    mutex_lock(&o->lock);
    if (order_gate_put(&o->gate, r->request->slots[REQUEST_SLOT_ORDER], &r->mail, final)) {
        struct mail *ready;
        while ((ready = order_gate_take(&o->gate))) {
            mutex_unlock(&o->lock);
            response_deliver(ready);
            mutex_lock(&o->lock);
        }
    }
    mutex_unlock(&o->lock);
    version_unpin(v);
}

static void ordering_arrive(struct scheduler *s, struct request *r)
{
    struct ordering *o = ordering_of(s);
    if (r->slots[REQUEST_SLOT_ORDER])
        return;
    struct order_ticket *ticket = arena_zalloc(&r->arena, sizeof(*ticket));
    r->slots[REQUEST_SLOT_ORDER] = ticket;
    r->hold = ordering_hold;
    mutex_lock(&o->lock);
    order_gate_enter(&o->gate, ticket);
    mutex_unlock(&o->lock);
}

static bool ordering_push(struct scheduler *s, struct request *r, time_ns now)
{
    ordering_arrive(s, r);
    return ordering_of(s)->base.inner.push(s, r, now);
}

static size_t ordering_take(struct scheduler *s, struct runner *r, time_ns now, time_ns *ret_wake)
{
    size_t n = ordering_of(s)->base.inner.take(s, r, now, ret_wake);
    for (size_t i = 0; i < n; i++)
        if (!r->batch[i]->gap)
            ordering_arrive(s, r->batch[i]);
    return n;
}

static void ordering_free(struct scheduler *s)
{
    struct ordering *o = ordering_of(s);
    void (*inner)(struct scheduler *) = o->base.inner.free;
    mutex_fini(&o->lock);
    mem_free(o);
    inner(s);
}

void ordering_wrap(struct scheduler *s, enum ordering_place place)
{
    struct ordering *o = MEM_NEW(struct ordering);
    mutex_init(&o->lock, MUTEX_RANK_LEAF);
    order_gate_init(&o->gate);
    scheduler_put_around(s, SCHEDULER_ORDERING, &o->base);
    s->ops.arrive = ordering_arrive;
    if (place == ORDERING_BY_PUSH)
        s->ops.push = ordering_push;
    else
        s->ops.take = ordering_take;
    s->ops.free = ordering_free;
}
