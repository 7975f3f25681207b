#pragma once
/* Handing requests to their models. A loop gathers what arrives in one turn and submits once per
 * model at the end of it; a model that may run inline then runs on the loop itself. */
#include "base/list.h"
#include "os/loop.h"

#include "infer/response.h"

#include <stdbool.h>

struct request;
struct table_view;
struct serve_version;

/* A loop's gathered requests. Embedded; used by its loop's thread only. */
struct submitter {
    struct loop *loop;
    struct loop_task task;
    struct list gathered;    /* by request.queue_node */
    struct table_view *view; /* the loop's; NULL = it has none */
};

void submit_init(struct submitter *s, struct loop *loop);

/* submit_later - submit at the end of this turn; the request was prepared, and is the
 * scheduler's from here on. Whatever happens, it is answered through its respond callback (also
 * "queue full"), never from inside this call. */
void submit_later(struct submitter *s, struct request *r);

/* submit_now - the same at once, for callers without a loop (C API): never inline. */
void submit_now(struct request *r);

/* submit_step - the same for a step of an ensemble that may run on this thread: gathered with
 * others and submitted when this thread has delivered what it has to deliver; where nothing is
 * being gathered, at once, never inline. */
void submit_step(struct request *r);

/* submit_view - the view of the loop that is submitting on this thread; NULL = none is. */
struct table_view *submit_view(void);

/* What a runner's thread answers in one turn: delivered together, with the answers of the
 * ensembles that this takes to their end. */
struct submit_turn {
    struct response_batch answers;
    struct response_batch ends;
};

/* submit_turn_begin, submit_turn_end - as response_batch_begin and _end; what the answers lead
 * to is submitted before the end returns. */
void submit_turn_begin(struct submit_turn *t);
void submit_turn_end(struct submit_turn *t);

/* submit_accepted - queue requests that the `accept` of their scheduler kept, which it lets go
 * on. The caller holds a pin on v. */
void submit_accepted(struct serve_version *v, struct list *requests);
