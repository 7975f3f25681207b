#pragma once
/* Delivery in order of arrival, for preserve_ordering: responses of a request are held until every
 * request that entered before it has had its final one. A passive struct; the caller holds a lock
 * of its own around every function.
 *
 *     enter   when a request is accepted (also one that will be rejected or time out later) put
 *     for each response; true makes this caller the one who delivers:
 *                 while ((m = order_gate_take(g)) != NULL) { unlock; deliver the chain m; lock; }
 * One thread delivers at a time, so that the order holds outside the lock too.
 *
 * source  spec/model_configuration.txt, "Preserve Ordering"; spec/model_config_proto.txt,
 *         preserve_ordering */
#include "base/list.h"
#include "os/mailbox.h"

#include <stdbool.h>

/* A request in the gate. Embedded in something that lives until its final response was taken
 * (its arena will do). */
struct order_ticket {
    struct list node;
    struct mail *first; /* responses held, oldest first */
    struct mail *last;
    bool final; /* the last of them is the final one */
};

struct order_gate {
    struct list tickets; /* in order of arrival */
    struct mail *first;  /* ready to be delivered */
    struct mail *last;
    bool delivering; /* somebody is between put and the take that returns NULL */
};

void order_gate_init(struct order_gate *g);

/* order_gate_enter - the request of t arrived now. */
void order_gate_enter(struct order_gate *g, struct order_ticket *t);

/* order_gate_put - one more response of t's request; after a final one t is not touched any more
 * once its mail was taken.
 * returns  whether the caller must deliver now, as above */
bool order_gate_put(struct order_gate *g, struct order_ticket *t, struct mail *response,
                    bool final);

/* order_gate_take - what may be delivered, a chain linked by next; NULL = nothing, and the
 * caller's turn is over. */
struct mail *order_gate_take(struct order_gate *g);

/* order_gate_empty - no request is in the gate and nothing is to be delivered. */
bool order_gate_empty(const struct order_gate *g);
