#pragma once
/* Submits requests to their models. A loop gathers the requests of one turn and submits them at
 * its end, once per model. A model that may run inline then runs on the loop itself. */
#include "base/list.h"
#include "os/loop.h"

#include "infer/response.h"

#include <stdbool.h>

struct request;
struct table_view;
struct serve_version;

/* The requests that a loop has gathered. Embedded; used by the loop's thread only. */
struct submitter {
    struct loop *loop;
    struct loop_task task;
    struct list gathered;    /* linked by request.queue_node */
    struct table_view *view; /* the loop's; NULL = it has none */
};

void submit_init(struct submitter *s, struct loop *loop);

/* submit_later - submit r at the end of this turn. r is prepared, and the scheduler owns it from
 * here on. r is always answered through its respond callback (also "queue full"), never from
 * inside this call. */
void submit_later(struct submitter *s, struct request *r);

/* submit_now - submit r at once, for callers without a loop (C API); it never runs inline. */
void submit_now(struct request *r);

/* submit_step - submit a step of an ensemble. If this thread is gathering steps, r is submitted
 * with them after the thread has delivered its answers, and may run inline. Otherwise r is
 * submitted at once and does not run inline. */
void submit_step(struct request *r);

/* submit_view - the view of the loop that is submitting on this thread; NULL if none is. */
struct table_view *submit_view(void);

/* The answers of one turn of a runner's thread. They are delivered together, followed by the
 * answers of the ensembles that they complete. */
struct submit_turn {
    struct response_batch answers;
    struct response_batch ends;
};

/* submit_turn_begin, submit_turn_end - as response_batch_begin and response_batch_end. The end
 * also submits the steps of ensembles that the answers lead to. */
void submit_turn_begin(struct submit_turn *t);
void submit_turn_end(struct submit_turn *t);

/* submit_accepted - queue requests that the scheduler's `accept` had kept. The caller holds a
 * pin on v. */
void submit_accepted(struct serve_version *v, struct list *requests);
