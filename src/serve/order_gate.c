#include "serve/order_gate.h"

#include "base/check.h"

#include <stddef.h>

void order_gate_init(struct order_gate *g)
{
    *g = (struct order_gate){0};
    list_init(&g->tickets);
}

void order_gate_enter(struct order_gate *g, struct order_ticket *t)
{
    *t = (struct order_ticket){0};
    list_append(&g->tickets, &t->node);
}

static void order_gate_append(struct mail **first, struct mail **last, struct mail *from,
                              struct mail *to)
{
    if (*last)
        (*last)->next = from;
    else
        *first = from;
    *last = to;
}

/* Makes the responses of the first ticket ready for delivery. If they include its final
 * response, the next ticket becomes the first one, and so on. */
static void order_gate_advance(struct order_gate *g)
{
    while (!list_empty(&g->tickets)) {
        struct order_ticket *t = LIST_ITEM(g->tickets.next, struct order_ticket, node);
        if (t->first)
            order_gate_append(&g->first, &g->last, t->first, t->last);
        t->first = NULL;
        t->last = NULL;
        if (!t->final)
            return;
        list_remove(&t->node);
    }
}

bool order_gate_put(struct order_gate *g, struct order_ticket *t, struct mail *response, bool final)
{
    CHECK(!t->final);
    response->next = NULL;
    order_gate_append(&t->first, &t->last, response, response);
    t->final = final;
    if (g->tickets.next != &t->node)
        return false;
    order_gate_advance(g);
    if (g->delivering)
        return false;
    g->delivering = true;
    return true;
}

struct mail *order_gate_take(struct order_gate *g)
{
    struct mail *chain = g->first;
    g->first = NULL;
    g->last = NULL;
    if (!chain)
        g->delivering = false;
    return chain;
}

bool order_gate_empty(const struct order_gate *g)
{
    return list_empty(&g->tickets) && !g->first && !g->delivering;
}
