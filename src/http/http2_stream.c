#include "http/http2_stream.h"

#include "base/budget.h"
#include "base/check.h"
#include "base/log.h"
#include "base/slab.h"
#include "http/http2_answer.h"
#include "http/http2_conn.h"
#include "http/http_exchange.h"
#include "http/http_gate.h"
#include "http/http_shard.h"
#include "net/access.h"
#include "net/turns.h"
#include "server/worker.h"

#include <string.h>

#define MAGIC 0x48325354u

static const struct slab slab = {.kind = SLAB_HTTP2_STREAM,
                                 .object_bytes = sizeof(struct http2_stream)};

static struct http2_stream *http2_stream_find(nghttp2_session *session, int32_t id)
{
    struct http2_stream *s = nghttp2_session_get_stream_user_data(session, id);
    if (s)
        CHECK_MAGIC(s, MAGIC);
    return s;
}

static struct http2_stream *http2_stream_new(struct http2_conn *h, int32_t id)
{
    struct http_conn *c = h->conn;
    struct http2_stream *s = slab_alloc(&slab);
    memset(s, 0, sizeof(*s));
    s->magic = MAGIC;
    s->id = id;
    s->h2 = h;
    s->last_reply = &s->replies;
    s->line.conn = c;
    s->line.stream = s;
    s->line.begun = s->arrived = loop_now(c->shard->worker->loop);
    list_init(&s->line.exchanges);
    list_init(&s->ready);
    list_init(&s->waiting);
    http2_head_init(&s->head, c->shard->front->collect);
    list_append(&h->streams, &s->node);
    h2_peer_stream(&h->peer, http_conn_account(c), HTTP2_STREAM_BYTES);
    /* As in gRPC: what opens a stream is no useless frame; a stream that brought nothing counts
     * when it ends. */
    turns_make_up(&c->turns, 2);
    return s;
}

static bool opens(const nghttp2_frame *frame)
{
    return frame->hd.type == NGHTTP2_HEADERS && frame->headers.cat == NGHTTP2_HCAT_REQUEST;
}

static int http2_stream_on_begin(nghttp2_session *session, const nghttp2_frame *frame, void *user)
{
    if (!opens(frame))
        return 0;
    struct http2_conn *h = user;
    if (h2_peer_full(&h->peer))
        return h2_peer_refuse(&h->peer, session, frame->hd.stream_id);
    struct http2_stream *s = http2_stream_new(h, frame->hd.stream_id);
    return nghttp2_session_set_stream_user_data(session, frame->hd.stream_id, s);
}

static int http2_stream_on_header(nghttp2_session *session, const nghttp2_frame *frame,
                                  const uint8_t *name, size_t name_len, const uint8_t *value,
                                  size_t len, uint8_t flags, void *user)
{
    (void)flags;
    struct http2_conn *h = user;
    struct http2_stream *s = http2_stream_find(session, frame->hd.stream_id);
    if (!s)
        return 0;
    if (opens(frame))
        http2_head_field(&s->head, (const char *)name, name_len, (const char *)value, len);
    else /* trailers, which are dropped */
        s->head.bytes += name_len + len;
    if (s->head.bytes > HTTP2_CONN_SURPLUS_BYTES)
        return h2_peer_expel(&h->peer, session, "too_much_metadata");
    return 0;
}

static void set_stage(struct http2_stream *s, enum http2_stage stage)
{
    s->h2->receiving += stage == HTTP2_STAGE_BODY;
    s->h2->receiving -= s->stage == HTTP2_STAGE_BODY;
    s->stage = stage;
}

/* Nobody needs the message any more; what still comes of it is dropped. */
static void drop_message(struct http2_stream *s)
{
    set_stage(s, HTTP2_STAGE_SERVED);
    http_body_end(&s->body);
    http2_head_fini(&s->head);
    budget_drop(s->line.conn->account, s->head_held);
    s->head_held = 0;
}

/* Answers with an error in place of what was asked for; freed. */
static void refuse_stream(struct http2_stream *s, struct err *e)
{
    struct http_exchange *x = http_gate_begin_refusal(&s->line, &s->head.head, &s->route);
    http_exchange_error(x, e);
    drop_message(s);
}

static void serve_stream(struct http2_stream *s)
{
    struct http_conn *c = s->line.conn;
    struct http_exchange *x = http_gate_begin(&s->line, &s->head.head);
    struct http_message m = {.head = &s->head.head,
                             .route = &s->route,
                             .body = http_body_text(&s->body),
                             .body_len = s->body.len,
                             .buf = s->body.buf};
    if (x->access)
        x->access->in_bytes = s->body.len;
    s->of_use = true;
    s->h2->pings = 0;
    h2_peer_of_use(&s->h2->peer);
    http_conn_of_use(c, &s->route);
    c->shard->front->service->serve(x, &m);
    drop_message(s);
}

/* The message is complete: serves it, now or in a turn that may tell about the server. */
static void http2_stream_deliver(struct http2_stream *s)
{
    const struct http_conn *c = s->line.conn;
    bool tells = http_conn_is_told(c, &s->route);
    if (tells && (!list_empty(&s->h2->put_off) || !http_conn_may_tell(c))) {
        set_stage(s, HTTP2_STAGE_WHOLE);
        list_append(&s->h2->put_off, &s->waiting);
        return;
    }
    serve_stream(s);
}

/* Lets a body come whose length is known, however long it is: its bytes are charged. */
static void open_window_for(struct http2_stream *s)
{
    nghttp2_session *session = s->h2->session;
    int64_t missing =
        (int64_t)s->body.left - nghttp2_session_get_stream_local_window_size(session, s->id);
    if (missing <= 0)
        return;
    /* The window of a longer one is opened further as it comes. */
    int32_t more = missing < INT32_MAX / 2 ? (int32_t)missing : INT32_MAX / 2;
    nghttp2_submit_window_update(session, NGHTTP2_FLAG_NONE, s->id, more);
}

static void promise(struct http2_stream *s)
{
    static const nghttp2_nv go_on = {.name = (uint8_t *)(uintptr_t) ":status",
                                     .namelen = 7,
                                     .value = (uint8_t *)(uintptr_t) "100",
                                     .valuelen = 3};
    nghttp2_submit_headers(s->h2->session, NGHTTP2_FLAG_NONE, s->id, NULL, &go_on, 1, NULL);
}

static void begin_stream_body(struct http2_stream *s)
{
    const struct http1_head *head = &s->head.head;
    struct err *e = http_body_begin(&s->body, http_conn_account(s->line.conn), head);
    if (e) {
        refuse_stream(s, e);
        return;
    }
    set_stage(s, HTTP2_STAGE_BODY);
    if (!head->chunked)
        open_window_for(s);
    if (head->expect_continue)
        promise(s);
}

/* A few bytes can stand for many of a head, so it is charged as long as it is kept. */
static struct err *charge_head(struct http2_stream *s)
{
    size_t bytes = s->head.url.len + s->head.all.len;
    if (!budget_take(s->line.conn->account, bytes))
        return budget_busy(0, "no room for the head of the request");
    s->head_held = bytes;
    return NULL;
}

/* The head is complete: refuses the request, serves it, or lets its body come. */
static void http2_stream_admit(struct http2_stream *s)
{
    struct http1_head *head = &s->head.head;
    bool fine = http2_head_end(&s->head, s->half_closed);
    struct err *e = charge_head(s);
    if (e) {
        refuse_stream(s, e);
    } else if (!fine) {
        struct http_exchange *x = http_gate_begin(&s->line, head);
        http_exchange_fault(x, s->head.error_status, s->head.error_reason);
        drop_message(s);
    } else if (http_gate(&s->line, head, &s->route, &s->body.max)) {
        drop_message(s);
    } else if (s->half_closed || !s->body.max) {
        http2_stream_deliver(s);
    } else {
        begin_stream_body(s);
    }
}

static void take_body(struct http2_stream *s, const char *data, size_t len)
{
    bool fits = true;
    if (s->head.head.chunked)
        http_body_piece(&s->body, data, len);
    else
        fits = http_body_take(&s->body, data, len) == len;
    if (!fits && !s->body.error) /* the session does not let that happen */
        s->body.error = err_new(STATUS_INVALID_ARG, "the body is longer than its Content-Length");
    struct err *e = s->body.error;
    s->body.error = NULL;
    if (e)
        refuse_stream(s, e);
}

static int http2_stream_on_data(nghttp2_session *session, uint8_t flags, int32_t id,
                                const uint8_t *data, size_t len, void *user)
{
    (void)flags;
    (void)user;
    nghttp2_session_consume_connection(session, len);
    struct http2_stream *s = http2_stream_find(session, id);
    if (!s)
        return 0;
    s->arrived = loop_now(s->line.conn->shard->worker->loop);
    if (s->stage == HTTP2_STAGE_BODY)
        take_body(s, (const char *)data, len);
    if (s->stage == HTTP2_STAGE_BODY) /* the window of what is dropped stays as it is */
        nghttp2_session_consume_stream(session, id, len);
    return 0;
}

void http2_stream_frame(struct http2_conn *h, const nghttp2_frame *frame)
{
    struct http2_stream *s = http2_stream_find(h->session, frame->hd.stream_id);
    if (!s)
        return;
    if (frame->hd.flags & NGHTTP2_FLAG_END_STREAM)
        s->half_closed = true;
    if (opens(frame))
        http2_stream_admit(s);
    else if (s->half_closed && s->stage == HTTP2_STAGE_BODY)
        http2_stream_deliver(s);
}

bool http2_stream_waits(const struct http2_conn *h)
{
    return !list_empty(&h->put_off) && h->conn->unread <= TURNS_UNREAD;
}

void http2_stream_turn(struct http2_conn *h)
{
    while (!list_empty(&h->put_off) && http_conn_may_tell(h->conn))
        serve_stream(LIST_ITEM(list_pop(&h->put_off), struct http2_stream, waiting));
}

void http2_stream_reset(struct http2_stream *s, uint32_t code)
{
    nghttp2_submit_rst_stream(s->h2->session, NGHTTP2_FLAG_NONE, s->id, code);
}

void http2_stream_give_up(struct http2_stream *s)
{
    LOG_VERBOSE(1, "HTTP/2: ending a request whose client does not take the answer");
    s->given_up = true;
    http_conn_orphan(&s->line);
    http2_answer_drop(s);
    http2_stream_reset(s, NGHTTP2_ENHANCE_YOUR_CALM);
    struct http_conn *c = s->line.conn;
    loop_later(c->shard->worker->loop, LOOP_PHASE_FLUSH, &c->flush);
}

struct http2_stream *http2_stream_slowest(const struct http2_conn *h)
{
    struct http2_stream *slowest = NULL;
    LIST_EACH (node, &h->streams) {
        struct http2_stream *s = LIST_ITEM(node, struct http2_stream, node);
        if (http2_answer_lags(s) && (!slowest || s->line.event_bytes > slowest->line.event_bytes))
            slowest = s;
    }
    return slowest;
}

void http2_stream_ready(struct http2_stream *s)
{
    if (list_empty(&s->ready))
        list_append(&s->h2->ready, &s->ready);
}

void http2_stream_closed(struct http2_stream *s)
{
    CHECK_MAGIC(s, MAGIC);
    struct http_conn *c = s->line.conn;
    if (!s->of_use)
        turns_add(&c->turns, TURNS_CALL);
    drop_message(s);
    http_conn_orphan(&s->line);
    http2_answer_drop(s);
    list_remove(&s->node);
    list_remove(&s->ready);
    list_remove(&s->waiting);
    h2_peer_stream_gone(&s->h2->peer, c->account, HTTP2_STREAM_BYTES);
    s->magic = 0;
    slab_free(&slab, s);
}

static int http2_stream_on_close(nghttp2_session *session, int32_t id, uint32_t error, void *user)
{
    (void)error;
    (void)user;
    struct http2_stream *s = http2_stream_find(session, id);
    if (s)
        http2_stream_closed(s);
    return 0;
}

void http2_stream_callbacks(nghttp2_session_callbacks *c)
{
    nghttp2_session_callbacks_set_on_begin_headers_callback(c, http2_stream_on_begin);
    nghttp2_session_callbacks_set_on_header_callback(c, http2_stream_on_header);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(c, http2_stream_on_data);
    nghttp2_session_callbacks_set_on_stream_close_callback(c, http2_stream_on_close);
}
