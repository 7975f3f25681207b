#pragma once
/* Delivers responses in the order in which requests arrived, for preserve_ordering: a response
 * is held until every request that arrived earlier has had its final response. This is a passive
 * struct; the caller holds its own lock around every function.
 *
 *     enter   when a request is accepted, even if it is rejected or times out later
 *     put     for each response. If put returns true, the caller must deliver:
 *                 while ((m = order_gate_take(g)) != NULL) { unlock; deliver the chain m; lock; }
 * Only one thread delivers at a time, so the order also holds outside the lock.
 *
 * source  spec/model_configuration.txt, "Preserve Ordering"; spec/model_config_proto.txt,
 *         preserve_ordering */
#include "base/list.h"
#include "os/mailbox.h"

#include <stdbool.h>

/* A request in the gate. It must live until its final response was taken, so the arena of the
 * request can hold it. */
struct order_ticket {
    struct list node;
    struct mail *first; /* responses held, oldest first */
    struct mail *last;
    bool final; /* the last held response is the final one */
};

struct order_gate {
    struct list tickets; /* in order of arrival */
    struct mail *first;  /* ready to be delivered */
    struct mail *last;
    bool delivering; /* a thread will call take until it returns NULL */
};

void order_gate_init(struct order_gate *g);

/* order_gate_enter - the request of t arrived now; t gets its place in the order. */
void order_gate_enter(struct order_gate *g, struct order_ticket *t);

/* order_gate_put - add a response of t's request. After the final response was taken, the gate
 * does not touch t again.
 * returns  true if the caller must deliver now, as described above */
bool order_gate_put(struct order_gate *g, struct order_ticket *t, struct mail *response,
                    bool final);

/* order_gate_take - the responses that may be delivered, as a chain linked by next. NULL = there
 * are none, and the caller stops delivering. */
struct mail *order_gate_take(struct order_gate *g);

/* order_gate_empty - true if no request is in the gate and no response waits for delivery. */
bool order_gate_empty(const struct order_gate *g);
