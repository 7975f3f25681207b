#include "grpc/api/grpc_infer.h"

#include "base/budget.h"
#include "base/log.h"
#include "base/mem.h"
#include "grpc/api/grpc_infer_request.h"
#include "grpc/api/grpc_infer_response.h"
#include "grpc/grpc_answer.h"
#include "grpc/grpc_conn.h"
#include "grpc/grpc_delay.h"
#include "grpc/grpc_method.h"
#include "infer/request.h"
#include "infer/response.h"
#include "metrics/front_metrics.h"
#include "metrics/recent.h"
#include "net/access.h"
#include "regions/regions_lend.h"
#include "serve/version.h"
#include "server/server.h"
#include "server/worker.h"
#include "tracing/tracing.h"

#include <string.h>

#define READ_BYTES       2048 /* memory for parsing an ordinary request */
#define MAX_VERSION_TEXT 64   /* the longest version text: any number of leading zeros is allowed */

/* A parsed message. */
struct reading {
    struct arena arena;
    struct infer_pb_request pb;
    _Alignas(16) char first[READ_BYTES];
};

/* Parses a message. If it is invalid, the call is ended and false is returned. */
static bool grpc_infer_read_message(struct grpc_stream *s, const uint8_t *data, size_t len,
                                    struct reading *ret)
{
    arena_init(&ret->arena, ret->first, sizeof(ret->first));
    switch (infer_pb_read(data, len, &ret->arena, &ret->pb)) {
    case INFER_PB_OK:
        return true;
    case INFER_PB_TOO_MANY:
        grpc_answer_end(s, GRPC_ANSWER_RESOURCE_EXHAUSTED,
                        "the request has more tensors, dimensions or parameters than allowed");
        break;
    case INFER_PB_MALFORMED:
    case INFER_PB_NOT_UTF8:
        grpc_answer_end(s, GRPC_ANSWER_INTERNAL, "Unable to parse request");
        break;
    }
    arena_fini(&ret->arena);
    return false;
}

/* Keeps what an inference is answered with for the live page. */
static void note_failure(const struct grpc_stream *s, uint32_t model, const struct err *e)
{
    recent_request(s->conn->home->worker->server->recent, model, err_message(e));
}

/* Answers a unary call with its response, which is taken over; NULL = there was none. */
static void answer_unary(struct grpc_stream *s, const struct grpc_call *call, struct response *r)
{
    struct h2_reply *reply;
    struct err *e = NULL;
    if (call->responses != 1)
        e = err_new(STATUS_INTERNAL, "expected a single response, got %u", call->responses);
    else if (r->error)
        e = err_copy(r->error);
    else
        e = grpc_infer_response(r, call->classes, &reply);
    if (e) {
        note_failure(s, s->model, e);
        response_free(r);
        grpc_answer_fail(s, e);
        return;
    }
    grpc_answer_send(s, reply);
    grpc_answer_end(s, GRPC_ANSWER_OK, NULL);
}

/* The final flag may come with the response or after it, so the answer waits for it. */
static void respond_unary(struct response *r, void *owner)
{
    struct grpc_call *call = owner;
    struct grpc_stream *s = call->stream;
    regions_lend_settle(r);
    bool final = r->flags & RESPONSE_FINAL;
    call->done = final;
    if (!r->empty)
        call->responses++;
    if (r->empty || call->held)
        response_free(r);
    else
        call->held = r;
    if (!final)
        return;
    if (call->trace) {
        tracing_mark(call->trace, "INFER_RESPONSE_COMPLETE", clock_now_ns());
        tracing_mark(call->trace, "GRPC_SEND_START", clock_now_ns());
    }
    r = call->held;
    call->held = NULL;
    if (s->conn && !s->ended)
        answer_unary(s, call, r);
    else
        response_free(r);
    grpc_stream_release(s, call);
}

/* Limits the length of a text that a client may have made long. */
static size_t bounded(size_t len, size_t most)
{
    return len < most ? len : most;
}

/* What was kept of the metadata. */
static struct tracing_header kept_header(const struct strbuf *kept, const char *name)
{
    for (size_t at = 0; at < kept->len;) {
        const char *key = kept->data + at;
        const char *value = key + strlen(key) + 1;
        if (strcmp(key, name) == 0)
            return (struct tracing_header){value, strlen(value)};
        at = (size_t)(value + strlen(value) + 1 - kept->data);
    }
    return (struct tracing_header){0};
}

/* Where something is traced: whether this is. Of a stream only the first request is waited for
 * since the call was opened. */
static void grpc_infer_trace(struct grpc_call *call, struct request *r)
{
    struct grpc_stream *s = call->stream;
    const struct serve_version *v = version_of(r);
    call->trace = tracing_begin(s->conn->home->worker->tracing, v->name,
                                kept_header(&s->context, "traceparent"),
                                kept_header(&s->context, "tracestate"));
    if (!call->trace)
        return;
    tracing_mark(call->trace, "GRPC_WAITREAD_START", s->begun ? s->begun : r->times.start);
    tracing_mark(call->trace, "GRPC_WAITREAD_END", r->times.start);
    s->begun = 0;
    tracing_follow(call->trace, r, v->name, v->number);
}

static struct err *grpc_infer_submit(struct grpc_call *call, const struct infer_pb_request *pb,
                                     struct buf **buf, request_respond_fn respond)
{
    struct worker *w = call->stream->conn->home->worker;
    struct grpc_infer_options options = {
        .forward = call->stream->conn->home->forward,
        .headers = &call->stream->headers,
        .account = call->stream->conn->account,
        .regions = w->server->regions,
        .one_response = respond == respond_unary,
    };
    struct request *r;
    struct err *e = grpc_stream_room(call->stream);
    if (e)
        return e;
    e = grpc_infer_request(&w->view, w->loop, pb, buf, respond, call, &options, &r);
    call->stream->model = options.model;
    access_about(call->stream->access, (const char *)pb->model_name.data, pb->model_name.len,
                 (const char *)pb->id.data, pb->id.len);
    call->decoupled = options.decoupled;
    call->empty_final = options.empty_final;
    call->classes = options.classes;
    if (e)
        return e;
    call->request = r;
    if (!options.one_response)
        request_bound(r);
    if (tracing_on(w->tracing))
        grpc_infer_trace(call, r);
    submit_later(&w->submitter, r);
    return NULL;
}

static void grpc_infer_log_failure(const struct infer_pb_request *pb, const struct err *e)
{
    char id[LOG_CONTEXT_BYTES];
    size_t len = bounded(pb->id.len, sizeof(id) - 1);
    if (len)
        memcpy(id, pb->id.data, len);
    id[len] = '\0';
    log_context(id, 1);
    LOG_VERBOSE(1, "Infer failed: %s", err_message(e));
    log_context("", 0);
}

void grpc_infer_unary(struct grpc_stream *s, const uint8_t *data, size_t len, struct buf **buf)
{
    struct reading in;
    if (s->conn->home->delays && grpc_delay_message(s, data, len, grpc_infer_unary))
        return;
    if (!grpc_infer_read_message(s, data, len, &in))
        return;
    struct grpc_call *call = &s->call;
    grpc_stream_hold(s, call);
    struct err *e = grpc_infer_submit(call, &in.pb, buf, respond_unary);
    arena_fini(&in.arena);
    if (e) {
        grpc_infer_log_failure(&in.pb, e);
        note_failure(s, s->model, e);
        grpc_stream_release(s, call);
        grpc_answer_fail(s, e);
    }
}

static void finish_call(struct grpc_stream *s, struct grpc_call *call)
{
    bool closed = !s->conn;
    if (call->reply)
        call->reply->free_fn(call->reply);
    if (call->trace) {
        tracing_mark(call->trace, "GRPC_SEND_END", clock_now_ns());
        tracing_end(call->trace);
    }
    grpc_stream_release(s, call);
    mem_free(call->version_text);
    mem_free(call);
    if (!closed)
        grpc_stream_end_if_over(s);
}

static void end_unread(struct grpc_stream *s)
{
    grpc_answer_end(s, GRPC_ANSWER_RESOURCE_EXHAUSTED,
                    "the client does not take the responses of its requests");
}

/* Ends a call whose client does not read its answers, so that it cannot make the server hold
 * answers without limit, or any answers when the budget is spent. A client that reads its
 * answers is not ended because of others. */
static void check_backlog(struct grpc_stream *s)
{
    if (s->reply_bytes > 4 * GRPC_STREAM_REPLY_BYTES ||
        (grpc_answer_lags(s) && !budget_account_room(s->conn->account, 0)))
        end_unread(s);
}

/* Sends answers in the order of their requests, for models that answer once. The answers of a
 * closed stream are dropped, also those that waited for their turn. */
static void send_in_order(struct grpc_stream *s)
{
    struct list *next = s->calls.next;
    for (bool last = next == &s->calls; !last;) {
        struct grpc_call *call = LIST_ITEM(next, struct grpc_call, node);
        next = next->next;
        last = next == &s->calls;
        if (call->decoupled)
            continue;
        if (!call->done)
            return;
        struct h2_reply *reply = s->conn ? call->reply : NULL;
        if (reply) {
            call->reply = NULL;
            grpc_answer_send(s, reply);
            check_backlog(s);
        }
        finish_call(s, call); /* the last call of a closed stream frees the stream */
    }
}

/* Counts a failed request of a stream. Its call goes on, and is counted when it ends. */
static void count_failed(const struct grpc_stream *s, uint32_t model, const struct err *e)
{
    front_metrics_failed(s->conn->home->metrics,
                         grpc_method_route(s->conn->home->service, s->method), model,
                         status_grpc(err_code(e)));
    note_failure(s, model, e);
}

/* Makes the message with an error. If there is no room even for that, the call is ended and NULL
 * is returned. */
static struct h2_reply *error_reply(struct grpc_stream *s, const struct err *e,
                                    struct infer_pb_slice id)
{
    bool lags = grpc_answer_any_lags(s->conn);
    struct h2_reply *reply = grpc_infer_response_error(e, id, s->conn->account, !lags);
    if (!reply)
        grpc_answer_end(s, GRPC_ANSWER_UNAVAILABLE, "no room to tell of an error");
    return reply;
}

/* Makes the message for a streamed response, which is taken over. If that fails, the call is
 * ended and NULL is returned. */
static struct h2_reply *streamed_reply(struct grpc_stream *s, struct grpc_call *call,
                                       struct response *r)
{
    struct h2_reply *reply = NULL;
    uint32_t model = version_of(r->request)->front_model;
    if (r->empty && !call->decoupled)
        r->error = err_new(STATUS_INTERNAL, "expected a single response, got 0");
    if (r->error)
        count_failed(s, model, r->error);
    if (r->error && s->grpc_errors) {
        grpc_answer_fail(s, err_copy(r->error));
        response_free(r);
        return NULL;
    }
    struct err *e = grpc_infer_response_streamed(r, call->classes, call->version_text, &reply);
    if (!e)
        return reply;
    if (!r->error)
        count_failed(s, model, e);
    struct infer_pb_slice id = {r->request->id, strlen(r->request->id)};
    reply = error_reply(s, e, id);
    err_free(e);
    response_free(r);
    return reply;
}

/* Of responses without content the client is told where it asked for them, and where it would
 * wait for an answer for ever. */
static bool is_told_of(const struct grpc_call *call, const struct response *r)
{
    if (!r->empty)
        return true;
    return call->decoupled ? call->empty_final : r->flags & RESPONSE_FINAL && !call->reply;
}

static void respond_streamed(struct response *r, void *owner)
{
    struct grpc_call *call = owner;
    struct grpc_stream *s = call->stream;
    regions_lend_settle(r);
    bool final = r->flags & RESPONSE_FINAL;
    bool wanted = s->conn && !s->ended && is_told_of(call, r);
    if (request_is_overrun(r->request) && s->conn && !s->ended) {
        end_unread(s);
        wanted = false;
    }
    call->done = final;
    if (call->trace && final) {
        tracing_mark(call->trace, "INFER_RESPONSE_COMPLETE", clock_now_ns());
        tracing_mark(call->trace, "GRPC_SEND_START", clock_now_ns());
    }
    struct h2_reply *reply = NULL;
    if (s->conn && s->conn->home->delays)
        grpc_delay_response(s, wanted && call->decoupled);
    if (wanted)
        reply = streamed_reply(s, call, r);
    else
        response_free(r);
    if (reply && call->decoupled) {
        grpc_answer_send(s, reply);
        check_backlog(s);
    } else if (reply && call->reply) {
        reply->free_fn(reply); /* a second response of a model that must answer once */
    } else if (reply) {
        call->reply = reply;
    }
    if (final && call->decoupled)
        finish_call(s, call);
    else if (final)
        send_in_order(s);
}

/* Answers a request that could not be submitted; the answer waits for its turn too. */
static void grpc_infer_answer_error(struct grpc_stream *s, struct grpc_call *call, struct err *e,
                                    struct infer_pb_slice id)
{
    count_failed(s, s->model, e);
    call->done = true;
    call->reply = error_reply(s, e, id);
    err_free(e);
    if (!call->decoupled) {
        send_in_order(s);
        return;
    }
    if (call->reply) {
        grpc_answer_send(s, call->reply);
        call->reply = NULL;
        check_backlog(s);
    }
    finish_call(s, call);
}

void grpc_infer_streamed(struct grpc_stream *s, const uint8_t *data, size_t len, struct buf **buf)
{
    struct reading in;
    if (!grpc_infer_read_message(s, data, len, &in))
        return;
    struct grpc_call *call = MEM_NEW(struct grpc_call);
    grpc_stream_hold(s, call);
    struct err *e = grpc_infer_submit(call, &in.pb, buf, respond_streamed);
    if (!e && in.pb.model_version.len)
        call->version_text = mem_strndup(in.pb.model_version.data,
                                         bounded(in.pb.model_version.len, MAX_VERSION_TEXT));
    if (e) {
        grpc_infer_log_failure(&in.pb, e);
        grpc_infer_answer_error(s, call, e, in.pb.id);
    }
    arena_fini(&in.arena);
}
