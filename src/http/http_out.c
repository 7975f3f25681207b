#include "http/http_out.h"

#include "base/log.h"
#include "base/mem.h"
#include "http/http_answer.h"
#include "http/http_conn.h"
#include "http/http_exchange.h"
#include "http/http_read.h"
#include "http/http_shard.h"
#include "infer/response.h"
#include "net/tls/wire.h"
#include "os/pool.h"
#include "server/worker.h"

#include <limits.h>
#include <string.h>

#define PIECES_AT_ONCE ((size_t)IOV_MAX)

/* Answers that the socket did not take. What was in the worker's buffer is copied; the rest lies
 * in the exchanges. */
struct http_backlog {
    struct iovec *iov; /* to be written from `at` on */
    size_t count;
    size_t at;
    struct buf *copy;
    struct list exchanges;
    bool last; /* the connection ends after it */
};

void http_out_fini(struct http_out *o)
{
    mem_free(o->text);
    mem_free(o->iov);
    *o = (struct http_out){0};
}

/* Whether the bytes lie right behind the last piece, both in the worker's buffer. */
static bool goes_on(const struct http_out *o, const char *bytes)
{
    if (!o->count || bytes <= o->text || bytes >= o->text + HTTP_OUT_BYTES)
        return false;
    const struct iovec *last = &o->iov[o->count - 1];
    const char *begin = last->iov_base;
    return begin >= o->text && begin < bytes && begin + last->iov_len == bytes;
}

void http_out_add(struct http_out *o, const void *bytes, size_t len)
{
    if (!len)
        return;
    o->bytes += len;
    if (o->text && goes_on(o, bytes)) {
        o->iov[o->count - 1].iov_len += len;
        return;
    }
    if (o->count == o->cap) {
        o->cap = o->cap ? o->cap * 2 : 64;
        o->iov = mem_realloc(o->iov, o->cap * sizeof(*o->iov));
    }
    o->iov[o->count++] = (struct iovec){(void *)(uintptr_t)bytes, len};
}

static void http_out_free_all(struct list *exchanges)
{
    struct list *node;
    while ((node = list_pop(exchanges)))
        http_exchange_free(LIST_ITEM(node, struct http_exchange, node));
}

void http_out_drop(struct http_backlog *b)
{
    if (!b)
        return;
    http_out_free_all(&b->exchanges);
    buf_unref(b->copy);
    mem_free(b->iov);
    mem_free(b);
}

/* Writes pieces from *at on; *at becomes the first that is not completely written. Returns false
 * if the connection failed. */
static bool write_pieces(struct http_conn *c, struct iovec *iov, size_t count, size_t *at)
{
    while (*at < count) {
        size_t some = count - *at < PIECES_AT_ONCE ? count - *at : PIECES_AT_ONCE;
        ssize_t put = wire_write(c->fd.fd, c->tls, iov + *at, (int)some);
        if (put < 0)
            return false;
        if (put == 0)
            return true;
        front_metrics_add(&c->shard->metrics->sent_bytes, (uint64_t)put);
        size_t left = (size_t)put;
        while (*at < count && left >= iov[*at].iov_len)
            left -= iov[(*at)++].iov_len;
        if (left) {
            iov[*at].iov_base = (char *)iov[*at].iov_base + left;
            iov[*at].iov_len -= left;
            return true; /* the socket takes no more */
        }
    }
    return true;
}

/* Gives a text that does not fit the worker's buffer its own buffer. If there is no room, the
 * answer becomes an error. */
static void write_large(struct http_exchange *x, size_t room, struct http_out *o)
{
    struct err *e = room == SIZE_MAX
                        ? err_new(STATUS_UNAVAILABLE, "no room for the text of the response")
                        : pool_buf(room, &x->rendered);
    if (!e) {
        http_answer_write(x, (char *)x->rendered->data, o);
        return;
    }
    response_free(x->response);
    x->response = NULL;
    http_exchange_error(x, e);
    o->used += http_answer_write(x, o->text + o->used, o);
}

/* Counts an answer, or an event of one, of so many bytes. */
static void count_answer(struct http_exchange *x, uint64_t bytes)
{
    if (x->part == HTTP_PART_EVENT)
        x->stream->streamed += bytes;
    else
        http_exchange_counted(x, x->streamed + bytes);
}

static void http_out_begin(struct http_out *o)
{
    if (!o->text)
        o->text = mem_alloc(HTTP_OUT_BYTES);
    o->used = o->count = 0;
    o->bytes = 0;
}

/* Writes an answer, or an event of one, and counts it. In each place: every answer passes it. */
__attribute__((always_inline)) static inline void write_one(struct http_exchange *x, size_t room,
                                                            struct http_out *o)
{
    uint64_t before = o->bytes;
    if (room > HTTP_OUT_BYTES)
        write_large(x, room, o);
    else
        o->used += http_answer_write(x, o->text + o->used, o);
    count_answer(x, o->bytes - before);
}

void http_out_write(struct http_exchange *x, struct http_out *o)
{
    http_out_begin(o);
    write_one(x, http_answer_room(x), o);
}

/* True if the next answer is the last outstanding one, and the connection ends: nothing more is
 * read, or the front end stops and no new message has begun. */
static bool owes_one(const struct http_conn *c)
{
    if (c->in_flight > 1 || c->held)
        return false;
    if (c->phase == HTTP_PHASE_IGNORE)
        return true;
    if (!c->shard->draining)
        return false;
    return c->phase == HTTP_PHASE_DISCARD ||
           (c->phase == HTTP_PHASE_HEAD && http1_idle(&c->parser));
}

/* Writes the answers that are due into the batch. Returns true if the last of them ends the
 * connection. */
static bool http_out_gather(struct http_conn *c, struct http_out *o, struct list *batch)
{
    http_out_begin(o);
    while (http_conn_is_due(&c->line) && o->count < PIECES_AT_ONCE) {
        struct http_exchange *x = LIST_ITEM(c->line.exchanges.next, struct http_exchange, node);
        size_t room = http_answer_room(x);
        if (room > HTTP_OUT_BYTES - o->used && o->used)
            return false;
        if (owes_one(c)) {
            x->keep_alive = false;
            http_read_no_more(c);
        }
        list_remove(&x->node);
        list_append(batch, &x->node);
        c->in_flight--;
        write_one(x, room, o);
        if (!x->keep_alive)
            return true;
    }
    return false;
}

/* Keeps what the socket did not take. */
static struct err *http_out_keep(struct http_conn *c, const struct http_out *o, size_t at,
                                 struct list *batch, bool last)
{
    const char *begin = o->text, *end = o->text + HTTP_OUT_BYTES;
    size_t copied = 0;
    for (size_t i = at; i < o->count; i++) {
        const char *piece = o->iov[i].iov_base;
        copied += piece >= begin && piece < end ? o->iov[i].iov_len : 0;
    }
    struct buf *copy = NULL;
    struct err *e = copied ? pool_buf_of(c->account, copied, copied, &copy) : NULL;
    if (e)
        return e;
    struct http_backlog *b = MEM_NEW(struct http_backlog);
    *b = (struct http_backlog){.count = o->count - at, .copy = copy, .last = last};
    list_init(&b->exchanges);
    list_splice(&b->exchanges, batch);
    b->iov = mem_alloc(b->count * sizeof(*b->iov));
    uint8_t *to = copy ? copy->data : NULL;
    for (size_t i = 0; i < b->count; i++) {
        b->iov[i] = o->iov[at + i];
        const char *piece = b->iov[i].iov_base;
        if (piece < begin || piece >= end)
            continue;
        memcpy(to, piece, b->iov[i].iov_len);
        b->iov[i].iov_base = to;
        to += b->iov[i].iov_len;
    }
    c->backlog = b;
    return NULL;
}

/* Writes the batch. Returns false if the connection must not continue for now. */
static bool send_batch(struct http_conn *c, struct http_out *o, struct list *batch, bool last)
{
    size_t at = 0;
    bool ok = write_pieces(c, o->iov, o->count, &at);
    if (ok && at == o->count) {
        c->since = loop_now(c->shard->worker->loop);
        http_out_free_all(batch);
        return true;
    }
    struct err *e = ok ? http_out_keep(c, o, at, batch, last) : NULL;
    if (ok && !e) {
        c->since = loop_now(c->shard->worker->loop);
        http_conn_watch(c);
        return false;
    }
    if (e)
        LOG_WARN("HTTP connection closed: %s", err_message(e));
    err_free(e);
    http_out_free_all(batch);
    http_conn_kill(c);
    return false;
}

/* Writes a batch of what is due. Returns true if the socket took it all, and the connection goes
 * on. */
static bool write_batch(struct http_conn *c)
{
    struct list batch;
    list_init(&batch);
    bool last = http_out_gather(c, &c->shard->out, &batch);
    if (!send_batch(c, &c->shard->out, &batch, last))
        return false;
    if (last)
        http_conn_finish(c);
    return !last;
}

/* One batch at a time: to write out long texts takes a while, and a socket takes megabytes from
 * us at once. Others have their turn before the next one. */
void http_out_flush(struct http_conn *c)
{
    if (!c->backlog && http_conn_is_due(&c->line)) {
        if (!write_batch(c))
            return;
        if (http_conn_is_due(&c->line)) {
            loop_later(c->shard->worker->loop, LOOP_PHASE_SPARE, &c->flush);
            return;
        }
    }
    http_read_resume(c);
}

void http_out_flush_all(struct http_conn *c)
{
    while (!c->backlog && http_conn_is_due(&c->line) && write_batch(c))
        ;
}

void http_out_continue(struct http_conn *c)
{
    struct http_backlog *b = c->backlog;
    if (!b)
        return;
    size_t before = b->at;
    size_t left = b->iov[before].iov_len;
    if (!write_pieces(c, b->iov, b->count, &b->at)) {
        http_conn_kill(c);
        return;
    }
    if (b->at != before || b->iov[b->at].iov_len != left)
        c->since = loop_now(c->shard->worker->loop);
    if (b->at < b->count)
        return;
    bool last = b->last;
    c->backlog = NULL;
    http_out_drop(b);
    if (last)
        http_conn_finish(c);
    else
        http_out_flush(c);
}
