#include "grpc/grpc_answer.h"

#include "base/check.h"
#include "base/log.h"
#include "base/mem.h"
#include "codec/grpc_text.h"
#include "grpc/grpc_conn.h"
#include "grpc/grpc_delay.h"
#include "grpc/grpc_pack.h"
#include "net/access.h"
#include "server/worker.h"

#include <stdio.h>
#include <string.h>

#define NV_FLAGS     (NGHTTP2_NV_FLAG_NO_COPY_NAME | NGHTTP2_NV_FLAG_NO_COPY_VALUE)
#define MAX_TRAILERS 4

/* nghttp2 takes pointers to non-const bytes, but only reads them. */
static nghttp2_nv header(const char *name, const char *value, size_t value_len)
{
    return (nghttp2_nv){
        .name = (uint8_t *)(uintptr_t)name,
        .value = (uint8_t *)(uintptr_t)value,
        .namelen = strlen(name),
        .valuelen = value_len,
        .flags = NV_FLAGS,
    };
}

#define HEADER(name, value) header((name), (value), sizeof(value) - 1)

static nghttp2_session *session_of(const struct grpc_stream *s)
{
    return s->conn->session;
}

/* Submitting fails only without memory. The client would then get no answer, so the stream is
 * closed. */
static void submitted(struct grpc_stream *s, int rc)
{
    if (rc != 0)
        nghttp2_submit_rst_stream(session_of(s), NGHTTP2_FLAG_NONE, s->id, NGHTTP2_INTERNAL_ERROR);
    grpc_conn_flush_later(s->conn);
}

/* The call is answered before its client has sent everything. The client is told to stop when
 * the answer is out, not earlier, because nghttp2 sends nothing more on a stream that will be
 * reset. */
static void stop_client(struct grpc_stream *s)
{
    if (s->half_closed || s->stopping)
        return;
    s->stopping = true;
    s->conn->stopping_streams++;
}

void grpc_answer_sent(struct grpc_stream *s)
{
    if (s->stopping && !s->half_closed)
        nghttp2_submit_rst_stream(session_of(s), NGHTTP2_FLAG_NONE, s->id, NGHTTP2_NO_ERROR);
}

/* Fills in grpc-status and grpc-message. The message is encoded into `text`, which nghttp2
 * copies. */
static size_t status_headers(const struct grpc_stream *s, nghttp2_nv *nv, char *status, char *text)
{
    static const char ok[] = "0";
    size_t n = 0;
    if (s->status == GRPC_ANSWER_OK) {
        nv[n++] = HEADER("grpc-status", ok);
    } else {
        int digits = snprintf(status, 12, "%d", s->status);
        nv[n] = header("grpc-status", status, (size_t)digits);
        nv[n++].flags = NGHTTP2_NV_FLAG_NO_COPY_NAME;
    }
    if (s->message && *s->message) {
        nv[n] = header("grpc-message", text,
                       grpc_text_encode(s->message, text, GRPC_TEXT_MESSAGE_BYTES));
        nv[n++].flags = NGHTTP2_NV_FLAG_NO_COPY_NAME;
    }
    return n;
}

static int submit_trailers(struct grpc_stream *s)
{
    nghttp2_nv nv[MAX_TRAILERS];
    char status[12];
    char text[GRPC_TEXT_MESSAGE_BYTES];
    size_t n = status_headers(s, nv, status, text);
    int rc = nghttp2_submit_trailer(session_of(s), s->id, nv, n);
    if (rc == 0)
        stop_client(s);
    return rc;
}

/* Tells nghttp2 how much of the next reply goes into a DATA frame. The last frame submits the
 * trailers. */
static ssize_t read_reply(nghttp2_session *session, int32_t id, uint8_t *to, size_t cap,
                          uint32_t *flags, nghttp2_data_source *source, void *user)
{
    (void)session;
    (void)id;
    (void)to;
    (void)user;
    struct grpc_stream *s = source->ptr;
    const struct h2_reply *r = s->replies;
    if ((!r && !s->ended) || (r && r->waits)) {
        s->deferred = true;
        return NGHTTP2_ERR_DEFERRED;
    }
    size_t n = r && r->left < cap ? (size_t)r->left : r ? cap : 0;
    if (n)
        *flags |= NGHTTP2_DATA_FLAG_NO_COPY;
    if (s->ended && (!r || (n == r->left && !r->next))) {
        *flags |= NGHTTP2_DATA_FLAG_EOF | NGHTTP2_DATA_FLAG_NO_END_STREAM;
        if (submit_trailers(s) != 0)
            return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    }
    return (ssize_t)n;
}

/* Adds the headers about compression after the first two. Returns the number of headers. */
static size_t add_packing(const struct grpc_stream *s, nghttp2_nv *nv)
{
    if (s->packing == CODING_GZIP)
        nv[2] = HEADER("grpc-encoding", "gzip");
    else
        nv[2] = HEADER("grpc-encoding", "deflate");
    nv[3] = HEADER("grpc-accept-encoding", "identity, deflate, gzip");
    return 4;
}

static time_ns now_of(const struct grpc_stream *s)
{
    return loop_now(s->conn->home->worker->loop);
}

static void begin_waiting(struct grpc_stream *s)
{
    s->moved = now_of(s);
    if (s->conn->answering++ == 0)
        s->conn->moved = s->moved;
}

void grpc_answer_send(struct grpc_stream *s, struct h2_reply *r)
{
    if (!s->conn || s->ended) {
        r->free_fn(r);
        return;
    }
    if (s->conn->home->delays && grpc_delay_reply(s, r))
        return;
    if (s->packing != CODING_IDENTITY)
        r = grpc_pack(s, r);
    r->next = NULL;
    if (!s->replies)
        begin_waiting(s);
    *s->last_reply = r;
    s->last_reply = &r->next;
    s->reply_bytes += r->held;
    if (s->access)
        s->access->out_bytes += r->left;
    int rc = 0;
    if (!s->responding) {
        nghttp2_nv nv[4] = {HEADER(":status", "200"), HEADER("content-type", "application/grpc")};
        size_t n = s->packing == CODING_IDENTITY ? 2 : add_packing(s, nv);
        nghttp2_data_provider body = {.source.ptr = s, .read_callback = read_reply};
        s->responding = true;
        rc = nghttp2_submit_response(session_of(s), s->id, nv, n, &body);
    } else if (s->deferred) {
        s->deferred = false;
        rc = nghttp2_session_resume_data(session_of(s), s->id);
    }
    submitted(s, rc);
}

bool grpc_answer_lags(const struct grpc_stream *s)
{
    return s->replies && s->moved < now_of(s);
}

bool grpc_answer_any_lags(const struct grpc_conn *c)
{
    return c->answering && c->moved < loop_now(c->home->worker->loop);
}

void grpc_answer_packed(struct grpc_stream *s)
{
    s->moved = s->conn->moved = now_of(s);
    if (!s->deferred)
        return;
    s->deferred = false;
    submitted(s, nghttp2_session_resume_data(session_of(s), s->id));
}

/* Marks the stream as ended. Returns false if it was ended already, or is closed. */
static bool mark_ended(struct grpc_stream *s, int status, const char *message)
{
    if (s->ended || !s->conn)
        return false;
    s->ended = true;
    s->status = status;
    if (message)
        s->message = mem_strndup(message, strnlen(message, GRPC_TEXT_MESSAGE_BYTES));
    loop_timer_clear(s->conn->home->worker->loop, &s->timer);
    if (status != GRPC_ANSWER_OK)
        grpc_stream_cancel(s);
    return true;
}

/* Sends the whole answer as one HEADERS frame. */
static void answer_headers(struct grpc_stream *s, const nghttp2_nv *nv, size_t n)
{
    s->responding = true;
    int rc = nghttp2_submit_response(session_of(s), s->id, nv, n, NULL);
    if (rc == 0)
        stop_client(s);
    submitted(s, rc);
}

void grpc_answer_end(struct grpc_stream *s, int status, const char *message)
{
    if (s->conn && s->conn->home->delays && grpc_delay_end(s, status, message))
        return;
    if (!mark_ended(s, status, message))
        return;
    if (!s->responding) {
        nghttp2_nv nv[2 + MAX_TRAILERS] = {HEADER(":status", "200"),
                                           HEADER("content-type", "application/grpc")};
        char digits[12];
        char text[GRPC_TEXT_MESSAGE_BYTES];
        answer_headers(s, nv, 2 + status_headers(s, nv + 2, digits, text));
    } else if (s->deferred) {
        s->deferred = false;
        submitted(s, nghttp2_session_resume_data(session_of(s), s->id));
    }
}

void grpc_answer_fail(struct grpc_stream *s, struct err *e)
{
    grpc_answer_end(s, status_grpc(err_code(e)), err_message(e));
    err_free(e);
}

void grpc_answer_http(struct grpc_stream *s, const char *http_status)
{
    if (!mark_ended(s, GRPC_ANSWER_INTERNAL, NULL))
        return;
    nghttp2_nv nv[] = {header(":status", http_status, strlen(http_status))};
    answer_headers(s, nv, 1);
}

void grpc_answer_encoding(struct grpc_stream *s)
{
    if (!mark_ended(s, GRPC_ANSWER_UNIMPLEMENTED, "the grpc-encoding of the call is not supported"))
        return;
    nghttp2_nv nv[3 + MAX_TRAILERS] = {HEADER(":status", "200"),
                                       HEADER("content-type", "application/grpc"),
                                       HEADER("grpc-accept-encoding", "identity, deflate, gzip")};
    char digits[12];
    char text[GRPC_TEXT_MESSAGE_BYTES];
    answer_headers(s, nv, 3 + status_headers(s, nv + 3, digits, text));
}

void grpc_answer_abandon(struct grpc_stream *s, int status, uint32_t code)
{
    LOG_VERBOSE(1, "gRPC: ending a call whose client does not go on with it");
    s->ended = true;
    s->status = status;
    loop_timer_clear(s->conn->home->worker->loop, &s->timer);
    grpc_stream_cancel(s);
    submitted(s, nghttp2_submit_rst_stream(session_of(s), NGHTTP2_FLAG_NONE, s->id, code));
}

uint64_t grpc_answer_left(const struct grpc_stream *s)
{
    return s && s->replies ? s->replies->left : 0;
}

static struct h2_reply *pop_reply(struct grpc_stream *s)
{
    struct h2_reply *r = s->replies;
    s->replies = r->next;
    s->reply_bytes -= r->held;
    if (!s->replies) {
        s->last_reply = &s->replies;
        s->conn->answering--;
    }
    return r;
}

bool grpc_answer_gather(struct grpc_stream *s, struct h2_batch *b, const uint8_t *head,
                        size_t head_bytes, size_t n)
{
    struct h2_reply *r = s->replies;
    CHECK(r && r->left >= n);
    if (!h2_out_reply(&s->conn->out, b, head, head_bytes, r, n))
        return false;
    s->moved = s->conn->moved = now_of(s);
    if (r->left == 0)
        h2_out_retire(&s->conn->out, pop_reply(s));
    return true;
}

void grpc_answer_drop(struct grpc_stream *s)
{
    while (s->replies)
        h2_out_retire(&s->conn->out, pop_reply(s));
    mem_free(s->message);
    s->message = NULL;
    if (s->stopping)
        s->conn->stopping_streams--;
}
