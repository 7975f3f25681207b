/* Calls over HTTP/1.1: a connection for each lane, which is opened anew when the server has closed
 * it between two calls. It may do so while the next one is on its way: that is sent once more. */
#include "base/mem.h"
#include "bench/bench_wire_priv.h"
#include "os/loop.h"
#include "os/sock.h"

#include <llhttp.h>
#include <string.h>
#include <sys/epoll.h>
#include <yyjson.h>

struct bench_http {
    struct bench_lane lane;
    struct bench_wire *wire;
    struct loop_fd watch; /* fd -1 = closed */
    llhttp_t parser;
    struct bench_call *call; /* NULL = none under way */
    size_t written;          /* bytes of it */
    bool complete;           /* its answer is */
    bool stays;              /* the connection does after it */
    bool used;               /* a call was answered over the connection */
};

static struct bench_http *http_of(llhttp_t *p)
{
    return p->data;
}

static int http_on_body(llhttp_t *p, const char *bytes, size_t len)
{
    struct bench_call *c = http_of(p)->call;
    if (!c || (!c->keep && p->status_code == 200))
        return 0;
    if (c->answer.len + len >
        (p->status_code == 200 ? BENCH_WIRE_ANSWER_BYTES : BENCH_WIRE_ERROR_BYTES))
        return HPE_USER;
    strbuf_append(&c->answer, bytes, len);
    return 0;
}

static int http_on_complete(llhttp_t *p)
{
    http_of(p)->complete = true;
    http_of(p)->stays = llhttp_should_keep_alive(p);
    return 0;
}

static const llhttp_settings_t *http_settings(void)
{
    static llhttp_settings_t settings;
    llhttp_settings_init(&settings);
    settings.on_body = http_on_body;
    settings.on_message_complete = http_on_complete;
    return &settings;
}

static void http_close(struct bench_http *h)
{
    if (h->watch.fd < 0)
        return;
    loop_del(h->wire->loop, &h->watch);
    sock_close(h->watch.fd);
    h->watch.fd = -1;
}

static struct err *http_open(struct bench_http *h)
{
    struct err *e = bench_wire_connect(h->wire, &h->watch.fd);
    if (e)
        return e;
    llhttp_reset(&h->parser);
    h->complete = h->used = false;
    e = loop_add(h->wire->loop, &h->watch, EPOLLIN);
    if (e) {
        sock_close(h->watch.fd);
        h->watch.fd = -1;
    }
    return e;
}

static void http_end(struct bench_http *h, struct err *e)
{
    struct bench_call *c = h->call;
    h->call = NULL;
    if (e)
        http_close(h);
    if (c)
        c->done(c, e);
    else
        err_free(e);
}

/* What the server says is wrong: {"error": TEXT}. */
static struct err *http_error(const struct bench_http *h)
{
    const struct strbuf *body = &h->call->answer;
    yyjson_doc *doc = yyjson_read(strbuf_str(body), body->len, 0);
    const char *text = yyjson_get_str(yyjson_obj_get(yyjson_doc_get_root(doc), "error"));
    struct err *e =
        text ? err_new(STATUS_INTERNAL, "%s (HTTP status %d)", text, h->parser.status_code)
             : err_new(STATUS_INTERNAL, "the server answers HTTP status %d", h->parser.status_code);
    yyjson_doc_free(doc);
    return e;
}

static bool http_all_written(const struct bench_http *h)
{
    return h->written == h->call->pieces[0].iov_len + h->call->pieces[1].iov_len;
}

/* An answer is complete. The connection goes where the server still waits for the rest of the
 * request: the next one would be taken for that. */
static void http_answered(struct bench_http *h)
{
    struct err *e = h->parser.status_code == 200 ? NULL : http_error(h);
    h->complete = false;
    h->used = true;
    if (!h->stays || !http_all_written(h))
        http_close(h);
    struct bench_call *c = h->call;
    h->call = NULL;
    c->done(c, e);
}

static void http_send(struct bench_lane *l, struct bench_call *c);

/* The connection is gone, and the call has no whole answer. */
static void http_lost(struct bench_http *h, const char *why)
{
    struct bench_call *c = h->call;
    if (!h->used || c->came) {
        http_end(h, err_new(STATUS_UNAVAILABLE, "%s", why));
        return;
    }
    http_close(h);
    http_send(&h->lane, c);
}

static void http_write(struct bench_http *h)
{
    struct bench_call *c = h->call;
    struct iovec left[BENCH_WIRE_PIECES];
    int count = 0;
    size_t skip = h->written;
    for (int i = 0; i < BENCH_WIRE_PIECES; i++) {
        size_t len = c->pieces[i].iov_len;
        size_t past = skip < len ? skip : len;
        skip -= past;
        if (len > past)
            left[count++] = (struct iovec){(char *)c->pieces[i].iov_base + past, len - past};
    }
    ssize_t n = count ? sock_write(h->watch.fd, left, count) : 0;
    if (n < 0) {
        http_lost(h, "the server has closed the connection");
        return;
    }
    h->written += (size_t)n;
    bool more = !http_all_written(h);
    if (!more)
        c->sent = clock_now_ns();
    loop_mod(h->wire->loop, &h->watch, more ? EPOLLIN | EPOLLOUT : EPOLLIN);
}

static void http_read(struct bench_http *h)
{
    ssize_t n = sock_read(h->watch.fd, h->wire->buffer, BENCH_WIRE_READ_BYTES);
    if (n == -1)
        return;
    if (n <= 0) {
        if (h->call && n == 0 && llhttp_finish(&h->parser) == HPE_OK && h->complete)
            http_answered(h); /* its end is that of the connection */
        else if (h->call)
            http_lost(h, "the server has closed the connection before its answer was complete");
        else
            http_close(h);
        return;
    }
    if (h->call && !h->call->came)
        h->call->came = clock_now_ns();
    enum llhttp_errno r = llhttp_execute(&h->parser, (const char *)h->wire->buffer, (size_t)n);
    if (r == HPE_USER)
        http_end(h, err_new(STATUS_INTERNAL, "the answer is too long (HTTP status %d)",
                            h->parser.status_code));
    else if (r != HPE_OK || (h->complete && !h->call))
        http_end(h, err_new(STATUS_INTERNAL,
                            "what comes back is no HTTP/1.1: a port for gRPC takes -i grpc"));
    else if (h->complete)
        http_answered(h);
}

static void http_ready(struct loop_fd *w, uint32_t events)
{
    struct bench_http *h = LIST_ITEM(w, struct bench_http, watch);
    if (h->call && (events & EPOLLOUT))
        http_write(h);
    if (h->watch.fd >= 0 && (events & ~(uint32_t)EPOLLOUT))
        http_read(h);
}

static void http_send(struct bench_lane *l, struct bench_call *c)
{
    struct bench_http *h = LIST_ITEM(l, struct bench_http, lane);
    c->answer.len = 0;
    c->sent = c->came = 0;
    h->call = c;
    h->written = 0;
    struct err *e = h->watch.fd < 0 ? http_open(h) : NULL;
    if (e)
        http_end(h, e);
    else
        http_write(h);
}

static void http_free(struct bench_lane *l)
{
    struct bench_http *h = LIST_ITEM(l, struct bench_http, lane);
    http_close(h);
    mem_free(h);
}

struct err *bench_http_lane(struct bench_wire *w, struct bench_lane **ret)
{
    struct bench_http *h = MEM_NEW(struct bench_http);
    h->lane = (struct bench_lane){http_send, http_free};
    h->wire = w;
    h->watch = (struct loop_fd){.fd = -1, .ready = http_ready};
    llhttp_init(&h->parser, HTTP_RESPONSE, http_settings());
    h->parser.data = h;
    struct err *e = http_open(h);
    if (e)
        mem_free(h);
    else
        *ret = &h->lane;
    return e;
}
