#include "serve/submit.h"

#include "infer/request.h"
#include "infer/response.h"
#include "model/config.h"
#include "sched/batcher.h"
#include "serve/deadline.h"
#include "serve/ordering.h"
#include "serve/reject.h"
#include "serve/runner.h"
#include "serve/version.h"

/* Moves the requests for the first one's model from one list to another; returns their input bytes. */
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
        for (uint32_t i = 0; i < r->input_count; i++)
            bytes += r->inputs[i].byte_size;
    }
    return bytes;
}

/* Queues what the list holds; what does not fit stays in it. Caller holds the lock. */
static void push_all(struct serve_version *v, struct list *requests, time_ns now)
{
    struct list full;
    list_init(&full);
    struct list *node;
    while ((node = list_pop(requests))) {
        struct request *r = LIST_ITEM(node, struct request, queue_node);
        if (v->ordered)
            ordering_enter(v, r);
        if (batcher_push(v->batcher, now, r) == BATCHER_PUSH_FULL)
            list_append(&full, node);
    }
    list_splice(requests, &full);
}

static void reject_full(struct list *requests)
{
    struct list *node;
    while ((node = list_pop(requests)))
        reject_request(LIST_ITEM(node, struct request, queue_node), STATS_REJECTED,
                       err_new(STATUS_UNAVAILABLE, "Exceeds maximum queue size"));
}

/* Hands requests of one model over; on a loop they run right here where that is allowed. */
static void submit_model(struct serve_version *v, struct list *requests, bool may_inline)
{
    mutex_lock(&v->lock);
    time_ns now = clock_now_ns();
    struct runner *claimed =
        may_inline && v->inline_ok && batcher_depth(v->batcher) == 0 ? runner_claim(v) : NULL;
    push_all(v, requests, now);
    deadline_watch(v->deadline);
    if (claimed) {
        runner_run_inline(claimed);
    } else {
        runner_wake(v, now);
        mutex_unlock(&v->lock);
    }
    if (!list_empty(requests))
        reject_full(requests);
}

static void run(struct loop_task *t)
{
    struct submitter *s = LIST_ITEM(t, struct submitter, task);
    while (!list_empty(&s->gathered)) {
        struct list requests;
        list_init(&requests);
        struct serve_version *v =
            version_of(LIST_ITEM(s->gathered.next, struct request, queue_node));
        uint64_t bytes = cut_model(&s->gathered, &requests);
        /* The last answer may free the last pin of a version that is being unloaded. */
        version_pin(v);
        submit_model(v, &requests, bytes <= RUNNER_INLINE_BYTES);
        version_unpin(v);
    }
}

void submit_init(struct submitter *s, struct loop *loop)
{
    *s = (struct submitter){.loop = loop, .task.run = run};
    list_init(&s->task.node);
    list_init(&s->gathered);
}

void submit_later(struct submitter *s, struct request *r)
{
    list_append(&s->gathered, &r->queue_node);
    loop_later(s->loop, LOOP_PHASE_SUBMIT, &s->task);
}

void submit_now(struct request *r)
{
    struct serve_version *v = version_of(r);
    struct list one;
    list_init(&one);
    list_append(&one, &r->queue_node);
    version_pin(v);
    submit_model(v, &one, false);
    version_unpin(v);
}
