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

/* The submission that this thread is in. What its request is answered with meanwhile, on this
 * thread, is held back: an error means that it was refused, unless it had been cancelled before. */
struct submission {
    const struct draft_request *call;
    struct submission *outer;
    struct response *answer;
    bool released;
};

static _Thread_local struct submission *submitting;

static struct submission *submission_of(const struct draft_request *c)
{
    return submitting && submitting->call == c ? submitting : NULL;
}

static void deliver(const struct draft_request *c, struct response *r)
{
    if (!r->empty) {
        c->respond(response_handle(r), r->flags, c->respond_userp);
        return;
    }
    c->respond(NULL, r->flags, c->respond_userp);
    response_free(r);
}

static void give_draft_back(const struct draft_request *c)
{
    draft_returned(c->draft);
    c->release((TRITONSERVER_InferenceRequest *)c->draft, TRITONSERVER_REQUEST_RELEASE_ALL,
               c->release_userp);
}

static void abi_call_respond(struct response *r, void *owner)
{
    struct submission *s = submission_of(owner);
    if (s && r->error && err_code(r->error) != STATUS_CANCELLED && !s->answer)
        s->answer = r;
    else
        deliver(owner, r);
}

static void abi_call_released(struct request *r, void *owner)
{
    (void)r;
    struct submission *s = submission_of(owner);
    if (s)
        s->released = true;
    else
        give_draft_back(owner);
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

/* A request that is refused at once is answered before submit_now returns, even inside an Execute
 * that keeps its own answers. As in the reference, that is an error of the call, and the draft
 * stays the caller's; but not where a step of an ensemble was refused. */
static struct err *abi_call_submit(struct request *r, const struct draft_request *c)
{
    struct submission s = {.call = c, .outer = submitting};
    struct response_batch answers;
    struct err *e = NULL;
    request_ref(r); /* c lies in its arena */
    if (version_of(r)->model)
        submitting = &s;
    response_batch_begin(&answers);
    submit_now(r);
    response_batch_end(&answers);
    submitting = s.outer;
    if (s.answer && s.released) {
        e = err_copy(s.answer->error);
        response_free(s.answer);
        draft_returned(c->draft);
    } else {
        if (s.released)
            give_draft_back(c);
        if (s.answer)
            deliver(c, s.answer);
    }
    request_unref(r);
    return e;
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
    return abi_call_submit(r, c);
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
