#include "abi/call.h"

#include "abi/draft.h"
#include "infer/request.h"
#include "infer/response.h"
#include "infer/trace.h"
#include "os/clock.h"
#include "serve/submit.h"
#include "serve/table.h"
#include "serve/version.h"

#include <string.h>

/* What the answers need from a draft, because the draft belongs to its caller again once the
 * request is released. Lies in the request's arena. */
struct draft_request {
    struct draft *draft;
    TRITONSERVER_InferenceRequestReleaseFn_t release;
    void *release_userp;
    TRITONSERVER_InferenceResponseCompleteFn_t respond;
    void *respond_userp;
};

static void abi_call_respond(struct response *r, void *owner)
{
    const struct draft_request *c = owner;
    if (!r->empty) {
        c->respond(response_handle(r), r->flags, c->respond_userp);
        return;
    }
    c->respond(NULL, r->flags, c->respond_userp);
    response_free(r);
}

static void abi_call_released(struct request *r, void *owner)
{
    (void)r;
    const struct draft_request *c = owner;
    draft_returned(c->draft);
    c->release((TRITONSERVER_InferenceRequest *)c->draft, TRITONSERVER_REQUEST_RELEASE_ALL,
               c->release_userp);
}

static struct err *abi_call_find(struct serve_table *table, const struct draft *d,
                                 struct serve_version **ret)
{
    struct table_view view;
    table_view_open(&view, table, NULL);
    struct err *e = table_find(&view, d->model, strlen(d->model), d->version, ret);
    table_view_close(&view);
    return e;
}

static struct err *abi_call_check(struct draft *d)
{
    if (!d->respond || !d->allocator)
        return err_new(STATUS_INVALID_ARG,
                       "a request for model '%s' needs a response callback and allocator: "
                       "TRITONSERVER_InferenceRequestSetResponseCallback",
                       d->model);
    if (!d->release)
        return err_new(STATUS_INVALID_ARG,
                       "a request for model '%s' needs a release callback: "
                       "TRITONSERVER_InferenceRequestSetReleaseCallback",
                       d->model);
    if (draft_busy(d))
        return err_new(STATUS_INVALID_ARG,
                       "the server has this request for model '%s' already, it was not released",
                       d->model);
    return NULL;
}

static struct err *abi_call_make(struct serve_version *v, const struct draft *d,
                                 struct request **ret)
{
    struct request *r = request_new(&v->target, NULL, abi_call_respond, NULL);
    struct err *e = draft_fill(d, r);
    if (!e)
        e = request_prepare(r);
    if (e) {
        request_unref(r);
        return e;
    }
    r->allocator = d->allocator;
    r->allocator_userp = d->allocator_userp;
    *ret = r;
    return NULL;
}

struct err *call_start(struct serve_table *table, struct draft *d, struct trace *trace)
{
    time_ns start = clock_now_ns();
    struct serve_version *v = NULL;
    struct request *r = NULL;
    struct err *e = abi_call_check(d);
    if (!e)
        e = abi_call_find(table, d, &v);
    if (!e)
        e = abi_call_make(v, d, &r);
    if (e) {
        if (trace)
            trace_release(trace);
        return e;
    }
    struct draft_request *c = arena_alloc(&r->arena, sizeof(*c));
    *c = (struct draft_request){.draft = d,
                                .release = d->release,
                                .release_userp = d->release_userp,
                                .respond = d->respond,
                                .respond_userp = d->respond_userp};
    r->owner = c;
    r->released = abi_call_released;
    r->times.start = start;
    draft_sent(d, r);
    if (trace)
        trace_request(r, trace, v->name, v->number);
    /* A request that is refused at once is answered before this returns, even inside an Execute
     * that keeps its own answers. */
    struct response_batch answers;
    response_batch_begin(&answers);
    submit_now(r);
    response_batch_end(&answers);
    return NULL;
}

struct err *call_cancel(struct draft *d)
{
    struct request *r;
    struct err *e = draft_cancel(d, &r);
    if (e || !r)
        return e;
    /* The answer is delivered before this returns, even inside an Execute that keeps its own
     * answers. */
    struct response_batch answers;
    response_batch_begin(&answers);
    request_cancel(r);
    response_batch_end(&answers);
    request_unref(r);
    return NULL;
}
