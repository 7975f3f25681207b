/* Calls over gRPC: a stream of HTTP/2 for each call. Lanes share connections, as many as
 * --calls-per-connection says. A lane whose connection the server has ended, or is about to end,
 * goes on with another at its next call; so does a call that came too late to be taken. */
#include "base/mem.h"
#include "bench/bench_wire_priv.h"
#include "codec/grpc_prefix.h"
#include "codec/grpc_text.h"
#include "codec/pb_wire.h"
#include "os/loop.h"
#include "os/sock.h"

#include <nghttp2/nghttp2.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>

#define OUT_BYTES   ((size_t)256 << 10)
#define FRAME_BYTES ((size_t)16384 + 64) /* the longest frame that the session makes */
#define GRPC_NONE   (-1)                 /* no grpc-status came */
#define MOST_MOVES  10                   /* of a call, before the server is said to take none */

/* Field numbers of ModelStreamInferResponse, of the ModelInferResponse in it, of a map's entry. */
enum {
    FIELD_ERROR = 1,
    FIELD_RESPONSE = 2,
    FIELD_PARAMETERS = 4,
    FIELD_KEY = 1,
};

struct bench_grpc_conn {
    struct bench_wire *wire;
    struct loop_fd watch; /* fd -1 = closed, for good */
    bool leaves;          /* the server takes no more calls on it */
    struct loop_task flush;
    nghttp2_session *session;
    struct list lanes;
    uint32_t lane_count;
    time_ns came; /* when the bytes came that are being read */
    time_ns went; /* when the bytes went that were written last */
    char *out;    /* OUT_BYTES, of which out_len are to be sent and out_sent were */
    size_t out_len, out_sent;
};

struct bench_grpc {
    struct bench_lane lane;
    struct list node;
    struct bench_grpc_conn *conn;
    struct bench_call *call; /* NULL = none under way */
    size_t given;            /* bytes of it that the session has */
    size_t skipped;          /* of the prefix of its answer */
    int status;              /* of gRPC */
    char *message;           /* grpc-message as it came */
    unsigned http_status;
    bool bad;       /* the answer is too long */
    unsigned moves; /* connections that ended before they took the call */
    enum bench_lane_kind kind;
    int32_t stream;         /* of ModelStreamInfer; 0 = none is open */
    struct strbuf response; /* of a stream: what has come of the next one, with its prefix */
};

static struct bench_grpc *grpc_lane_of(nghttp2_session *session, int32_t id)
{
    return nghttp2_session_get_stream_user_data(session, id);
}

static unsigned grpc_number(const uint8_t *text, size_t len)
{
    unsigned n = 0;
    for (size_t i = 0; i < len && i < 6 && text[i] >= '0' && text[i] <= '9'; i++)
        n = n * 10 + (unsigned)(text[i] - '0');
    return n;
}

static int bench_on_header(nghttp2_session *session, const nghttp2_frame *frame,
                           const uint8_t *name, size_t name_len, const uint8_t *value,
                           size_t value_len, uint8_t flags, void *user)
{
    (void)flags;
    (void)user;
    struct bench_grpc *g = grpc_lane_of(session, frame->hd.stream_id);
    if (!g)
        return 0;
    if (name_len == 7 && memcmp(name, ":status", 7) == 0) {
        g->http_status = grpc_number(value, value_len);
    } else if (name_len == 11 && memcmp(name, "grpc-status", 11) == 0) {
        g->status = (int)grpc_number(value, value_len);
    } else if (name_len == 12 && memcmp(name, "grpc-message", 12) == 0) {
        mem_free(g->message);
        g->message = mem_strndup((const char *)value, value_len);
    }
    return 0;
}

/* What became of a call; NULL = it was answered. */
static struct err *grpc_outcome(const struct bench_grpc *g, uint32_t code)
{
    if (g->bad)
        return err_new(STATUS_INTERNAL, "the answer is too long");
    if (g->status == 0)
        return NULL;
    if (g->status != GRPC_NONE) {
        char text[GRPC_TEXT_MESSAGE_BYTES] = "";
        size_t len = g->message ? grpc_text_decode(g->message, text, sizeof(text) - 1) : 0;
        text[len] = 0;
        return err_new(STATUS_INTERNAL, "%s (gRPC status %d)",
                       len ? text : "the server gives no reason", g->status);
    }
    if (g->http_status && g->http_status != 200)
        return err_new(
            STATUS_INTERNAL,
            "the server answers HTTP status %u and no gRPC; a port for HTTP takes -i http",
            g->http_status);
    return err_new(STATUS_UNAVAILABLE, "the call was ended without a status: %s",
                   nghttp2_http2_strerror(code));
}

static void grpc_end(struct bench_grpc *g, struct err *e)
{
    struct bench_call *c = g->call;
    g->call = NULL;
    g->moves = 0;
    mem_free(g->message);
    g->message = NULL;
    if (c)
        c->done(c, e);
    else
        err_free(e);
}

/* Whether a response says that it is the last: "triton_final_response" in its parameters. */
static bool is_final(const uint8_t *response, size_t len)
{
    static const char name[] = "triton_final_response";
    struct pb_wire w = pb_wire_of(response, len);
    struct pb_wire_field f, part;
    while (pb_wire_next(&w, &f) == PB_WIRE_FIELD) {
        if (f.number != FIELD_PARAMETERS || f.type != PB_WIRE_BYTES)
            continue;
        struct pb_wire entry = pb_wire_of(f.data, f.len);
        bool named = false, yes = false;
        while (pb_wire_next(&entry, &part) == PB_WIRE_FIELD) {
            if (part.type != PB_WIRE_BYTES)
                continue;
            if (part.number == FIELD_KEY)
                named = part.len == sizeof(name) - 1 && memcmp(part.data, name, part.len) == 0;
            else /* an InferParameter whose only field is bool_param, true */
                yes = part.len == 2 && part.data[0] == 0x08 && part.data[1] == 1;
        }
        if (named)
            return yes;
    }
    return false;
}

/* A ModelStreamInferResponse: counts it, and ends the call with its last one or an error. */
static void grpc_stream_response(struct bench_grpc *g, const uint8_t *message, size_t len)
{
    struct pb_wire w = pb_wire_of(message, len);
    struct pb_wire_field f;
    struct err *e = NULL;
    bool last = g->kind == BENCH_LANE_STREAM;
    while (pb_wire_next(&w, &f) == PB_WIRE_FIELD) {
        if (f.type != PB_WIRE_BYTES)
            continue;
        if (f.number == FIELD_ERROR && f.len && !e)
            e = err_new(STATUS_INVALID_ARG, "%.*s", (int)(f.len < 4096 ? f.len : 4096),
                        (const char *)f.data);
        else if (f.number == FIELD_RESPONSE)
            last = last || is_final(f.data, f.len);
    }
    if (!g->call) {
        err_free(e);
        return;
    }
    g->call->responses++;
    if (e || last)
        grpc_end(g, e);
}

/* Bytes of a stream: responses one after the other, each behind its prefix. False if one is too
 * long. */
static bool grpc_stream_bytes(struct bench_grpc *g, const uint8_t *data, size_t len)
{
    struct strbuf *b = &g->response;
    if (b->len + len > BENCH_WIRE_ANSWER_BYTES)
        return false;
    strbuf_append(b, data, len);
    size_t at = 0;
    while (b->len - at >= GRPC_PREFIX_BYTES) {
        const uint8_t *p = (const uint8_t *)b->data + at;
        size_t bytes = grpc_prefix_len(p);
        if (b->len - at - GRPC_PREFIX_BYTES < bytes)
            break;
        grpc_stream_response(g, p + GRPC_PREFIX_BYTES, bytes);
        if (!b->len) /* the next call went another way: this stream has ended */
            return true;
        at += GRPC_PREFIX_BYTES + bytes;
    }
    memmove(b->data, b->data + at, b->len - at);
    b->len -= at;
    return true;
}

static int bench_on_data(nghttp2_session *session, uint8_t flags, int32_t id, const uint8_t *data,
                         size_t len, void *user)
{
    (void)flags;
    (void)user;
    struct bench_grpc *g = grpc_lane_of(session, id);
    if (!g || !g->call)
        return 0;
    if (!g->call->came)
        g->call->came = g->conn->came;
    if (g->kind != BENCH_LANE_UNARY)
        return grpc_stream_bytes(g, data, len) ? 0 : NGHTTP2_ERR_CALLBACK_FAILURE;
    if (!g->call->keep)
        return 0;
    size_t skip = GRPC_PREFIX_BYTES - g->skipped < len ? GRPC_PREFIX_BYTES - g->skipped : len;
    g->skipped += skip;
    g->bad = g->bad || g->call->answer.len + len > BENCH_WIRE_ANSWER_BYTES;
    if (!g->bad)
        strbuf_append(&g->call->answer, data + skip, len - skip);
    return 0;
}

static int bench_on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *user)
{
    (void)session;
    struct bench_grpc_conn *c = user;
    c->leaves = c->leaves || frame->hd.type == NGHTTP2_GOAWAY;
    return 0;
}

static void grpc_send(struct bench_lane *l, struct bench_call *call);

static void grpc_send_again(struct bench_grpc *g)
{
    g->stream = 0;
    if (++g->moves < MOST_MOVES)
        grpc_send(&g->lane, g->call);
    else
        grpc_end(g, err_new(STATUS_UNAVAILABLE,
                            "the server ends every connection before it takes the call (%d in a "
                            "row)",
                            MOST_MOVES));
}

static int bench_on_close(nghttp2_session *session, int32_t id, uint32_t code, void *user)
{
    (void)user;
    struct bench_grpc *g = grpc_lane_of(session, id);
    if (!g)
        return 0;
    if (g->call && g->conn->leaves && code == NGHTTP2_REFUSED_STREAM) {
        grpc_send_again(g);
        return 0;
    }
    struct err *e = grpc_outcome(g, code);
    if (!e && g->kind != BENCH_LANE_UNARY)
        e = err_new(STATUS_UNAVAILABLE, "the server has ended the stream");
    g->stream = 0;
    grpc_end(g, e);
    return 0;
}

/* The session wants bytes of a call. */
static ssize_t grpc_give(nghttp2_session *session, int32_t id, uint8_t *to, size_t cap,
                         uint32_t *flags, nghttp2_data_source *source, void *user)
{
    (void)session;
    (void)id;
    (void)user;
    struct bench_grpc *g = source->ptr;
    size_t done = 0, before = 0;
    if (g->kind != BENCH_LANE_UNARY && (!g->call || g->call->sent))
        return NGHTTP2_ERR_DEFERRED; /* the stream waits for the next call */
    if (!g->call) {
        *flags |= NGHTTP2_DATA_FLAG_EOF;
        return 0;
    }
    for (int i = 0; i < BENCH_WIRE_PIECES; i++) {
        const struct iovec *piece = &g->call->pieces[i];
        size_t at = g->given + done - before;
        if (g->given + done < before + piece->iov_len && done < cap) {
            size_t n = piece->iov_len - at < cap - done ? piece->iov_len - at : cap - done;
            memcpy(to + done, (const char *)piece->iov_base + at, n);
            done += n;
        }
        before += piece->iov_len;
    }
    g->given += done;
    if (g->given == before) {
        if (g->kind == BENCH_LANE_UNARY)
            *flags |= NGHTTP2_DATA_FLAG_EOF;
        g->call->sent = g->conn->went;
    }
    return (ssize_t)done;
}

static void grpc_close(struct bench_grpc_conn *c, const char *why)
{
    if (c->watch.fd < 0)
        return;
    loop_del(c->wire->loop, &c->watch);
    sock_close(c->watch.fd);
    c->watch.fd = -1;
    struct list *it = c->lanes.next;
    while (it != &c->lanes) {
        struct bench_grpc *g = LIST_ITEM(it, struct bench_grpc, node);
        it = it->next;
        g->stream = 0;
        if (g->call)
            grpc_end(g, err_new(STATUS_UNAVAILABLE, "%s", why));
    }
}

static void grpc_fill(struct bench_grpc_conn *c)
{
    while (c->out_len + FRAME_BYTES < OUT_BYTES) {
        const uint8_t *frame;
        ssize_t n = nghttp2_session_mem_send(c->session, &frame);
        if (n <= 0)
            break;
        memcpy(c->out + c->out_len, frame, (size_t)n);
        c->out_len += (size_t)n;
    }
}

static void grpc_write(struct bench_grpc_conn *c)
{
    for (;;) {
        if (c->out_sent == c->out_len) {
            c->out_sent = c->out_len = 0;
            grpc_fill(c);
            if (!c->out_len)
                break;
        }
        struct iovec piece = {c->out + c->out_sent, c->out_len - c->out_sent};
        ssize_t n = sock_write(c->watch.fd, &piece, 1);
        if (n < 0) {
            grpc_close(c, "the server has closed the connection");
            return;
        }
        if (n == 0)
            break;
        c->out_sent += (size_t)n;
    }
    loop_mod(c->wire->loop, &c->watch, c->out_len ? EPOLLIN | EPOLLOUT : EPOLLIN);
    if (!nghttp2_session_want_read(c->session) && !nghttp2_session_want_write(c->session))
        grpc_close(c, "the server has ended the connection: is this its port for gRPC?");
}

static void grpc_conn_free(struct bench_grpc_conn *c)
{
    if (c->wire->conn == c)
        c->wire->conn = NULL;
    grpc_close(c, "");
    loop_task_cancel(&c->flush);
    nghttp2_session_del(c->session);
    mem_free(c->out);
    mem_free(c);
}

static void bench_on_flush(struct loop_task *t)
{
    struct bench_grpc_conn *c = LIST_ITEM(t, struct bench_grpc_conn, flush);
    c->went = clock_now_ns();
    if (list_empty(&c->lanes)) /* all have left */
        grpc_conn_free(c);
    else if (c->watch.fd >= 0)
        grpc_write(c);
}

/* Once a turn; at once where no turn is under way that would come to its end. */
static void grpc_flush(struct bench_grpc_conn *c)
{
    if (loop_current())
        loop_later(c->wire->loop, LOOP_PHASE_FLUSH, &c->flush);
    else
        bench_on_flush(&c->flush);
}

static void grpc_read(struct bench_grpc_conn *c)
{
    ssize_t n = sock_read(c->watch.fd, c->wire->buffer, BENCH_WIRE_READ_BYTES);
    if (n == -1)
        return;
    c->came = clock_now_ns();
    if (n <= 0) {
        grpc_close(c, "the server has closed the connection: is this its port for gRPC?");
    } else if (nghttp2_session_mem_recv(c->session, c->wire->buffer, (size_t)n) != n) {
        grpc_close(c, "what comes back is no HTTP/2: a port for HTTP takes -i http");
    } else {
        /* Not at the end of the turn: what waits for others' answers would count as the server's
         * time. */
        loop_task_cancel(&c->flush);
        bench_on_flush(&c->flush);
    }
}

static void grpc_ready(struct loop_fd *w, uint32_t events)
{
    struct bench_grpc_conn *c = LIST_ITEM(w, struct bench_grpc_conn, watch);
    if (events & ~(uint32_t)EPOLLOUT)
        grpc_read(c);
    else
        grpc_write(c);
}

static nghttp2_nv grpc_header(const char *name, const char *value)
{
    return (nghttp2_nv){.name = (uint8_t *)(uintptr_t)name,
                        .value = (uint8_t *)(uintptr_t)value,
                        .namelen = strlen(name),
                        .valuelen = strlen(value),
                        .flags = NGHTTP2_NV_FLAG_NO_COPY_NAME | NGHTTP2_NV_FLAG_NO_COPY_VALUE};
}

static nghttp2_session_callbacks *grpc_callbacks(struct bench_wire *w)
{
    if (w->callbacks || nghttp2_session_callbacks_new(&w->callbacks) != 0)
        return w->callbacks;
    nghttp2_session_callbacks_set_on_header_callback(w->callbacks, bench_on_header);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(w->callbacks, bench_on_data);
    nghttp2_session_callbacks_set_on_stream_close_callback(w->callbacks, bench_on_close);
    nghttp2_session_callbacks_set_on_frame_recv_callback(w->callbacks, bench_on_frame);
    return w->callbacks;
}

static bool grpc_session(struct bench_grpc_conn *c)
{
    static const nghttp2_settings_entry settings[] = {
        {NGHTTP2_SETTINGS_ENABLE_PUSH, 0},
        {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, INT32_MAX},
    };
    nghttp2_session_callbacks *callbacks = grpc_callbacks(c->wire);
    nghttp2_option *option = NULL;
    if (!callbacks || nghttp2_option_new(&option) != 0)
        return false;
    /* Messages of errors may end in a space. */
    nghttp2_option_set_no_rfc9113_leading_and_trailing_ws_validation(option, 1);
    bool made = nghttp2_session_client_new2(&c->session, callbacks, c, option) == 0;
    nghttp2_option_del(option);
    return made && nghttp2_submit_settings(c->session, NGHTTP2_FLAG_NONE, settings, 2) == 0 &&
           nghttp2_session_set_local_window_size(c->session, NGHTTP2_FLAG_NONE, 0, INT32_MAX) == 0;
}

static struct err *grpc_connect(struct bench_wire *w, struct bench_grpc_conn **ret)
{
    struct bench_grpc_conn *c = MEM_NEW(struct bench_grpc_conn);
    c->wire = w;
    c->watch = (struct loop_fd){.fd = -1, .ready = grpc_ready};
    c->flush.run = bench_on_flush;
    list_init(&c->flush.node);
    list_init(&c->lanes);
    struct err *e = bench_wire_connect(w, &c->watch.fd);
    if (!e && !grpc_session(c))
        e = err_new(STATUS_INTERNAL, "no memory for a session of HTTP/2");
    if (!e)
        e = loop_add(w->loop, &c->watch, EPOLLIN);
    if (!e) {
        c->out = mem_alloc(OUT_BYTES);
        *ret = c;
        return NULL;
    }
    if (c->watch.fd >= 0)
        sock_close(c->watch.fd);
    nghttp2_session_del(c->session);
    mem_free(c);
    return e;
}

static bool grpc_takes_calls(const struct bench_grpc_conn *c)
{
    return c->watch.fd >= 0 && !c->leaves;
}

/* Ends the stream of ModelStreamInfer, if one is open. */
static void grpc_end_stream(struct bench_grpc *g)
{
    if (!g->stream)
        return;
    nghttp2_session *session = g->conn->session;
    nghttp2_session_set_stream_user_data(session, g->stream, NULL);
    nghttp2_submit_rst_stream(session, NGHTTP2_FLAG_NONE, g->stream, NGHTTP2_CANCEL);
    g->stream = 0;
    g->response.len = 0;
}

/* Gives the lane a connection with room for it. */
static struct err *grpc_join(struct bench_wire *w, struct bench_grpc *g)
{
    struct bench_grpc_conn *c = w->conn;
    if (!c || c->lane_count >= w->options->calls_per_connection || !grpc_takes_calls(c)) {
        struct err *e = grpc_connect(w, &c);
        if (e)
            return e;
        w->conn = c;
    }
    g->conn = c;
    list_append(&c->lanes, &g->node);
    c->lane_count++;
    return NULL;
}

/* Puts the lane on another connection. The old one is freed later, for its session may be the
 * caller. */
static struct err *grpc_move(struct bench_grpc *g)
{
    struct bench_grpc_conn *old = g->conn;
    grpc_end_stream(g);
    list_remove(&g->node);
    struct err *e = grpc_join(old->wire, g);
    if (e) {
        list_append(&old->lanes, &g->node);
        return e;
    }
    old->lane_count--;
    grpc_flush(old);
    return NULL;
}

static void grpc_send(struct bench_lane *l, struct bench_call *call)
{
    struct bench_grpc *g = LIST_ITEM(l, struct bench_grpc, lane);
    call->answer.len = 0;
    call->sent = call->came = 0;
    call->responses = 0;
    g->call = call;
    g->given = g->skipped = 0;
    struct err *e = grpc_takes_calls(g->conn) ? NULL : grpc_move(g);
    if (e) {
        grpc_end(g, e);
        return;
    }
    struct bench_grpc_conn *c = g->conn;
    if (g->stream) {
        nghttp2_session_resume_data(c->session, g->stream);
        grpc_flush(c);
        return;
    }
    g->status = GRPC_NONE;
    g->http_status = 0;
    g->bad = false;
    const nghttp2_nv headers[] = {
        grpc_header(":method", "POST"),
        grpc_header(":scheme", "http"),
        grpc_header(":path", g->kind == BENCH_LANE_UNARY
                                 ? call->path
                                 : "/inference.GRPCInferenceService/ModelStreamInfer"),
        grpc_header(":authority", bench_options_authority(c->wire->options)),
        grpc_header("te", "trailers"),
        grpc_header("content-type", "application/grpc"),
        grpc_header("user-agent", "nereid-bench"),
    };
    nghttp2_data_provider body = {.source.ptr = g, .read_callback = grpc_give};
    int32_t id = nghttp2_submit_request(c->session, NULL, headers,
                                        sizeof(headers) / sizeof(*headers), &body, g);
    if (g->kind != BENCH_LANE_UNARY && id > 0)
        g->stream = id;
    if (id < 0)
        grpc_end(g, err_new(STATUS_UNAVAILABLE, "the connection takes no call: %s",
                            nghttp2_strerror(id)));
    else
        grpc_flush(c);
}

static void grpc_free(struct bench_lane *l)
{
    struct bench_grpc *g = LIST_ITEM(l, struct bench_grpc, lane);
    struct bench_grpc_conn *c = g->conn;
    grpc_end_stream(g);
    mem_free(g->message);
    strbuf_fini(&g->response);
    list_remove(&g->node);
    mem_free(g);
    if (list_empty(&c->lanes))
        grpc_conn_free(c);
}

struct err *bench_grpc_lane(struct bench_wire *w, enum bench_lane_kind kind,
                            struct bench_lane **ret)
{
    struct bench_grpc *g = MEM_NEW(struct bench_grpc);
    g->lane = (struct bench_lane){grpc_send, grpc_free};
    g->kind = kind;
    list_init(&g->node);
    struct err *e = grpc_join(w, g);
    if (e) {
        mem_free(g);
        return e;
    }
    *ret = &g->lane;
    return NULL;
}
