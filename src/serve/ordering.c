#include "serve/ordering.h"

#include "infer/response.h"
#include "serve/version.h"

/* A response was sent: it waits, or this thread delivers it and whatever waited for it. */
static void hold(struct response *r)
{
    struct serve_version *v = version_of(r->request);
    bool final = r->flags & RESPONSE_FINAL;
    version_pin(v); /* delivering gives the pins of the requests back */
    mutex_lock(&v->gate_lock);
    if (order_gate_put(&v->gate, r->request->ticket, &r->mail, final)) {
        struct mail *ready;
        while ((ready = order_gate_take(&v->gate))) {
            mutex_unlock(&v->gate_lock);
            response_deliver(ready);
            mutex_lock(&v->gate_lock);
        }
    }
    mutex_unlock(&v->gate_lock);
    version_unpin(v);
}

void ordering_enter(struct serve_version *v, struct request *r)
{
    r->ticket = arena_zalloc(&r->arena, sizeof(*r->ticket));
    r->hold = hold;
    mutex_lock(&v->gate_lock);
    order_gate_enter(&v->gate, r->ticket);
    mutex_unlock(&v->gate_lock);
}
