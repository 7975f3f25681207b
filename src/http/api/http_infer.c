#include "http/api/http_infer.h"

#include "base/budget.h"
#include "base/check.h"
#include "base/log.h"
#include "codec/expand.h"
#include "http/api/http_infer_json.h"
#include "http/api/http_infer_raw.h"
#include "http/api/http_route.h"
#include "http/http_answer.h"
#include "http/http_conn.h"
#include "http/http_decode.h"
#include "http/http_encode.h"
#include "http/http_exchange.h"
#include "http/http_shard.h"
#include "infer/request.h"
#include "infer/response.h"
#include "model/config.h"
#include "net/access.h"
#include "net/forward.h"
#include "regions/regions_lend.h"
#include "serve/version.h"
#include "server/control/describe.h"
#include "tracing/tracing.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct err *http_infer_json_bytes(const struct http_service *service, const struct http1_head *head,
                                  uint64_t body_len, uint64_t *ret)
{
    const struct http1_value *v = &head->tensor_header;
    *ret = body_len;
    if (!v->given)
        return NULL;
    uint64_t n = 0;
    bool number = v->len > 0;
    for (uint8_t i = 0; i < v->len && number; i++) {
        number = v->text[i] >= '0' && v->text[i] <= '9';
        n = n < UINT64_MAX / 100 ? n * 10 + (uint64_t)(v->text[i] - '0') : UINT64_MAX;
    }
    bool negative = v->len > 1 && v->text[0] == '-' && v->text[1] >= '0' && v->text[1] <= '9';
    if (!number && !negative)
        return err_new(STATUS_INVALID_ARG, "Unable to parse %s, got: %s",
                       service->size_type ? "inference header size"
                                          : "Inference-Header-Content-Length",
                       v->text);
    if (negative || n > body_len)
        return err_new(STATUS_INVALID_ARG,
                       "inference header size should be in range (0, %" PRIu64 "), got: %s",
                       body_len, v->text);
    *ret = n;
    return NULL;
}

struct err *http_infer_too_large(uint64_t bytes, uint64_t max)
{
    return err_new(STATUS_INVALID_ARG,
                   "request JSON size of %" PRIu64
                   " bytes exceeds the maximum allowed input size of %" PRIu64
                   " bytes. Use --http-max-input-size to increase the limit.",
                   bytes, max);
}

static struct err *http_infer_fill(struct http_exchange *x, struct request *r,
                                   struct http_message *m)
{
    uint64_t json_len;
    struct err *e =
        http_infer_json_bytes(x->shard->front->service, m->head, m->body_len, &json_len);
    if (e)
        return e;
    e = json_len ? http_infer_json_fill(x, r, m, (size_t)json_len) : http_infer_raw_fill(x, r, m);
    if (!e && m->damage)
        e = http_decode_damage(m->damage);
    if (!e && x->shard->front->forward)
        e = forward_add(x->shard->front->forward, m->head->headers, m->head->headers_len, r);
    return e ? e : request_prepare(r);
}

/* The final response has come: completes the answer. */
static void http_infer_complete(struct http_exchange *x)
{
    x->request = NULL;
    if (x->trace)
        tracing_mark(x->trace, "INFER_RESPONSE_COMPLETE", clock_now_ns());
    if (!x->conn) {
        http_exchange_free(x);
        return;
    }
    struct err *e = x->response ? http_answer_prepare(x)
                                : err_new(STATUS_INTERNAL, "expected a single response, got 0");
    if (e) {
        http_exchange_error(x, e); /* the response is freed with the exchange */
        return;
    }
    x->status = 200;
    if (x->accept == CODING_IDENTITY)
        http_exchange_done(x);
    else
        http_encode(x);
}

static void on_response(struct response *response, void *owner)
{
    struct http_exchange *x = owner;
    CHECK_MAGIC(x, HTTP_EXCHANGE_MAGIC);
    regions_lend_settle(response);
    bool final = response->flags & RESPONSE_FINAL;
    if (!x->response && !response->empty)
        x->response = response;
    else if (!response->empty && x->response && !x->response->error) {
        x->response->error = err_new(STATUS_INTERNAL, "expected a single response, got 2");
        response_free(response);
    } else {
        response_free(response);
    }
    if (final)
        http_infer_complete(x);
}

static struct err *http_infer_check_room(const struct http_exchange *x)
{
    if (budget_account_room(x->conn->account, 0))
        return NULL;
    return budget_busy(0, "no room for more of this connection");
}

struct err *http_infer_find(struct http_exchange *x, const struct http_message *m, bool decoupled,
                            struct serve_version **ret)
{
    const struct http_route *route = m->route;
    int64_t number = -1;
    struct err *e = http_infer_check_room(x);
    if (!e)
        e = describe_parse_version(http_message_part(m, route->version), route->version.len,
                                   &number);
    if (!e)
        e = table_find(&x->shard->worker->view, http_message_part(m, route->model),
                       route->model.len, number, ret);
    if (e || decoupled || !(*ret)->config->decoupled)
        return e;
    version_unpin(*ret);
    return err_new(STATUS_UNSUPPORTED,
                   "HTTP end point doesn't support models with decoupled transaction policy");
}

/* Logs an error that the client gets too. */
static void say_failed(const char *id, const struct err *e)
{
    log_context(id, 1);
    LOG_VERBOSE(1, "Infer failed: %s", err_message(e));
    log_context("", 0);
}

/* Notes the model and the id for the access log. */
static void note(struct http_exchange *x, const struct http_message *m, const char *id)
{
    access_about(x->access, http_message_part(m, m->route->model), m->route->model.len, id,
                 strlen(id));
}

void http_infer_refuse(struct http_exchange *x, const struct http_message *m, const char *id,
                       struct err *e)
{
    note(x, m, id);
    say_failed(id, e);
    http_exchange_error(x, e);
}

struct request *http_infer_request(struct http_exchange *x, struct serve_version *v,
                                   request_respond_fn respond)
{
    struct loop *loop = x->shard->worker->loop;
    x->model = v->front_model;
    struct request *r = request_new(&v->target, loop, respond, x);
    request_account(r, x->conn->account);
    r->times.start = loop_now(loop);
    return r;
}

/* The first line of that name; the message may have several. */
static struct tracing_header trace_header_of(const struct http_message *m, const char *name)
{
    const char *text = http1_header(m->head, name, NULL);
    return (struct tracing_header){text, text ? strlen(text) : 0};
}

/* Where something is traced: whether this is. */
static void http_infer_trace(struct http_exchange *x, const struct http_message *m,
                             struct request *r)
{
    struct worker *w = x->shard->worker;
    struct tracing_header parent = {0}, state = {0};
    if (tracing_wants_context(w->tracing)) {
        parent = trace_header_of(m, "traceparent");
        state = trace_header_of(m, "tracestate");
    }
    const struct serve_version *v = version_of(r);
    x->trace = tracing_begin(w->tracing, v->name, parent, state);
    if (!x->trace)
        return;
    tracing_mark(x->trace, "HTTP_RECV_START", x->line->begun ? x->line->begun : r->times.start);
    tracing_mark(x->trace, "HTTP_RECV_END", r->times.start);
    tracing_follow(x->trace, r, v->name, v->number);
}

void http_infer_submit(struct http_exchange *x, const struct http_message *m, struct request *r,
                       struct err *e)
{
    if (e) {
        x->specs = NULL; /* they lie in the request */
        note(x, m, r->id);
        say_failed(r->id, e);
        request_release(r);
        http_exchange_error(x, e);
        return;
    }
    note(x, m, r->id);
    x->request = r;
    if (tracing_on(x->shard->worker->tracing))
        http_infer_trace(x, m, r);
    submit_later(&x->shard->worker->submitter, r);
}

void http_infer_serve(struct http_exchange *x, struct http_message *m)
{
    struct serve_version *v;
    struct err *e = http_infer_find(x, m, false, &v);
    if (e) {
        http_infer_refuse(x, m, "", e);
        return;
    }
    if (m->head->content_coding != CODING_IDENTITY) {
        version_unpin(v); /* it is looked up again with the decompressed body */
        http_decode(x, m);
        return;
    }
    x->accept = (uint8_t)m->head->accept_coding;
    struct request *r = http_infer_request(x, v, on_response);
    http_infer_submit(x, m, r, http_infer_fill(x, r, m));
}
