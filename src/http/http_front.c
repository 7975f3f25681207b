#include "http/http_front.h"

#include "base/mem.h"
#include "http/http2_conn.h"
#include "http/http_conn.h"
#include "http/http_cors.h"
#include "http/http_cut.h"
#include "http/http_shard.h"
#include "net/door.h"
#include "net/forward.h"
#include "net/helpers.h"
#include "net/listener.h"
#include "os/sock.h"
#include "server/server.h"
#include "tracing/tracing.h"

/* Most answers are sent by then. A client that closed only its side notices nothing. */
#define ENDED TIME_S(1)

static void accepted(struct worker *w, int fd, void *owner)
{
    struct http_front *f = owner;
    http_conn_open(&f->shards[w->index], fd);
}

static void http_front_give_up(struct tls_conn *t)
{
    http_conn_kill(t->owner);
}

/* An answer in plain text, for clients that use plain HTTP on a TLS port. */
static const char speak_tls[] = "HTTP/1.1 400 Bad Request\r\nContent-Type: application/json\r\n"
                                "Content-Length: 56\r\nConnection: close\r\n\r\n"
                                "{\"error\":\"This port speaks HTTP over TLS: use https://\"}";

static void refused(int fd, void *owner)
{
    const struct http_front *f = owner;
    if (f->shards[0].tls.tls) /* a handshake would take too long */
        return;
    static const char text[] =
        "HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\n"
        "Content-Length: 37\r\nConnection: close\r\n"
        "Retry-After: 1\r\n\r\n"
        "{\"error\":\"Too many open connections\"}";
    _Static_assert(sizeof("{\"error\":\"Too many open connections\"}") - 1 == 37,
                   "see Content-Length");
    struct iovec piece = {(void *)(uintptr_t)text, sizeof(text) - 1};
    sock_write(fd, &piece, 1);
}

struct http_patience http_front_patience(uint32_t head, uint32_t stall, uint32_t idle)
{
    uint32_t shortest = head < stall ? head : stall;
    if (idle < shortest)
        shortest = idle;
    return (struct http_patience){.head = TIME_S(head),
                                  .stall = TIME_S(stall),
                                  .idle = TIME_S(idle),
                                  .shortest = TIME_S(shortest),
                                  .ended = ENDED};
}

struct err *http_front_init_h2(struct http_front *f)
{
    if (nghttp2_session_callbacks_new(&f->h2_callbacks) != 0 ||
        nghttp2_option_new(&f->h2_options) != 0)
        return err_new(STATUS_UNAVAILABLE, "no memory for HTTP/2");
    http2_conn_callbacks(f->h2_callbacks);
    http2_conn_options(f->h2_options);
    return NULL;
}

struct err *http_front_open(struct server *s, const struct http_service *service,
                            const char *address, uint16_t port, bool reuse, const struct door *door,
                            struct http_front **ret)
{
    struct http_front *f = MEM_NEW(struct http_front);
    f->server = s;
    f->patience = http_front_patience(s->options->http_header_timeout_secs,
                                      s->options->http_stall_timeout_secs,
                                      s->options->http_idle_timeout_secs);
    f->service = service;
    mutex_init(&f->lock, MUTEX_RANK_LEAF);
    mutex_cond_init(&f->settled);
    f->helpers = helpers_new(s->worker_count);
    f->shards = mem_zalloc(s->worker_count * sizeof(*f->shards));
    for (unsigned i = 0; i < s->worker_count; i++) {
        f->shards[i].front = f;
        f->shards[i].worker = &s->workers[i];
        f->shards[i].metrics = front_metrics_new(f->service->metrics);
        f->shards[i].tls = (struct tls_home){.tls = door->tls,
                                             .loop = s->workers[i].loop,
                                             .plain = speak_tls,
                                             .give_up = http_front_give_up};
        tls_conn_home_init(&f->shards[i].tls);
        list_init(&f->shards[i].conns);
    }
    if (service->open)
        service->open(f);
    struct err *e = http_front_init_h2(f);
    if (!e && service->inference && !service->size_type)
        e = forward_new("http-header-forward-pattern", s->options->http_header_pattern,
                        &f->forward);
    f->guard = (struct guard){
        .restrictions = service->inference ? &s->options->http_restrictions : NULL,
        .prefix = "",
        .what = "API",
        .keys = door->keys,
    };
    if (service->inference)
        f->cors = http_cors_new(s->options->http_cors_origins, s->options->http_cors_origin_count);
    f->collect = service->size_type || f->forward || f->cors || f->guard.keys ||
                 (f->guard.restrictions && f->guard.restrictions->any) ||
                 (service->inference && tracing_wants_context(s->tracing));
    if (!e)
        e = listener_open(s, address, port, reuse, 0, accepted, refused, f, &f->listener);
    if (e) {
        http_front_free(f);
        return e;
    }
    *ret = f;
    return NULL;
}

struct err *http_front_share(struct http_front *f)
{
    return f ? listener_share(f->listener) : NULL;
}

uint16_t http_front_port(const struct http_front *f)
{
    return listener_port(f->listener);
}

unsigned http_front_connections(const struct http_front *f)
{
    return (unsigned)listener_connections(f->listener);
}

static void http_front_settle(struct http_front *f, bool mail)
{
    mutex_lock(&f->lock);
    f->mails -= mail;
    mutex_cond_broadcast(&f->settled);
    mutex_unlock(&f->lock);
}

void http_front_gone(struct http_shard *s)
{
    if (s->draining)
        http_front_settle(s->front, false);
}

static void on_drain(struct mail *m)
{
    struct http_shard *s = LIST_ITEM(m, struct http_shard, drain_mail);
    s->draining = true;
    LIST_EACH (it, &s->conns)
        http_conn_drain(LIST_ITEM(it, struct http_conn, node));
    http_front_settle(s->front, true);
}

static void on_kill(struct mail *m)
{
    struct http_shard *s = LIST_ITEM(m, struct http_shard, kill_mail);
    unsigned cut = 0;
    LIST_EACH (it, &s->conns)
        cut += http_cut_conn(LIST_ITEM(it, struct http_conn, node));
    mutex_lock(&s->front->lock);
    s->front->cut += cut;
    mutex_unlock(&s->front->lock);
    http_front_settle(s->front, true);
}

/* Posts a message to every shard; the caller holds the lock. */
static void http_front_post_all(struct http_front *f, bool kill)
{
    for (unsigned i = 0; i < f->server->worker_count; i++) {
        struct http_shard *s = &f->shards[i];
        struct mail *m = kill ? &s->kill_mail : &s->drain_mail;
        m->deliver = kill ? on_kill : on_drain;
        f->mails++;
        loop_post(s->worker->loop, m, m);
    }
}

/* Waits until no connection and message is left, at most until a time; the caller holds the
 * lock. */
static bool wait_empty(struct http_front *f, time_ns until)
{
    while (f->mails || listener_connections(f->listener))
        if (!mutex_cond_wait_until(&f->settled, &f->lock, until) && clock_now_ns() >= until)
            return !f->mails && !listener_connections(f->listener);
    return true;
}

unsigned http_front_stop(struct http_front *f, time_ns until)
{
    if (!f || f->stopped)
        return 0;
    f->stopped = true;
    listener_stop(f->listener);
    mutex_lock(&f->lock);
    http_front_post_all(f, false);
    if (!wait_empty(f, until)) {
        http_front_post_all(f, true);
        wait_empty(f, TIME_NEVER);
    }
    unsigned cut = f->cut;
    mutex_unlock(&f->lock);
    helpers_free(f->helpers);
    f->helpers = NULL;
    return cut;
}

void http_front_free(struct http_front *f)
{
    if (!f)
        return;
    for (unsigned i = 0; i < f->server->worker_count; i++) {
        http_out_fini(&f->shards[i].out);
        tls_conn_home_fini(&f->shards[i].tls);
        front_metrics_free(f->shards[i].metrics);
        mem_free(f->shards[i].json_memory);
        mem_free(f->shards[i].batch);
    }
    nghttp2_session_callbacks_del(f->h2_callbacks);
    nghttp2_option_del(f->h2_options);
    helpers_free(f->helpers);
    forward_free(f->forward);
    http_cors_free(f->cors);
    listener_free(f->listener);
    if (f->own)
        f->service->close(f);
    mutex_cond_fini(&f->settled);
    mutex_fini(&f->lock);
    mem_free(f->shards);
    mem_free(f);
}
