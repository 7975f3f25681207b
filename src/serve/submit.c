#include "serve/submit.h"

#include "infer/request.h"
#include "infer/response.h"
#include "model/config.h"
#include "serve/deadline.h"
#include "serve/reject.h"
#include "serve/runner.h"
#include "serve/scheduler.h"
#include "serve/version.h"

/* The list in which this thread gathers steps of ensembles; NULL = steps are submitted at once. */
static _Thread_local struct list *steps;

/* The view of the loop that is submitting on this thread. */
static _Thread_local struct table_view *view_here;

/* Moves the requests for the same model as the first one to another list. Returns their input
 * bytes. */
static uint64_t cut_model(struct list *from, struct list *to)
{
    struct request_target *target = LIST_ITEM(from->next, struct request, queue_node)->target;
    uint64_t bytes = 0;
    LIST_EACH (node, from) {
        struct request *r = LIST_ITEM(node, struct request, queue_node);
        if (r->target != target)
            continue;
        list_remove(node);
        list_append(to, node);
        bytes += request_input_bytes(r);
    }
    return bytes;
}

/* Queues the requests of the list; those that the queue refuses stay in it. Caller holds the
 * lock. */
static void push_all(struct scheduler *s, struct list *requests, time_ns now)
{
    struct list full;
    list_init(&full);
    struct list *node;
    while ((node = list_pop(requests))) {
        if (!s->ops.push(s, LIST_ITEM(node, struct request, queue_node), now))
            list_append(&full, node);
    }
    list_splice(requests, &full);
}

/* Answers the requests that the queue refused. */
static void reject_rest(const struct scheduler *s, struct list *requests)
{
    struct list *node;
    while ((node = list_pop(requests))) {
        struct request *r = LIST_ITEM(node, struct request, queue_node);
        enum stats_reason reason;
        struct err *e = s->ops.refusal(s, r, &reason);
        reject_request(r, reason, e);
    }
}

/* Queues requests of one model, or runs them on this thread if that is allowed. */
static void queue_model(struct serve_version *v, struct list *requests, bool may_inline)
{
    struct scheduler *s = v->scheduler;
    struct list dropped; /* requests that the queue gave up meanwhile */
    list_init(&dropped);
    mutex_lock(&v->lock);
    time_ns now = clock_now_ns();
    struct runner *claimed =
        may_inline && v->inline_ok && s->ops.depth(s) == 0 ? runner_claim(v) : NULL;
    push_all(s, requests, now);
    deadline_watch(v->deadline);
    if (claimed) {
        runner_run_inline(claimed, now);
    } else {
        runner_wake(v, now);
        if (s->ops.has_dropped(s))
            s->ops.expire(s, now, &dropped);
        mutex_unlock(&v->lock);
        reject_dropped(&dropped);
    }
    if (!list_empty(requests))
        reject_rest(s, requests);
    if (s->ops.report)
        s->ops.report(s);
}

/* Submits requests of one model. may_inline: this is a loop, and the inputs are small. */
static void submit_model(struct serve_version *v, struct list *requests, bool may_inline)
{
    struct scheduler *s = v->scheduler;
    if (s->ops.accept)
        s->ops.accept(s, requests, may_inline);
    if (!list_empty(requests))
        queue_model(v, requests, may_inline);
}

/* Submits the gathered requests, and the steps that they add to the list. */
static void submit_gathered(struct list *gathered)
{
    while (!list_empty(gathered)) {
        struct list requests;
        list_init(&requests);
        struct serve_version *v = version_of(LIST_ITEM(gathered->next, struct request, queue_node));
        uint64_t bytes = cut_model(gathered, &requests);
        /* The last answer may release the last pin of a version that is being unloaded. */
        version_pin(v);
        submit_model(v, &requests, bytes <= RUNNER_INLINE_BYTES);
        version_unpin(v);
    }
}

static void submit_run(struct loop_task *t)
{
    struct submitter *s = LIST_ITEM(t, struct submitter, task);
    struct response_batch ends; /* answers of ensembles */
    response_batch_begin(&ends);
    steps = &s->gathered;
    view_here = s->view;
    submit_gathered(&s->gathered);
    steps = NULL;
    view_here = NULL;
    response_batch_end(&ends);
}

void submit_init(struct submitter *s, struct loop *loop)
{
    *s = (struct submitter){.loop = loop, .task.run = submit_run};
    list_init(&s->task.node);
    list_init(&s->gathered);
}

void submit_later(struct submitter *s, struct request *r)
{
    list_append(&s->gathered, &r->queue_node);
    loop_later(s->loop, LOOP_PHASE_SUBMIT, &s->task);
}

void submit_accepted(struct serve_version *v, struct list *requests)
{
    queue_model(v, requests, false);
}

void submit_now(struct request *r)
{
    struct serve_version *v = version_of(r);
    struct list one;
    list_init(&one);
    list_append(&one, &r->queue_node);
    struct list *outer = steps;
    /* the caller may wait for the answer before it submits what this thread has gathered */
    steps = NULL;
    version_pin(v);
    submit_model(v, &one, false);
    version_unpin(v);
    steps = outer;
}

void submit_step(struct request *r)
{
    if (steps)
        list_append(steps, &r->queue_node);
    else
        submit_now(r);
}

struct table_view *submit_view(void)
{
    return view_here;
}

void submit_turn_begin(struct submit_turn *t)
{
    response_batch_begin(&t->ends);
    response_batch_begin(&t->answers);
}

void submit_turn_end(struct submit_turn *t)
{
    /* A loop may end a batch while it submits: then its steps join those that it has gathered. */
    struct list gathered, *outer = steps;
    list_init(&gathered);
    steps = outer ? outer : &gathered;
    response_batch_end(&t->answers);
    submit_gathered(&gathered);
    steps = outer;
    response_batch_end(&t->ends);
}
