#include "http/http2_answer.h"

#include "base/budget.h"
#include "base/check.h"
#include "base/mem.h"
#include "http/http2_conn.h"
#include "http/http2_stream.h"
#include "http/http_exchange.h"
#include "http/http_out.h"
#include "http/http_shard.h"
#include "server/worker.h"

#include <string.h>

/* Pieces up to this size are copied, so that few pieces are many bytes. */
#define COPY_AT_MOST ((size_t)4096)

#define MAX_FIELDS 32u

#define STATUS_AT  9u /* in "HTTP/1.1 200 OK" */
#define STATUS_LEN 3u

/* A part of an answer that waits for its client. */
struct part {
    struct h2_reply reply; /* first */
    struct http_exchange *x;
    struct budget_account *account; /* charged for the memory of the part */
    size_t held;
    struct iovec pieces[];
};

static time_ns http2_answer_now(const struct http2_stream *s)
{
    return loop_now(s->line.conn->shard->worker->loop);
}

static void free_part(struct h2_reply *r)
{
    struct part *p = (struct part *)r;
    budget_drop(p->account, p->held);
    http_exchange_free(p->x);
    mem_free(p);
}

static bool is_copied(const struct http_out *o, const struct iovec *piece)
{
    const char *at = piece->iov_base;
    return piece->iov_len <= COPY_AT_MOST || (at >= o->text && at < o->text + HTTP_OUT_BYTES);
}

/* Makes a part of the pieces of `o`: small ones and those in the worker's buffer are copied. */
static struct part *part_new(struct http_exchange *x, const struct http_out *o)
{
    size_t copied = 0;
    for (size_t i = 0; i < o->count; i++)
        copied += is_copied(o, &o->iov[i]) ? o->iov[i].iov_len : 0;
    size_t bytes = sizeof(struct part) + o->count * sizeof(struct iovec) + copied;
    struct part *p = mem_alloc(bytes);
    *p = (struct part){.x = x, .account = x->conn->account, .held = bytes};
    budget_hold(p->account, bytes);
    char *to = (char *)(p->pieces + o->count);
    struct iovec *end = p->pieces;
    for (size_t i = 0; i < o->count; i++) {
        struct iovec piece = o->iov[i];
        if (!piece.iov_len)
            continue;
        p->reply.left += piece.iov_len;
        if (is_copied(o, &o->iov[i])) {
            piece.iov_base = memcpy(to, piece.iov_base, piece.iov_len);
            to += piece.iov_len;
        }
        bool goes_on =
            end > p->pieces && (char *)end[-1].iov_base + end[-1].iov_len == (char *)piece.iov_base;
        if (goes_on)
            end[-1].iov_len += piece.iov_len;
        else
            *end++ = piece;
    }
    p->reply.pieces = p->pieces;
    p->reply.piece_count = (uint32_t)(end - p->pieces);
    p->reply.held = bytes;
    p->reply.free_fn = free_part;
    return p;
}

/* Tells nghttp2 how much of the answer goes into a DATA frame. */
static ssize_t read_h2_part(nghttp2_session *session, int32_t id, uint8_t *to, size_t cap,
                            uint32_t *flags, nghttp2_data_source *source, void *user)
{
    (void)session;
    (void)id;
    (void)to;
    (void)user;
    struct http2_stream *s = source->ptr;
    const struct h2_reply *r = s->replies;
    if (!r && !s->ended) {
        s->deferred = true;
        return NGHTTP2_ERR_DEFERRED;
    }
    size_t n = r && r->left < cap ? (size_t)r->left : r ? cap : 0;
    if (n)
        *flags |= NGHTTP2_DATA_FLAG_NO_COPY;
    if (s->ended && (!r || (n == r->left && !r->next)))
        *flags |= NGHTTP2_DATA_FLAG_EOF;
    return (ssize_t)n;
}

static void to_small_letters(char *name, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (name[i] >= 'A' && name[i] <= 'Z')
            name[i] = (char)(name[i] + ('a' - 'A'));
}

/* Fields about the connection, which HTTP/2 does not have. */
static bool is_of_connection(const char *name, size_t len)
{
    return (len == 10 && memcmp(name, "connection", 10) == 0) ||
           (len == 17 && memcmp(name, "transfer-encoding", 17) == 0);
}

/* The fields of a head of HTTP/1.1, which ends at `end`. Returns their number. */
static size_t fields_of(char *head, const char *end, nghttp2_nv *nv)
{
    size_t n = 0;
    nv[n++] = (nghttp2_nv){.name = (uint8_t *)(uintptr_t) ":status",
                           .namelen = 7,
                           .value = (uint8_t *)head + STATUS_AT,
                           .valuelen = STATUS_LEN};
    char *line = memchr(head, '\n', (size_t)(end - head));
    while (line && ++line < end && *line != '\r' && n < MAX_FIELDS) {
        char *colon = memchr(line, ':', (size_t)(end - line));
        char *stop = memchr(line, '\r', (size_t)(end - line));
        CHECK(colon && stop && colon + 2 <= stop); /* http_answer.c wrote it */
        size_t name_len = (size_t)(colon - line);
        to_small_letters(line, name_len);
        if (!is_of_connection(line, name_len))
            nv[n++] = (nghttp2_nv){.name = (uint8_t *)line,
                                   .namelen = name_len,
                                   .value = (uint8_t *)colon + 2,
                                   .valuelen = (size_t)(stop - colon) - 2};
        line = stop + 1;
    }
    return n;
}

/* Submitting fails only without memory. The client would then get no answer, so the stream is
 * closed. */
static void check_submitted(struct http2_stream *s, int rc)
{
    if (rc != 0)
        http2_stream_reset(s, NGHTTP2_INTERNAL_ERROR);
}

/* Takes the head off the written answer, and submits it. */
static void submit_head(struct http2_stream *s, struct http_out *o, bool whole)
{
    nghttp2_nv nv[MAX_FIELDS];
    char *head = o->iov[0].iov_base;
    char *end = memmem(head, o->iov[0].iov_len, "\r\n\r\n", 4);
    CHECK(end);
    size_t len = (size_t)(end - head) + 4;
    size_t count = fields_of(head, end + 4, nv);
    o->iov[0].iov_base = head + len;
    o->iov[0].iov_len -= len;
    o->bytes -= len;
    bool empty = whole && !o->bytes;
    nghttp2_data_provider body = {.source.ptr = s, .read_callback = read_h2_part};
    s->responding = true;
    int rc = nghttp2_submit_response(s->h2->session, s->id, nv, count, empty ? NULL : &body);
    check_submitted(s, rc);
}

static void begin_h2_wait(struct http2_stream *s)
{
    s->moved = http2_answer_now(s);
    if (s->h2->answering++ == 0)
        s->h2->moved = s->moved;
}

static void append_part(struct http2_stream *s, struct part *p)
{
    if (!s->replies)
        begin_h2_wait(s);
    *s->last_reply = &p->reply;
    s->last_reply = &p->reply.next;
}

/* An answer, an event of one, or its end. */
uint64_t http2_answer_send(struct http2_stream *s)
{
    struct http_exchange *x = LIST_ITEM(list_pop(&s->line.exchanges), struct http_exchange, node);
    struct http_out *o = &x->shard->out;
    s->line.conn->in_flight--;
    http_out_write(x, o);
    s->ended = x->part != HTTP_PART_EVENT;
    if (!s->responding)
        submit_head(s, o, s->ended);
    if (o->bytes)
        append_part(s, part_new(x, o));
    else
        http_exchange_free(x);
    if (s->deferred) {
        s->deferred = false;
        check_submitted(s, nghttp2_session_resume_data(s->h2->session, s->id));
    }
    return o->bytes;
}

bool http2_answer_lags(const struct http2_stream *s)
{
    return s->replies && s->moved < http2_answer_now(s);
}

uint64_t http2_answer_left(const struct http2_stream *s)
{
    return s && s->replies ? s->replies->left : 0;
}

static struct h2_reply *take_reply(struct http2_stream *s)
{
    struct h2_reply *r = s->replies;
    s->replies = r->next;
    if (!s->replies) {
        s->last_reply = &s->replies;
        s->h2->answering--;
    }
    struct http_exchange *x = ((struct part *)r)->x; /* it may outlive the stream */
    s->line.event_bytes -= x->event_bytes;
    x->line = NULL;
    return r;
}

bool http2_answer_put(struct http2_stream *s, struct h2_batch *b, const uint8_t *head, size_t n)
{
    struct h2_reply *r = s->replies;
    CHECK(r && r->left >= n);
    if (!h2_out_reply(&s->h2->out, b, head, H2_PEER_HEAD_BYTES, r, n))
        return false;
    s->moved = s->h2->moved = http2_answer_now(s);
    if (r->left == 0)
        h2_out_retire(&s->h2->out, take_reply(s));
    return true;
}

void http2_answer_drop(struct http2_stream *s)
{
    while (s->replies)
        h2_out_retire(&s->h2->out, take_reply(s));
}
