#include "http/http_read.h"

#include "base/budget.h"
#include "base/mem.h"
#include "http/http2_conn.h"
#include "http/http_body.h"
#include "http/http_conn.h"
#include "http/http_exchange.h"
#include "http/http_gate.h"
#include "http/http_shard.h"
#include "net/access.h"
#include "net/tls/wire.h"
#include "net/turns.h"
#include "os/pool.h"
#include "server/worker.h"

#include <string.h>

/* The most bytes of a useless body that are read; if it is longer, the connection is closed. */
#define DISCARD_AT_MOST ((uint64_t)1 << 20)

/* A large body is received in large pieces: this much, then other connections have their turn.
 * Less in the busy lane; with a quarter of that, bodies of 16 MiB cost 5 % more. */
#define READ_AT_ONCE    ((size_t)2 << 20)
#define READ_BUSY       ((size_t)1 << 20)
#define LOW_WATER_BYTES ((uint64_t)256 << 10)
#define LOW_WATER_FROM  ((uint64_t)64 << 10)

/* Wakes up only when a large part of the rest has arrived. For a small rest the system call is
 * not worth it. */
static void set_low_water(struct http_conn *c)
{
    int want = 1;
    if (c->tls) /* the socket does not have what the TLS session has read ahead */
        return;
    if (c->body.left >= LOW_WATER_FROM)
        want = (int)(c->body.left < LOW_WATER_BYTES ? c->body.left : LOW_WATER_BYTES);
    else if ((uint64_t)c->low_water <= c->body.left)
        return;
    if (c->low_water == want)
        return;
    c->low_water = want;
    sock_low_water(c->fd.fd, want);
}

static void end_body(struct http_conn *c)
{
    http_body_end(&c->body);
    c->line.begun = 0;
    if (c->low_water > 1 && !c->dead) {
        c->low_water = 1;
        sock_low_water(c->fd.fd, 1);
    }
}

void http_read_no_more(struct http_conn *c)
{
    end_body(c);
    c->phase = HTTP_PHASE_IGNORE;
}

bool http_read_piece(void *conn, const char *bytes, size_t len)
{
    struct http_conn *c = conn;
    return c->phase != HTTP_PHASE_CHUNKS || http_body_piece(&c->body, bytes, len);
}

static struct http_exchange *exchange_begin(struct http_conn *c)
{
    return http_gate_begin(&c->line, &c->parser.head);
}

static struct http_exchange *refusal_begin(struct http_conn *c)
{
    return http_gate_begin_refusal(&c->line, &c->parser.head, &c->route);
}

/* True if nothing after the message of x is read. */
static bool is_last(const struct http_conn *c, const struct http_exchange *x)
{
    return !x->keep_alive || c->closing;
}

/* Gives a whole message to the service. Then the parser is ready for the next. */
static void http_read_serve(struct http_conn *c, char *body, size_t len)
{
    struct http_exchange *x = exchange_begin(c);
    bool last = is_last(c, x);
    struct http_message m = {.head = &c->parser.head,
                             .route = &c->route,
                             .body = body,
                             .body_len = len,
                             .buf = c->body.buf};
    if (x->access)
        x->access->in_bytes = len;
    c->phase = HTTP_PHASE_HEAD;
    http_conn_of_use(c, &c->route);
    c->shard->front->service->serve(x, &m);
    http1_next(&c->parser);
    if (c->body.buf)
        end_body(c);
    if (last)
        http_read_no_more(c);
}

static void serve_received(struct http_conn *c)
{
    pool_whole(c->account, c->body.len);
    http_read_serve(c, http_body_text(&c->body), c->body.len);
}

/* The stream cannot be understood, or must not continue: answers with the reason, then closes. */
static void http_read_fail(struct http_conn *c, uint16_t status, const char *reason)
{
    struct http_exchange *x = exchange_begin(c);
    x->keep_alive = false;
    http_exchange_fault(x, status, reason);
    http_read_no_more(c);
}

/* A message was answered by its head; the body is dropped when it comes. */
static void drop_refused(struct http_conn *c, struct http_exchange *x)
{
    const struct http1_head *h = &c->parser.head;
    if (h->expect_continue || h->content_length > DISCARD_AT_MOST || h->chunked)
        x->keep_alive = false;
    bool last = is_last(c, x);
    c->body.left = h->content_length;
    http1_next(&c->parser);
    if (last)
        http_read_no_more(c);
    else if (c->body.left)
        c->phase = HTTP_PHASE_DISCARD;
}

/* The service does not need the body: answers now, and drops the body when it comes. */
static void serve_without_body(struct http_conn *c)
{
    bool chunked = c->parser.head.chunked;
    uint64_t left = c->parser.head.content_length;
    struct http_exchange *x = exchange_begin(c);
    /* A client that waits for "100 Continue" may omit the body now that the answer comes first. */
    bool unread = left > DISCARD_AT_MOST || chunked || c->parser.head.expect_continue;
    if (unread)
        x->keep_alive = false;
    else
        http_conn_of_use(c, &c->route);
    bool last = is_last(c, x);
    struct http_message m = {.head = &c->parser.head, .route = &c->route};
    c->shard->front->service->serve(x, &m);
    http1_next(&c->parser);
    c->body.left = left;
    if (last)
        http_read_no_more(c);
    else if (left)
        c->phase = HTTP_PHASE_DISCARD;
}

static void promise_to_read(struct http_conn *c)
{
    struct http_exchange *x = http_exchange_new(&c->line);
    http_exchange_static(x, 100, NULL, NULL, 0);
}

/* Begins to receive the body of an admitted message; n bytes after its head are there already.
 * Returns how many of them were taken. */
static size_t begin_admitted(struct http_conn *c, char *data, size_t n)
{
    const struct http1_head *h = &c->parser.head;
    if (!h->chunked && !h->content_length) {
        http_read_serve(c, NULL, 0);
        return 0;
    }
    if (!c->body.max) {
        serve_without_body(c);
        return 0;
    }
    if (!h->chunked && h->content_length <= n) {
        size_t len = (size_t)h->content_length;
        http_read_serve(c, data, len);
        return len;
    }
    struct err *e = http_body_begin(&c->body, http_conn_account(c), h);
    if (e) {
        struct http_exchange *x = refusal_begin(c);
        http_exchange_error(x, e);
        drop_refused(c, x);
        return 0;
    }
    http1_keep(&c->parser);
    if (h->expect_continue && !n && h->minor > 0)
        promise_to_read(c);
    c->phase = h->chunked ? HTTP_PHASE_CHUNKS : HTTP_PHASE_BODY;
    c->line.begun = c->since;
    http_conn_wait(c);
    return h->chunked ? 0 : http_body_take(&c->body, data, n);
}

/* A head is complete. Returns as begin_admitted. */
static size_t begin_message(struct http_conn *c, char *data, size_t n)
{
    struct http_exchange *x = http_gate(&c->line, &c->parser.head, &c->route, &c->body.max);
    if (x) {
        drop_refused(c, x);
        return 0;
    }
    if (http_conn_is_told(c, &c->route) && !http_conn_may_tell(c)) {
        http1_keep(&c->parser);
        c->phase = HTTP_PHASE_TURN;
        return 0;
    }
    return begin_admitted(c, data, n);
}

static void consume(struct http_conn *c, char *data, size_t n);

/* There is no room for the body, or it is too long. */
static void fail_body(struct http_conn *c)
{
    struct http_exchange *x = refusal_begin(c);
    x->keep_alive = false;
    http_exchange_error(x, c->body.error);
    c->body.error = NULL;
    http_read_no_more(c);
}

/* Some of a body with a length was received. */
static void body_arrived(struct http_conn *c)
{
    if (c->body.error)
        fail_body(c);
    else if (!c->body.left)
        serve_received(c);
}

static size_t take_chunks(struct http_conn *c, const char *data, size_t n)
{
    size_t used;
    switch (http1_parse(&c->parser, data, n, &used)) {
    case HTTP1_END:
        serve_received(c);
        break;
    case HTTP1_ERROR:
        if (c->body.error)
            fail_body(c);
        else
            http_read_fail(c, c->parser.error_status, c->parser.error_reason);
        break;
    case HTTP1_MORE:
    case HTTP1_HEAD:
        break;
    }
    return used;
}

/* Which versions a client may speak that said by TLS which it speaks. */
static bool may_speak(const struct http_conn *c, enum tls_abi_protocol protocol)
{
    enum tls_abi_protocol said = c->tls ? c->tls->session->protocol : TLS_ABI_PROTOCOL_NONE;
    return said == TLS_ABI_PROTOCOL_NONE || said == protocol;
}

/* The first bytes of a connection, which may be the preface of HTTP/2. Returns true once it is
 * known that they belong to a head of HTTP/1.1; *ret_used bytes are dealt with if not. */
static bool take_preface(struct http_conn *c, const char *data, size_t n, size_t *ret_used)
{
    static const char preface[] = NGHTTP2_CLIENT_MAGIC;
    size_t had = c->preface;
    size_t most = NGHTTP2_CLIENT_MAGIC_LEN - had;
    size_t len = n < most ? n : most;
    *ret_used = len;
    bool same = may_speak(c, TLS_ABI_PROTOCOL_H2) && memcmp(data, preface + had, len) == 0;
    if (same && len < most) {
        c->preface = (uint8_t)(had + len);
        c->since = loop_now(c->shard->worker->loop);
        http_conn_wait(c);
        return false;
    }
    c->preface = HTTP_CONN_NO_PREFACE;
    if (same && http2_conn_begin(c)) {
        c->phase = HTTP_PHASE_FRAMES;
        http2_conn_take(c, preface, NGHTTP2_CLIENT_MAGIC_LEN);
        return false;
    }
    if (same || !may_speak(c, TLS_ABI_PROTOCOL_HTTP1)) {
        http_conn_kill(c);
        return false;
    }
    if (!had)
        return true;
    char first[NGHTTP2_CLIENT_MAGIC_LEN]; /* they were the beginning of a head after all */
    memcpy(first, preface, had);
    *ret_used = 0;
    consume(c, first, had);
    return false;
}

static size_t take_head(struct http_conn *c, char *data, size_t n)
{
    size_t used;
    bool idle = http1_idle(&c->parser);
    if (c->preface != HTTP_CONN_NO_PREFACE && !take_preface(c, data, n, &used))
        return used;
    enum http1_event event = http1_parse(&c->parser, data, n, &used);
    if (idle && !http1_idle(&c->parser)) /* more than blank lines came */
        c->since = loop_now(c->shard->worker->loop);
    switch (event) {
    case HTTP1_HEAD:
        used += begin_message(c, data + used, n - used);
        break;
    case HTTP1_ERROR:
        if (idle && !c->tls)
            wire_note_tls(c->fd.fd, data, "http");
        http_read_fail(c, c->parser.error_status, c->parser.error_reason);
        break;
    case HTTP1_MORE:
        http_conn_wait(c);
        break;
    case HTTP1_END:
        break;
    }
    return used;
}

static size_t take_discarded(struct http_conn *c, size_t n)
{
    size_t used = n < c->body.left ? n : (size_t)c->body.left;
    c->body.left -= used;
    if (!c->body.left)
        c->phase = HTTP_PHASE_HEAD;
    return used;
}

/* Keeps bytes that must wait until answers are written. */
static void http_read_hold(struct http_conn *c, const char *data, size_t n)
{
    char *held = mem_alloc(n + HTTP_BODY_PADDING);
    memcpy(held, data, n);
    mem_free(c->held);
    budget_drop(c->account, c->held_len);
    budget_hold(http_conn_account(c), n);
    c->held = held;
    c->held_len = n;
}

/* Takes the kept bytes; the caller frees them. */
static char *take_held(struct http_conn *c, size_t *ret_len)
{
    char *held = c->held;
    *ret_len = c->held_len;
    budget_drop(c->account, c->held_len);
    c->held = NULL;
    c->held_len = 0;
    return held;
}

/* The front end stops: once there is something to answer, the message that has begun is the last
 * one. */
static void begin_no_more(struct http_conn *c)
{
    if (!c->in_flight || c->held || c->h2 || c->phase == HTTP_PHASE_TURN)
        return;
    c->closing = true;
    if (c->phase == HTTP_PHASE_DISCARD || (c->phase == HTTP_PHASE_HEAD && http1_idle(&c->parser)))
        http_read_no_more(c);
}

/* Handles received bytes. They may be changed, and so may HTTP_BODY_PADDING bytes after them. */
static void consume(struct http_conn *c, char *data, size_t n)
{
    while (n && !c->dead) {
        size_t used = n;
        switch (c->phase) {
        case HTTP_PHASE_HEAD:
            if (c->in_flight >= HTTP_CONN_MAX_IN_FLIGHT) {
                http_read_hold(c, data, n);
                return;
            }
            used = take_head(c, data, n);
            break;
        case HTTP_PHASE_BODY:
            used = http_body_take(&c->body, data, n);
            body_arrived(c);
            break;
        case HTTP_PHASE_CHUNKS:
            used = take_chunks(c, data, n);
            break;
        case HTTP_PHASE_DISCARD:
            used = take_discarded(c, n);
            break;
        case HTTP_PHASE_TURN:
            http_read_hold(c, data, n);
            return;
        case HTTP_PHASE_FRAMES:
            http2_conn_take(c, data, n);
            break;
        case HTTP_PHASE_IGNORE:
            break;
        }
        data += used;
        n -= used;
    }
    if (c->shard->draining && !c->dead)
        begin_no_more(c);
}

void http_read_resume(struct http_conn *c)
{
    if (c->held && c->phase != HTTP_PHASE_TURN && !c->backlog &&
        c->in_flight < HTTP_CONN_MAX_IN_FLIGHT) {
        size_t len;
        char *held = take_held(c, &len);
        consume(c, held, len);
        mem_free(held);
    }
    if (c->dead)
        return;
    if (c->ended && !http_conn_owes(c)) {
        http_conn_kill(c);
        return;
    }
    http_conn_watch(c);
    if (c->shard->draining) /* for the rest of a message, if for anything */
        http_conn_wait(c);
}

void http_read_turn(struct http_conn *c)
{
    if (!http_conn_may_tell(c))
        return;
    char none[HTTP_BODY_PADDING] = {0};
    size_t len;
    char *held = take_held(c, &len);
    char *data = held ? held : none;
    c->phase = HTTP_PHASE_HEAD;
    size_t used = begin_admitted(c, data, len);
    consume(c, data + used, len - used);
    mem_free(held);
    if (c->dead)
        return;
    bool more = c->held || http_conn_waits_to_ask(c);
    turns_judge(c->shard->worker->loop, &c->fd, turns_of(c->turns, c->told), more);
    http_conn_watch(c);
}

/* Reads directly into the body's own buffer. */
static long read_body(struct http_conn *c)
{
    size_t most = c->fd.lane == LOOP_LANE_FRONT ? READ_AT_ONCE : READ_BUSY;
    size_t want = c->body.left < most ? (size_t)c->body.left : most;
    long got = wire_read(c->fd.fd, c->tls, http_body_place(&c->body), want);
    if (got > 0)
        http_body_arrived(&c->body, (size_t)got);
    if (c->body.left && got != 0 && got != -2)
        set_low_water(c);
    if (got > 0) {
        front_metrics_add(&c->shard->metrics->received_bytes, (uint64_t)got);
        c->since = loop_now(c->shard->worker->loop);
        body_arrived(c);
    }
    return got;
}

/* Reads at most this turn's share. Chunks are not limited by it: a client that sends too many
 * goes to the slow lane (brought_much). */
static long read_share(struct http_conn *c)
{
    bool chunks = c->phase == HTTP_PHASE_CHUNKS;
    size_t most = chunks ? HTTP_CONN_READ_MOST : c->share.bytes;
    long got = wire_read(c->fd.fd, c->tls, c->shard->worker->receive, most);
    if (got > 0 && !chunks)
        turns_share_read(&c->share, &c->shard->worker->reader, c->shard->worker->loop, (size_t)got,
                         HTTP_CONN_READ_MOST);
    return got;
}

static long read_messages(struct http_conn *c)
{
    struct worker *w = c->shard->worker;
    long got = read_share(c);
    if (got <= 0)
        return got;
    if (c->phase != HTTP_PHASE_HEAD && !c->lingering)
        c->since = loop_now(w->loop);
    worker_received(w, (size_t)got);
    front_metrics_add(&c->shard->metrics->received_bytes, (uint64_t)got);
    consume(c, w->receive, (size_t)got);
    if (c->phase != HTTP_PHASE_BODY || c->dead)
        return got;
    /* A large body has begun, and most of it has probably arrived, so read it now. */
    bool large = c->body.left > HTTP_CONN_READ_MOST;
    got = read_body(c);
    /* If this is the only message, its client probably waits for the answer before it sends
     * more. */
    bool alone = c->in_flight <= 1;
    if (c->share.full && alone && !large)
        turns_share_grow(&c->share, HTTP_CONN_READ_MOST);
    if (large || alone || c->phase == HTTP_PHASE_BODY)
        c->share.full = 0;
    return got;
}

/* Handles the end of the stream: the client closed its side, or the connection failed. */
static void look_for_end(struct http_conn *c, long got)
{
    if (got == 0 && !c->dead)
        http_conn_ended(c);
    else if (got == -2)
        http_conn_kill(c);
}

void http_read_pending(struct http_conn *c)
{
    long got = read_messages(c);
    look_for_end(c, got);
    if (!c->dead)
        http_conn_watch(c);
}

/* Notes that chunks came on c. Returns true if only a few connections sent the latest chunks. */
static bool chunks_of_few(const struct http_conn *c)
{
    uintptr_t *latest = c->shard->chunked;
    uintptr_t moved = (uintptr_t)c;
    for (unsigned i = 0; i < HTTP_CHUNKED_FEW; i++) {
        uintptr_t was = latest[i];
        latest[i] = moved;
        if (was == (uintptr_t)c)
            return true;
        moved = was;
    }
    return false;
}

/* True if a read counts as useful. The length of a chunked body is unknown. So if many
 * connections send chunks at once, their reads do not count as useful, and they continue in the
 * slow lane until their message is complete. Bytes after the last message are never useful. */
static bool brought_much(const struct http_conn *c, long got)
{
    if (got < TURNS_BYTES || c->phase == HTTP_PHASE_IGNORE)
        return false;
    return c->phase != HTTP_PHASE_CHUNKS || chunks_of_few(c);
}

void http_read_some(struct http_conn *c)
{
    c->turns += TURNS_READ;
    c->share.full = 0;
    long got = c->phase == HTTP_PHASE_BODY ? read_body(c) : read_messages(c);
    look_for_end(c, got);
    if (c->dead)
        return;
    if (brought_much(c, got))
        c->turns = 0;
    bool more = c->phase == HTTP_PHASE_BODY ? c->body.left > TURNS_LONG : c->share.full;
    more |= !c->proven || http_conn_waits_to_ask(c);
    turns_judge(c->shard->worker->loop, &c->fd, turns_of(c->turns, c->told), more);
    http_conn_watch(c);
}
