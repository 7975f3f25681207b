#include "http/http_decode.h"

#include "base/mem.h"
#include "codec/expand.h"
#include "http/http_body.h"
#include "http/http_exchange.h"
#include "http/http_shard.h"
#include "net/helpers.h"
#include "os/pool.h"
#include "server/server.h"

#include <string.h>

/* A message whose body is being decompressed. */
struct decode {
    struct helpers_job job; /* first */
    struct http_exchange *x;
    struct expand *expand;
    enum expand_state state;
    size_t before; /* unused bytes in front of the body, see http_body_offset */
    struct buf *packed;
    struct http1_head head;
    struct http_route route;
    char *url;
    char *headers;
};

struct err *http_decode_damage(const char *why)
{
    return err_new(STATUS_INVALID_ARG, "the compressed request body cannot be read: %s", why);
}

static uint64_t http_decode_limit(const struct http_exchange *x)
{
    return x->shard->front->server->options->http_max_input_bytes;
}

static void serve_plain(struct decode *d)
{
    struct http_exchange *x = d->x;
    struct buf *buf = NULL;
    size_t len;
    expand_take(d->expand, &buf, &len);
    d->head.content_coding = CODING_IDENTITY;
    d->head.content_length = len;
    d->head.chunked = false;
    struct http_message m = {
        .head = &d->head,
        .route = &d->route,
        .body = len ? (char *)buf->data + d->before : NULL,
        .body_len = len,
        .buf = buf,
        .damage = d->state == EXPAND_DAMAGED ? expand_why(d->expand) : NULL,
    };
    x->shard->front->service->serve(x, &m);
    buf_unref(buf);
}

/* The job has ended, in any way. */
static void http_decode_settle(struct decode *d)
{
    switch (d->state) {
    case EXPAND_DAMAGED:
        if (d->head.content_coding == CODING_ZSTD) {
            http_exchange_error(d->x, http_decode_damage(expand_why(d->expand)));
            break;
        }
        serve_plain(d);
        break;
    case EXPAND_DONE:
        serve_plain(d);
        break;
    case EXPAND_MORE: /* the front end stops */
        http_exchange_fault(d->x, 503, "Server exiting");
        break;
    case EXPAND_TOO_LARGE:
        http_exchange_error(
            d->x, err_new(STATUS_INVALID_ARG,
                          "Decompressed data size exceeds the maximum allowed value of %llu bytes. "
                          "Use --http-max-input-size to increase the limit.",
                          (unsigned long long)http_decode_limit(d->x)));
        break;
    case EXPAND_NO_ROOM:
        http_exchange_error(d->x, expand_error(d->expand));
        break;
    }
}

static void decode_free(struct decode *d)
{
    expand_free(d->expand);
    buf_unref(d->packed);
    mem_free(d->url);
    mem_free(d->headers);
    mem_free(d);
}

static bool http_decode_on_step(struct helpers_job *j)
{
    struct decode *d = (struct decode *)j;
    d->state = expand_step(d->expand, HELPERS_SLICE_BYTES);
    return d->state != EXPAND_MORE;
}

static void http_decode_on_finish(struct helpers_job *j)
{
    struct decode *d = (struct decode *)j;
    struct http_exchange *x = d->x;
    x->job = NULL;
    x->pending = false;
    if (x->conn)
        http_decode_settle(d);
    else
        http_exchange_free(x);
    decode_free(d);
}

/* Copies the message, so that it lives longer than the call, and gives it to a helper. */
static void http_decode_hand_over(struct decode *d)
{
    d->url = mem_strndup(d->head.url, d->head.url_len);
    d->head.url = d->url;
    d->headers = mem_alloc(d->head.headers_len + 1);
    if (d->head.headers_len)
        memcpy(d->headers, d->head.headers, d->head.headers_len);
    d->head.headers = d->headers;
    d->job.loop = d->x->shard->worker->loop;
    d->job.step = http_decode_on_step;
    d->job.finish = http_decode_on_finish;
    d->x->job = &d->job;
    d->x->pending = true;
    helpers_submit(d->x->shard->front->helpers, &d->job);
}

/* The compressed bytes, in memory that stays until they are read. */
static struct err *keep_packed(struct decode *d, const struct http_message *m, const char **ret)
{
    if (m->buf) {
        d->packed = buf_ref(m->buf);
        *ret = m->body;
        return NULL;
    }
    struct err *e = pool_buf(m->body_len, &d->packed);
    if (e)
        return e;
    memcpy(d->packed->data, m->body, m->body_len);
    *ret = (const char *)d->packed->data;
    return NULL;
}

void http_decode(struct http_exchange *x, const struct http_message *m)
{
    if (!m->body_len) {
        http_exchange_fault(x, 400, "nothing to be decompressed");
        return;
    }
    struct decode *d = MEM_NEW(struct decode);
    d->x = x;
    d->head = *m->head;
    d->route = *m->route;
    d->before = http_body_offset(m->head);
    const char *packed = NULL;
    struct err *e = keep_packed(d, m, &packed);
    if (!e)
        e = expand_new(
            &(struct expand_spec){
                .data = packed,
                .len = m->body_len,
                .coding = m->head->content_coding,
                .either = true,
                .limit = http_decode_limit(x),
                .before = d->before,
                .after = HTTP_BODY_PADDING,
            },
            &d->expand);
    if (e) {
        http_exchange_error(x, e);
        decode_free(d);
        return;
    }
    d->state = expand_step(d->expand, HELPERS_INLINE_BYTES);
    if (d->state == EXPAND_MORE) {
        http_decode_hand_over(d);
        return;
    }
    http_decode_settle(d);
    decode_free(d);
}
