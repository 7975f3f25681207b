#include "http/http2_conn.h"

#include "base/budget.h"
#include "base/log.h"
#include "base/mem.h"
#include "http/http2_answer.h"
#include "http/http2_stream.h"
#include "http/http_conn.h"
#include "http/http_cut.h"
#include "http/http_out.h"
#include "http/http_shard.h"
#include "net/door.h"
#include "net/tls/wire.h"
#include "net/turns.h"
#include "server/worker.h"

#include <string.h>
#include <sys/epoll.h>

static struct loop *http2_conn_loop(const struct http2_conn *h)
{
    return h->conn->shard->worker->loop;
}

static time_ns http2_conn_now(const struct http2_conn *h)
{
    return loop_now(http2_conn_loop(h));
}

static void flush_h2_later(struct http2_conn *h)
{
    loop_later(http2_conn_loop(h), LOOP_PHASE_FLUSH, &h->conn->flush);
}

static void on_h2_goodbye(struct loop_timer *t)
{
    struct http2_conn *h = LIST_ITEM(t, struct http2_conn, goodbye);
    h2_peer_say_goodbye(&h->peer, h->session);
    flush_h2_later(h);
}

static void retire_h2(struct http2_conn *h)
{
    if (h->peer.retiring)
        return;
    h2_peer_retire(&h->peer, h->session);
    loop_timer_set(http2_conn_loop(h), &h->goodbye, http2_conn_now(h) + H2_PEER_GOODBYE);
    flush_h2_later(h);
}

bool http2_conn_begin(struct http_conn *c)
{
    static const struct h2_peer_limits limits = {
        .streams = HTTP2_CONN_MAX_STREAMS,
        .window_bytes = HTTP2_CONN_WINDOW,
        .frame_bytes = HTTP2_CONN_FRAME_BYTES,
        .header_bytes = HTTP2_HEAD_BYTES,
    };
    struct http_shard *s = c->shard;
    struct http2_conn *h = MEM_NEW(struct http2_conn);
    h->conn = c;
    h2_peer_init(&h->peer, "HTTP/2");
    h->session =
        h2_peer_session(&h->peer, &limits, s->front->h2_callbacks, s->front->h2_options, h);
    if (!h->session) {
        mem_free(h);
        return false;
    }
    h2_out_init(&h->out);
    list_init(&h->streams);
    list_init(&h->ready);
    list_init(&h->put_off);
    h->goodbye.due = on_h2_goodbye;
    h->progress = h->sent = http2_conn_now(h);
    http_conn_account(c);
    c->h2 = h;
    if (!s->batch)
        s->batch = MEM_NEW(struct h2_batch);
    if (s->draining)
        retire_h2(h);
    return true;
}

/* Writes until the session has no output or the socket takes no more. Returns false if the
 * connection has ended. */
static bool write_h2(struct http2_conn *h)
{
    struct http_conn *c = h->conn;
    struct h2_batch *b = c->shard->batch;
    uint64_t before = h->out.written;
    bool waited = h2_out_waits(&h->out);
    bool ok = !waited || h2_out_resume(&h->out, c->fd.fd, c->tls);
    while (ok && !h2_out_waits(&h->out)) {
        ok = h2_peer_gather(&h->peer, h->session, &h->out, b);
        if (b->count == 0)
            break;
        ok = h2_out_write(&h->out, b, c->fd.fd, c->tls) && ok;
    }
    if (h2_out_waits(&h->out) && !waited)
        h->sent = http2_conn_now(h);
    if (h->out.written != before) {
        h->progress = h->sent = http2_conn_now(h);
        front_metrics_add(&c->shard->metrics->sent_bytes, h->out.written - before);
    }
    return ok && (h2_out_waits(&h->out) || h2_peer_wants(&h->peer, h->session));
}

/* Nothing more is said on the connection. */
static void end_h2(struct http2_conn *h)
{
    struct http_conn *c = h->conn;
    if (h->peer.expelled) /* so that the client reads the reason */
        sock_discard(c->fd.fd, SOCK_DISCARD_BYTES);
    if (c->tls)
        tls_conn_goodbye(c->tls);
    http_conn_kill(c);
}

void http2_conn_take(struct http_conn *c, const char *data, size_t n)
{
    struct http2_conn *h = c->h2;
    h->progress = http2_conn_now(h);
    h->whole = false;
    if (!h2_peer_take(&h->peer, h->session, data, n)) {
        write_h2(h); /* what the session still has to say */
        end_h2(h);
        return;
    }
    bool partial = !h->peer.greeted || h2_frames_partial(&h->peer.frames);
    if (!partial)
        h->begun = 0;
    else if (!h->begun || h->whole) /* of a busy client the last frame is often cut */
        h->begun = h->progress;
    flush_h2_later(h);
}

/* Reads once. Returns false if the client is gone. */
static bool read_h2(struct http_conn *c)
{
    struct worker *w = c->shard->worker;
    bool wary = c->fd.lane == LOOP_LANE_SLOW || !list_empty(&c->h2->put_off);
    if (wary && c->share.bytes > HTTP_CONN_READ_FIRST)
        c->share.bytes = HTTP_CONN_READ_FIRST;
    c->share.full = 0;
    ssize_t got = wire_read(c->fd.fd, c->tls, w->receive, c->share.bytes);
    if (got == -1)
        return true;
    if (got <= 0)
        return false;
    turns_share_read(&c->share, &w->reader, w->loop, (size_t)got, w->receive_bytes);
    if (got < TURNS_BYTES)
        turns_add(&c->turns, TURNS_READ);
    worker_received(w, (size_t)got);
    front_metrics_add(&c->shard->metrics->received_bytes, (uint64_t)got);
    http2_conn_take(c, w->receive, (size_t)got);
    return true;
}

void http2_conn_ready(struct http_conn *c, uint32_t events)
{
    struct http2_conn *h = c->h2;
    if ((events & (EPOLLIN | EPOLLHUP | EPOLLERR)) && !read_h2(c))
        http_conn_kill(c);
    if (c->dead)
        return;
    if (events & EPOLLOUT)
        http2_stream_turn(h);
    bool more = c->share.full || !c->proven || http2_stream_waits(h);
    turns_judge(http2_conn_loop(h), &c->fd, turns_of(c->turns, c->told), more);
    flush_h2_later(h);
}

/* A batch of what is due, of each stream in turn. Writing out long texts takes a while: others have
 * their turn before the next batch. */
static void send_some_due(struct http2_conn *h)
{
    uint64_t bytes = 0;
    while (!list_empty(&h->ready) && bytes < HTTP_OUT_BYTES) {
        struct http2_stream *s = LIST_ITEM(list_pop(&h->ready), struct http2_stream, ready);
        if (http_conn_is_due(&s->line))
            bytes += http2_answer_send(s);
        if (http_conn_is_due(&s->line))
            http2_stream_ready(s);
    }
    if (!list_empty(&h->ready))
        loop_later(http2_conn_loop(h), LOOP_PHASE_SPARE, &h->conn->flush);
}

void http2_conn_flush(struct http_conn *c)
{
    struct http2_conn *h = c->h2;
    send_some_due(h);
    bool goes_on = write_h2(h);
    turns_share_done(&c->share, http2_conn_loop(h), c->shard->worker->receive_bytes);
    if (!goes_on || (h->peer.said_goodbye && list_empty(&h->streams) && !h2_out_waits(&h->out)))
        end_h2(h);
    else
        http2_conn_watch(c);
}

static time_ns stall_of(const struct http2_conn *h)
{
    time_ns stall = h->conn->shard->front->patience.stall;
    return h->conn->shard->draining ? time_sooner(stall, DOOR_STALL) : stall;
}

/* When a frame that has begun took too long. While the front end stops, requests under way are
 * waited for first. */
static time_ns frame_over(const struct http2_conn *h)
{
    bool draining = h->conn->shard->draining;
    if (!h->begun || (draining && h->conn->in_flight))
        return TIME_NEVER;
    if (h->receiving)
        return h->progress + stall_of(h);
    time_ns head = h->conn->shard->front->patience.head;
    return h->begun + (draining ? time_sooner(head, DOOR_STALL) : head);
}

/* When the connection has waited too long for its client; TIME_NEVER = it waits for nothing, or
 * only for models. */
static time_ns h2_over(const struct http2_conn *h)
{
    const struct http_patience *p = &h->conn->shard->front->patience;
    time_ns over = frame_over(h);
    if (h2_out_waits(&h->out))
        return time_sooner(over, h->sent + stall_of(h));
    if (h->answering && nghttp2_session_get_remote_window_size(h->session) <= 0)
        return time_sooner(over, h->moved + stall_of(h));
    if (list_empty(&h->streams) && !h->peer.retiring)
        return time_sooner(over, h->progress + p->idle);
    return over;
}

/* When a stream has waited too long for its client: for its body, or for its window. */
static time_ns stream_over(const struct http2_stream *s)
{
    if (s->stage == HTTP2_STAGE_BODY)
        return s->arrived + stall_of(s->h2);
    bool closed =
        s->replies && nghttp2_session_get_stream_remote_window_size(s->h2->session, s->id) <= 0;
    return closed ? s->moved + stall_of(s->h2) : TIME_NEVER;
}

/* Ends the streams that wait too long. */
static void judge_streams(struct http2_conn *h, time_ns now)
{
    LIST_EACH (node, &h->streams) {
        struct http2_stream *s = LIST_ITEM(node, struct http2_stream, node);
        if (now < stream_over(s))
            continue;
        LOG_VERBOSE(1, "HTTP/2: ending a request whose client does not go on with it");
        http2_stream_reset(s, s->stage == HTTP2_STAGE_BODY ? NGHTTP2_CANCEL
                                                           : NGHTTP2_ENHANCE_YOUR_CALM);
        flush_h2_later(h);
    }
}

void http2_conn_due(struct http_conn *c)
{
    struct http2_conn *h = c->h2;
    time_ns now = http2_conn_now(h);
    time_ns over = h2_over(h);
    if (now < over) {
        judge_streams(h, now);
        time_ns next = now + time_sooner(c->shard->front->patience.shortest, stall_of(h));
        loop_timer_set(http2_conn_loop(h), &c->timer, time_sooner(over, next));
    } else if (list_empty(&h->streams) && !h->begun) { /* it was only idle */
        retire_h2(h);
        http2_conn_watch(c);
    } else {
        LOG_VERBOSE(1, "HTTP/2: closing a connection that made no progress");
        http_conn_kill(c);
    }
}

void http2_conn_watch(struct http_conn *c)
{
    struct http2_conn *h = c->h2;
    bool out = h2_out_waits(&h->out) || http2_stream_waits(h);
    loop_mod(http2_conn_loop(h), &c->fd, wire_events(c->tls, EPOLLIN | (out ? EPOLLOUT : 0u)));
    if (!c->timer.heap_index)
        loop_timer_set(http2_conn_loop(h), &c->timer,
                       http2_conn_now(h) + c->shard->front->patience.shortest);
}

void http2_conn_drain(struct http_conn *c)
{
    retire_h2(c->h2);
    http2_conn_watch(c);
    time_ns soon = http2_conn_now(c->h2) + DOOR_STALL;
    if (c->timer.when > soon)
        loop_timer_set(http2_conn_loop(c->h2), &c->timer, soon);
}

unsigned http2_conn_cut(struct http_conn *c)
{
    struct http2_conn *h = c->h2;
    unsigned count = 0;
    LIST_EACH (node, &h->streams) {
        struct http2_stream *s = LIST_ITEM(node, struct http2_stream, node);
        count += http_cut_line(&s->line);
        while (http_conn_is_due(&s->line))
            http2_answer_send(s);
    }
    write_h2(h);
    if (c->tls)
        tls_conn_goodbye(c->tls);
    return count;
}

void http2_conn_abandon(struct http2_conn *h)
{
    loop_timer_clear(http2_conn_loop(h), &h->goodbye);
    LIST_EACH (node, &h->streams)
        http2_stream_closed(LIST_ITEM(node, struct http2_stream, node));
}

void http2_conn_free(struct http2_conn *h)
{
    if (!h)
        return;
    h2_peer_session_free(h->session);
    h2_out_fini(&h->out);
    h2_peer_streams_gone(&h->peer, h->conn->account, HTTP2_STREAM_BYTES);
    mem_free(h);
}

static int on_h2_ping(struct http2_conn *h)
{
    if (++h->pings <= HTTP2_CONN_PINGS)
        return 0;
    return h2_peer_expel(&h->peer, h->session, "too_many_pings");
}

static int on_h2_frame(nghttp2_session *session, const nghttp2_frame *frame, void *user)
{
    struct http2_conn *h = user;
    h->whole = true;
    if (frame->hd.type == NGHTTP2_DATA || frame->hd.type == NGHTTP2_HEADERS)
        http2_stream_frame(h, frame);
    else if (frame->hd.type == NGHTTP2_PING && !(frame->hd.flags & NGHTTP2_FLAG_ACK))
        return on_h2_ping(h);
    else
        return h2_peer_received(&h->peer, session, frame);
    return 0;
}

static int on_h2_sent(nghttp2_session *session, const nghttp2_frame *frame, void *user)
{
    struct http2_conn *h = user;
    bool answers = frame->hd.type == NGHTTP2_DATA || frame->hd.type == NGHTTP2_HEADERS;
    if (answers)
        h->conn->turns = h->pings = 0;
    h2_peer_sent(&h->peer, session, frame);
    if (!answers || !(frame->hd.flags & NGHTTP2_FLAG_END_STREAM))
        return 0;
    /* The answer is out: a client that still sends is told to stop. */
    struct http2_stream *s = nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);
    if (s && !s->half_closed)
        http2_stream_reset(s, NGHTTP2_NO_ERROR);
    return 0;
}

static int on_h2_begin_frame(nghttp2_session *session, const nghttp2_frame_hd *head, void *user)
{
    (void)session;
    struct http2_conn *h = user;
    turns_frame(&h->conn->turns, head->type == NGHTTP2_DATA ? head->length : 0);
    return 0;
}

static ssize_t h2_data_bytes(nghttp2_session *session, uint8_t type, int32_t id,
                             int32_t session_window, int32_t stream_window, uint32_t frame_bytes,
                             void *user)
{
    (void)type;
    (void)user;
    uint64_t left = http2_answer_left(nghttp2_session_get_stream_user_data(session, id));
    return h2_peer_data_bytes(left, session_window, stream_window, frame_bytes);
}

static int send_h2_data(nghttp2_session *session, nghttp2_frame *frame, const uint8_t *head,
                        size_t length, nghttp2_data_source *source, void *user)
{
    (void)session;
    (void)frame; /* no padding was requested, so the frame has none */
    struct http2_conn *h = user;
    const struct http2_stream *s = source->ptr;
    if (s->given_up) /* the frame waited for the socket */
        return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    bool done = http2_answer_put(source->ptr, h->conn->shard->batch, head, length);
    return done ? 0 : NGHTTP2_ERR_WOULDBLOCK;
}

void http2_conn_callbacks(nghttp2_session_callbacks *c)
{
    nghttp2_session_callbacks_set_on_frame_recv_callback(c, on_h2_frame);
    nghttp2_session_callbacks_set_on_begin_frame_callback(c, on_h2_begin_frame);
    nghttp2_session_callbacks_set_on_frame_send_callback(c, on_h2_sent);
    nghttp2_session_callbacks_set_data_source_read_length_callback(c, h2_data_bytes);
    nghttp2_session_callbacks_set_send_data_callback(c, send_h2_data);
    http2_stream_callbacks(c);
}

void http2_conn_options(nghttp2_option *o)
{
    h2_peer_options(o);
}
