#include "http/api/http_generate.h"

#include "base/check.h"
#include "http/api/http_generate_map.h"
#include "http/api/http_infer.h"
#include "http/http_event.h"
#include "http/http_exchange.h"
#include "http/http_flat.h"
#include "http/http_shard.h"
#include "infer/request.h"
#include "infer/response.h"
#include "net/forward.h"
#include "serve/version.h"
#include "tracing/tracing.h"

static const char not_one[] =
    "generate expects model to produce exactly 1 response, use generate stream for model that "
    "generates various number of responses";

static struct err *http_generate_fill(struct http_exchange *x, struct request *r,
                                      struct http_message *m)
{
    struct err *e = http_generate_map(x, r, m);
    if (!e && x->shard->front->forward)
        e = forward_add(x->shard->front->forward, m->head->headers, m->head->headers_len, r);
    return e ? e : request_prepare(r);
}

/* Everything that there will be is there: one response, which may be an error. */
static struct err *the_response(struct http_exchange *x)
{
    if (x->responses != 1)
        return err_new(STATUS_INTERNAL, "%s", not_one);
    return http_flat_prepare(x->response, &x->flat, &x->json_room);
}

/* The final response has come: the model has said all. */
static void http_generate_final(struct http_exchange *x)
{
    x->request = NULL; /* it may end with the response */
    if (x->trace)
        tracing_mark(x->trace, "INFER_RESPONSE_COMPLETE", clock_now_ns());
}

static void http_generate_complete(struct http_exchange *x)
{
    http_generate_final(x);
    if (!x->conn) {
        http_exchange_free(x);
        return;
    }
    struct err *e = the_response(x);
    if (e) {
        response_free(x->response);
        x->response = NULL;
        http_exchange_error(x, e);
        return;
    }
    x->status = 200;
    http_exchange_done(x);
}

static void http_generate_on_response(struct response *response, void *owner)
{
    struct http_exchange *x = owner;
    CHECK_MAGIC(x, HTTP_EXCHANGE_MAGIC);
    bool final = response->flags & RESPONSE_FINAL;
    if (!response->empty)
        x->responses++;
    if (x->response || response->empty)
        response_free(response);
    else
        x->response = response;
    if (final)
        http_generate_complete(x);
}

/* A request that never got to its model is answered as everywhere, without a stream. */
static void refuse_late(struct http_exchange *x, struct response *response)
{
    struct err *e = response->error;
    response->error = NULL;
    response_free(response);
    http_generate_final(x);
    x->part = HTTP_PART_WHOLE;
    http_exchange_error(x, e);
}

static void end_stream(struct http_exchange *x)
{
    if (x->conn)
        http_event_end(x);
    else
        http_exchange_free(x);
}

static void on_streamed(struct response *response, void *owner)
{
    struct http_exchange *x = owner;
    CHECK_MAGIC(x, HTTP_EXCHANGE_MAGIC);
    bool final = response->flags & RESPONSE_FINAL;
    if (x->conn && !x->begun && response->error && !response->request->with_backend) {
        refuse_late(x, response);
        return;
    }
    if (final)
        http_generate_final(x);
    if (x->conn && !x->given_up && request_is_overrun(response->request)) {
        http_event_give_up(x);
        response_free(response);
    } else if (x->conn && !response->empty && !x->given_up) {
        http_event_response(x, response);
    } else {
        response_free(response);
    }
    if (final)
        end_stream(x);
}

void http_generate_serve(struct http_exchange *x, struct http_message *m, bool streamed)
{
    struct serve_version *v;
    struct err *e = http_infer_find(x, m, true, &v);
    if (!e && m->head->content_coding != CODING_IDENTITY) {
        version_unpin(v);
        e = err_new(STATUS_INVALID_ARG,
                    "Unsupported content-encoding, only 'identity' is supported.");
    }
    if (e) {
        http_infer_refuse(x, m, "", e);
        return;
    }
    struct request *r =
        http_infer_request(x, v, streamed ? on_streamed : http_generate_on_response);
    e = http_generate_fill(x, r, m);
    if (!e && streamed) {
        request_bound(r);
        http_event_begin(x);
    }
    http_infer_submit(x, m, r, e);
}
