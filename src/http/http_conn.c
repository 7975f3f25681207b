#include "http/http_conn.h"

#include "base/check.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/slab.h"
#include "infer/request.h"
#include "net/access.h"
#include "net/helpers.h"
#include "http/http_body.h"
#include "http/http_exchange.h"
#include "http/http_front_priv.h"
#include "http/http_out.h"
#include "net/listener.h"
#include "net/turns.h"
#include "os/sock.h"
#include "server/worker.h"

#include <stdatomic.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#define IDLE_TIMEOUT   TIME_S(600) /* between requests */
#define HEAD_TIMEOUT   TIME_S(60)  /* from the first byte of a head to its last */
#define STALL_TIMEOUT  TIME_S(60)  /* without any byte of a body, or of an answer */
#define READ_AT_MOST   ((size_t)16384)
#define LINGER_TIMEOUT TIME_S(2)

/* While the front end stops. A client that has just had an answer probably asks again soon. */
#define DRAIN_PATIENCE TIME_MS(500)
#define DRAIN_IDLE     TIME_MS(20) /* for one that was silent for longer than RECENT */
#define DRAIN_HEAD     TIME_S(1)
#define DRAIN_STALL    TIME_S(5)
#define RECENT         TIME_S(1)
#define DISCARD_AT_MOST \
    ((uint64_t)1 << 20) /* of a body that nobody wants; past it the connection closes */

static const struct slab slab = {.index = 6, .object_bytes = sizeof(struct http_conn)};

static struct loop *loop_of(const struct http_conn *c)
{
    return c->shard->worker->loop;
}

/* How long the present wait may last; TIME_NEVER while only the model is waited for. */
static time_ns limit_of(const struct http_conn *c)
{
    bool draining = c->shard->draining;
    if (c->lingering)
        return draining ? c->patience / 2 : LINGER_TIMEOUT;
    if (c->backlog || c->phase == HTTP_PHASE_BODY || c->phase == HTTP_PHASE_CHUNKS ||
        c->phase == HTTP_PHASE_DISCARD)
        return draining ? DRAIN_STALL : STALL_TIMEOUT;
    if (c->in_flight)
        return TIME_NEVER;
    if (http1_idle(&c->parser))
        return draining ? c->patience : IDLE_TIMEOUT;
    return draining ? DRAIN_HEAD : HEAD_TIMEOUT;
}

/* The timer is set early when a shorter wait begins, and moved on lazily when it finds that there was progress. */
static void expect_within(struct http_conn *c, time_ns limit)
{
    time_ns when = c->since + limit;
    if (!c->timer.heap_index || c->timer.when > when)
        loop_timer_set(loop_of(c), &c->timer, when);
}

static void on_timer(struct loop_timer *t)
{
    struct http_conn *c = LIST_ITEM(t, struct http_conn, timer);
    time_ns limit = limit_of(c);
    time_ns now = loop_now(loop_of(c));
    if (limit == TIME_NEVER)
        loop_timer_set(loop_of(c), t, now + HEAD_TIMEOUT);
    else if (now < c->since + limit)
        loop_timer_set(loop_of(c), t, c->since + limit);
    else if (c->phase == HTTP_PHASE_HEAD && !c->backlog)
        http_conn_finish(c);
    else
        http_conn_kill(c);
}

void http_conn_watch(struct http_conn *c)
{
    bool more = c->phase != HTTP_PHASE_HEAD ||
                (!c->held && !c->backlog && c->in_flight < HTTP_CONN_MAX_IN_FLIGHT);
    loop_mod(loop_of(c), &c->fd, (more ? EPOLLIN : 0u) | (c->backlog ? EPOLLOUT : 0u));
    if (c->backlog)
        expect_within(c, STALL_TIMEOUT);
}

static void orphan_exchanges(struct http_conn *c)
{
    struct list *node;
    while ((node = list_pop(&c->exchanges))) {
        struct http_exchange *x = LIST_ITEM(node, struct http_exchange, node);
        x->conn = NULL;
        if (x->job)
            helpers_cancel(x->job);
        if (x->request)
            atomic_store_explicit(&x->request->cancelled, true, memory_order_relaxed);
        else if (!x->pending)
            http_exchange_free(x);
    }
    c->in_flight = 0;
}

void http_conn_kill(struct http_conn *c)
{
    if (c->dead)
        return;
    c->dead = true;
    loop_timer_clear(loop_of(c), &c->timer);
    loop_del(loop_of(c), &c->fd);
    sock_close(c->fd.fd);
    orphan_exchanges(c);
    loop_later(loop_of(c), LOOP_PHASE_FLUSH, &c->flush);
}

static void conn_free(struct http_conn *c)
{
    struct http_shard *s = c->shard;
    if (!c->proven)
        turns_stranger_gone(&s->strangers);
    http_body_end(c);
    err_free(c->body_error);
    mem_free(c->held);
    http_out_drop(c->backlog);
    http1_fini(&c->parser);
    list_remove(&c->node);
    slab_free(&slab, c);
    front_metrics_add(&s->metrics->closed, 1);
    listener_closed(s->front->listener, s->worker, s->strangers);
    http_front_gone(s);
}

static void on_flush(struct loop_task *t)
{
    struct http_conn *c = LIST_ITEM(t, struct http_conn, flush);
    if (c->dead)
        conn_free(c);
    else
        http_out_flush(c);
}

void http_conn_answered(struct http_conn *c, const struct http_exchange *x)
{
    if (c->exchanges.next == &x->node)
        loop_later(loop_of(c), LOOP_PHASE_FLUSH, &c->flush);
}

void http_conn_finish(struct http_conn *c)
{
    shutdown(c->fd.fd, SHUT_WR);
    c->phase = HTTP_PHASE_IGNORE;
    c->lingering = true;
    c->since = loop_now(loop_of(c));
    orphan_exchanges(c);
    http_conn_watch(c);
    expect_within(c, limit_of(c));
}

/* The last message of the connection was read, or what comes cannot be understood any more. */
static void read_no_more(struct http_conn *c)
{
    http_body_end(c);
    c->phase = HTTP_PHASE_IGNORE;
}

static struct http_exchange *exchange_begin(struct http_conn *c)
{
    const struct http1_head *h = &c->parser.head;
    struct http_exchange *x = http_exchange_new(c);
    http_exchange_count(x, h);
    x->keep_alive = h->keep_alive && !c->shard->draining;
    x->head_only = h->method == HTTP1_HEAD_METHOD;
    x->explicit_keep_alive = h->minor == 0;
    return x;
}

static void of_use(struct http_conn *c)
{
    c->turns = 0;
    if (c->proven)
        return;
    c->proven = true;
    turns_stranger_known(&c->shard->strangers);
}

/* Hands a whole message over; afterwards the parser is ready for the next. */
static void serve(struct http_conn *c, char *body, size_t len)
{
    struct http_exchange *x = exchange_begin(c);
    bool last = !x->keep_alive;
    struct http_message m = {
        .head = &c->parser.head, .body = body, .body_len = len, .buf = c->body};
    if (x->access)
        x->access->in_bytes = len;
    c->phase = HTTP_PHASE_HEAD;
    of_use(c);
    c->shard->front->service->serve(x, &m);
    http1_next(&c->parser);
    if (c->body)
        http_body_end(c);
    if (last)
        read_no_more(c);
}

static void serve_received(struct http_conn *c)
{
    char *body = (char *)c->body->data + c->body_at;
    serve(c, c->body_len ? body : NULL, c->body_len);
}

/* The stream cannot be understood, or must not go on: say why, then close. */
static void fail(struct http_conn *c, uint16_t status, const char *reason)
{
    struct http_exchange *x = exchange_begin(c);
    x->keep_alive = false;
    http_exchange_fault(x, status, reason);
    read_no_more(c);
}

/* Answers by the head alone; what comes of the body is dropped. */
static void refuse(struct http_conn *c, struct err *e)
{
    const struct http1_head *h = &c->parser.head;
    struct http_exchange *x = exchange_begin(c);
    x->route = (uint8_t)c->shard->front->service->route(h);
    if (h->expect_continue || h->content_length > DISCARD_AT_MOST || h->chunked)
        x->keep_alive = false;
    bool last = !x->keep_alive;
    c->body_left = h->content_length;
    http_exchange_error(x, e);
    http1_next(&c->parser);
    if (last)
        read_no_more(c);
    else if (c->body_left)
        c->phase = HTTP_PHASE_DISCARD;
}

/* The body is of no use to whom it was sent: answer now, drop it as it comes. */
static void serve_without_body(struct http_conn *c)
{
    bool chunked = c->parser.head.chunked;
    uint64_t left = c->parser.head.content_length;
    struct http_exchange *x = exchange_begin(c);
    if (left > DISCARD_AT_MOST || chunked)
        x->keep_alive = false;
    bool last = !x->keep_alive;
    struct http_message m = {.head = &c->parser.head};
    of_use(c);
    c->shard->front->service->serve(x, &m);
    http1_next(&c->parser);
    c->body_left = left;
    if (last)
        read_no_more(c);
    else if (left)
        c->phase = HTTP_PHASE_DISCARD;
}

static void promise_to_read(struct http_conn *c)
{
    struct http_exchange *x = http_exchange_new(c);
    http_exchange_static(x, 100, NULL, NULL, 0);
}

/* A head is complete; n bytes behind it are there already. Returns how many of them were taken. */
static size_t begin_message(struct http_conn *c, char *data, size_t n)
{
    const struct http1_head *h = &c->parser.head;
    struct err *e = c->shard->front->service->admit(c->shard->front, h, &c->body_max);
    if (e) {
        refuse(c, e);
        return 0;
    }
    if (!h->chunked && !h->content_length) {
        serve(c, NULL, 0);
        return 0;
    }
    if (!c->body_max) {
        serve_without_body(c);
        return 0;
    }
    if (!h->chunked && h->content_length <= n) {
        size_t len = (size_t)h->content_length;
        serve(c, data, len);
        return len;
    }
    e = http_body_begin(c);
    if (e) {
        refuse(c, e);
        return 0;
    }
    http1_keep(&c->parser);
    if (h->expect_continue && !n && h->minor > 0)
        promise_to_read(c);
    c->phase = h->chunked ? HTTP_PHASE_CHUNKS : HTTP_PHASE_BODY;
    c->body_left = h->content_length;
    expect_within(c, STALL_TIMEOUT);
    return h->chunked ? 0 : http_body_take(c, data, n);
}

/* There is no room for what came of the body, or it may not be that long. */
static void fail_body(struct http_conn *c)
{
    struct err *e = c->body_error;
    c->body_error = NULL;
    fail(c, (uint16_t)status_http(err_code(e)), err_message(e));
    err_free(e);
}

/* Some of a body of known length was received. */
static void body_arrived(struct http_conn *c)
{
    if (c->body_error)
        fail_body(c);
    else if (!c->body_left)
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
        if (c->body_error)
            fail_body(c);
        else
            fail(c, c->parser.error_status, c->parser.error_reason);
        break;
    case HTTP1_MORE:
    case HTTP1_HEAD:
        break;
    }
    return used;
}

static size_t take_head(struct http_conn *c, char *data, size_t n)
{
    size_t used;
    if (http1_idle(&c->parser))
        c->since = loop_now(loop_of(c));
    switch (http1_parse(&c->parser, data, n, &used)) {
    case HTTP1_HEAD:
        used += begin_message(c, data + used, n - used);
        break;
    case HTTP1_ERROR:
        fail(c, c->parser.error_status, c->parser.error_reason);
        break;
    case HTTP1_MORE:
        expect_within(c, limit_of(c));
        break;
    case HTTP1_END:
        break;
    }
    return used;
}

static size_t take_discarded(struct http_conn *c, size_t n)
{
    size_t used = n < c->body_left ? n : (size_t)c->body_left;
    c->body_left -= used;
    if (!c->body_left)
        c->phase = HTTP_PHASE_HEAD;
    return used;
}

/* Bytes that must wait until answers are written. */
static void hold(struct http_conn *c, const char *data, size_t n)
{
    char *held = mem_alloc(n + HTTP_BODY_PADDING);
    memcpy(held, data, n);
    mem_free(c->held);
    c->held = held;
    c->held_len = n;
}

/* Goes through received bytes. They may be written to, and so may HTTP_BODY_PADDING bytes behind them. */
static void consume(struct http_conn *c, char *data, size_t n)
{
    while (n && !c->dead) {
        size_t used = n;
        switch (c->phase) {
        case HTTP_PHASE_HEAD:
            if (c->in_flight >= HTTP_CONN_MAX_IN_FLIGHT) {
                hold(c, data, n);
                return;
            }
            used = take_head(c, data, n);
            break;
        case HTTP_PHASE_BODY:
            used = http_body_take(c, data, n);
            body_arrived(c);
            break;
        case HTTP_PHASE_CHUNKS:
            used = take_chunks(c, data, n);
            break;
        case HTTP_PHASE_DISCARD:
            used = take_discarded(c, n);
            break;
        case HTTP_PHASE_IGNORE:
            break;
        }
        data += used;
        n -= used;
    }
}

void http_conn_resume(struct http_conn *c)
{
    if (c->held && !c->backlog && c->in_flight < HTTP_CONN_MAX_IN_FLIGHT) {
        char *held = c->held;
        c->held = NULL;
        consume(c, held, c->held_len);
        mem_free(held);
    }
    if (!c->dead)
        http_conn_watch(c);
}

/* Little enough that most of a large body is received straight into its own buffer. */
static size_t read_at_once(const struct worker *w)
{
    size_t room = w->receive_bytes - HTTP_BODY_PADDING;
    return room < READ_AT_MOST ? room : READ_AT_MOST;
}

/* Straight into the body's own buffer. */
static long read_body(struct http_conn *c)
{
    long got = http_body_read(c);
    if (got > 0) {
        front_metrics_add(&c->shard->metrics->received_bytes, (uint64_t)got);
        c->since = loop_now(loop_of(c));
        body_arrived(c);
    }
    return got;
}

static long read_messages(struct http_conn *c)
{
    struct worker *w = c->shard->worker;
    long got = sock_read(c->fd.fd, w->receive, read_at_once(w));
    if (got <= 0)
        return got;
    if (c->phase != HTTP_PHASE_HEAD && !c->lingering)
        c->since = loop_now(w->loop);
    worker_received(w, (size_t)got);
    front_metrics_add(&c->shard->metrics->received_bytes, (uint64_t)got);
    consume(c, w->receive, (size_t)got);
    /* A large body has begun, and most of it is there by now: no need to wait for the next turn. */
    return c->phase == HTTP_PHASE_BODY && !c->dead ? read_body(c) : got;
}

/* What comes after the last message is of no use, however much it is. */
static void read_some(struct http_conn *c)
{
    c->turns += TURNS_READ;
    long got = c->phase == HTTP_PHASE_BODY ? read_body(c) : read_messages(c);
    if (got == 0 || got == -2)
        http_conn_kill(c);
    if (c->dead)
        return;
    if (got >= TURNS_BYTES && c->phase != HTTP_PHASE_IGNORE)
        c->turns = 0;
    turns_judge(loop_of(c), &c->fd, c->turns);
    http_conn_watch(c);
}

static void on_ready(struct loop_fd *fd, uint32_t events)
{
    struct http_conn *c = LIST_ITEM(fd, struct http_conn, fd);
    if (events & EPOLLOUT)
        http_out_continue(c);
    if (!c->dead && (events & EPOLLIN) && (c->fd.events & EPOLLIN))
        read_some(c);
    else if (!c->dead && (events & (EPOLLERR | EPOLLHUP)))
        http_conn_kill(c);
}

void http_conn_open(struct http_shard *s, int fd)
{
    struct http_conn *c = slab_alloc(&slab);
    *c = (struct http_conn){
        .fd = {.fd = fd, .ready = on_ready},
        .flush = {.run = on_flush},
        .timer = LOOP_TIMER_INIT(on_timer),
        .shard = s,
        .phase = HTTP_PHASE_HEAD,
        .since = loop_now(s->worker->loop),
        .patience = DRAIN_PATIENCE,
        .low_water = 1,
    };
    list_init(&c->flush.node);
    list_init(&c->exchanges);
    list_append(&s->conns, &c->node);
    front_metrics_add(&s->metrics->opened, 1);
    http1_init(&c->parser, http_body_piece, c);
    if (s->front->collect)
        http1_collect(&c->parser);
    struct err *e = loop_add(s->worker->loop, &c->fd, EPOLLIN);
    if (!e) {
        expect_within(c, HEAD_TIMEOUT);
        c->turns = s->strangers;
        turns_judge(s->worker->loop, &c->fd, c->turns);
        return;
    }
    LOG_WARN("HTTP connection closed: %s", err_message(e));
    err_free(e);
    sock_close(fd);
    c->dead = true;
    loop_later(s->worker->loop, LOOP_PHASE_FLUSH, &c->flush);
}

void http_conn_drain(struct http_conn *c)
{
    time_ns now = loop_now(loop_of(c));
    if (c->dead || c->lingering)
        return;
    if (now > c->since + RECENT)
        c->patience = DRAIN_IDLE;
    c->since = now;
    bool waits = c->phase == HTTP_PHASE_HEAD && !c->in_flight && !c->backlog && !c->held;
    if (waits && http1_idle(&c->parser)) {
        /* A request may lie in the socket. */
        long got = read_messages(c);
        if (got == 0 || got == -2)
            http_conn_kill(c);
        else if (!c->dead)
            http_conn_watch(c);
    }
    if (!c->dead && limit_of(c) != TIME_NEVER)
        expect_within(c, limit_of(c));
}
