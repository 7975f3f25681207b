#pragma once
/* Handing requests to their models. A loop gathers what arrives in one turn and submits once per model at the end of it; a model
 * that may run inline then runs on the loop itself. */
#include "base/list.h"
#include "os/loop.h"

#include <stdbool.h>

struct request;

/* A loop's gathered requests. Embedded; used by its loop's thread only. */
struct submitter {
    struct loop *loop;
    struct loop_task task;
    struct list gathered; /* by request.queue_node */
};

void submit_init(struct submitter *s, struct loop *loop);

/* submit_later - submit at the end of this turn; the request was prepared, and is the scheduler's from here on. Whatever happens,
 * it is answered through its respond callback (also "queue full"), never from inside this call. */
void submit_later(struct submitter *s, struct request *r);

/* submit_now - the same at once, for callers without a loop (C API): never inline. */
void submit_now(struct request *r);
