#include "grpc/grpc_conn.h"

#include "base/budget.h"
#include "base/log.h"
#include "base/mem.h"
#include "grpc/grpc_answer.h"
#include "grpc/grpc_method.h"
#include "grpc/grpc_patience.h"
#include "grpc/grpc_scatter.h"
#include "grpc/grpc_turn.h"
#include "metrics/front_metrics.h"
#include "net/tls/wire.h"
#include "net/turns.h"
#include "server/worker.h"

#include <string.h>
#include <sys/epoll.h>

static const uint8_t keepalive_ping[8] = "alive?";

/* The events that are always watched; the client's end of the stream is a separate event. */
#define WATCHED (EPOLLIN | EPOLLRDHUP)

/* How often a connection may read in one turn while a large message arrives and every read fills
 * its buffer. */
#define READS_PER_TURN 8

/* Giving up this many calls takes so long that others should not wait for it. */
#define CALLS_MANY 16u

/* How much is read in the first turn of a connection, and at most in a turn of a connection that
 * is in the slow lane or has calls that wait for a turn. A few kilobytes may be dozens of calls. */
#define READ_FIRST  ((size_t)1024)
#define FILL_LEAST  ((size_t)32768) /* of a large message */
#define READ_WARILY ((size_t)4096)

static struct loop *grpc_conn_loop(const struct grpc_conn *c)
{
    return c->home->worker->loop;
}

/* Makes the session when it is needed: with the client's first bytes, or when the client must be
 * told something. A session is forty times as large as the rest of a connection. Returns false
 * if there is no memory. */
static bool has_session(struct grpc_conn *c)
{
    static const struct h2_peer_limits limits = {
        .streams = GRPC_CONN_MAX_STREAMS,
        .window_bytes = GRPC_CONN_WINDOW,
        .frame_bytes = GRPC_CONN_FRAME_BYTES,
        .header_bytes = GRPC_CONN_HEADER_BYTES,
    };
    if (c->session)
        return true;
    c->account = c->account ? c->account : budget_account_new();
    c->session = h2_peer_session(&c->peer, &limits, c->home->callbacks, c->home->options, c);
    return c->session;
}

/* Writes until the session has no output or the socket takes no more. Returns false if the
 * connection has ended. */
static bool write_out(struct grpc_conn *c)
{
    if (!c->session) {
        loop_mod(grpc_conn_loop(c), &c->watch, wire_events(c->tls, WATCHED));
        return true;
    }
    struct h2_batch *b = c->home->batch;
    uint64_t before = c->out.written;
    bool waited = h2_out_waits(&c->out);
    bool ok = !h2_out_waits(&c->out) || h2_out_resume(&c->out, c->watch.fd, c->tls);
    while (ok && !h2_out_waits(&c->out)) {
        ok = h2_peer_gather(&c->peer, c->session, &c->out, b);
        if (b->count == 0)
            break;
        ok = h2_out_write(&c->out, b, c->watch.fd, c->tls) && ok;
    }
    if (h2_out_waits(&c->out) && !waited)
        c->sent = loop_now(grpc_conn_loop(c));
    if (c->out.written != before) {
        c->progress = c->sent = loop_now(grpc_conn_loop(c));
        front_metrics_add(&c->home->metrics->sent_bytes, c->out.written - before);
    }
    if (!ok)
        return false;
    bool more = h2_out_waits(&c->out) || grpc_turn_waits(c);
    loop_mod(grpc_conn_loop(c), &c->watch,
             wire_events(c->tls, more ? WATCHED | EPOLLOUT : WATCHED));
    return h2_out_waits(&c->out) || h2_peer_wants(&c->peer, c->session);
}

static void grpc_conn_on_flush(struct loop_task *t)
{
    struct grpc_conn *c = LIST_ITEM(t, struct grpc_conn, flush);
    bool ok = write_out(c);
    if (ok && c->held_streams)
        grpc_stream_resume(c);
    turns_share_done(&c->share, grpc_conn_loop(c), c->home->worker->receive_bytes);
    bool over = !ok || (c->peer.said_goodbye && list_empty(&c->streams) && !h2_out_waits(&c->out));
    if (over)
        grpc_conn_close(c);
    else
        grpc_patience_watch(c);
}

void grpc_conn_flush_later(struct grpc_conn *c)
{
    loop_later(grpc_conn_loop(c), LOOP_PHASE_FLUSH, &c->flush);
}

static bool grpc_conn_feed(struct grpc_conn *c, const void *data, size_t n)
{
    if (!has_session(c))
        return false;
    if (h2_peer_take(&c->peer, c->session, data, n))
        return true;
    if (!c->peer.greeted && !c->tls)
        wire_note_tls(c->watch.fd, data, "grpc");
    write_out(c); /* send what the session still has to say */
    return false;
}

/* Feeds bytes of a plan from where they were read to. */
static bool feed_pieces(struct grpc_conn *c, const struct grpc_scatter *plan, size_t n)
{
    bool ok = true;
    for (uint32_t i = 0; n > 0 && ok; i++) {
        size_t here = plan->pieces[i].iov_len < n ? plan->pieces[i].iov_len : n;
        ok = grpc_conn_feed(c, plan->pieces[i].iov_base, here);
        n -= here;
    }
    return ok;
}

/* Reads once; bytes of a large message go directly to their place. Returns as sock_read; -2 also
 * if the session has ended. */
static ssize_t read_filling(struct grpc_conn *c)
{
    struct worker *w = c->home->worker;
    struct grpc_inbox *in = &c->filling->in;
    uint32_t stream = (uint32_t)c->filling->id;
    struct grpc_scatter plan;
    /* If several messages alternate, the owner of the next frame is unknown, so only the rest of
     * this frame is planned. Otherwise the number is larger than any plan. */
    size_t most = c->receiving > 1 ? c->frame_left : GRPC_SCATTER_BYTES + GRPC_CONN_FRAME_BYTES;
    size_t rest = w->receive_bytes;
    bool others_wait = c->watch.lane != LOOP_LANE_FRONT;
    time_ns began = others_wait ? clock_thread_ns() : 0;
    if (others_wait) {
        size_t share = c->share.bytes > FILL_LEAST ? c->share.bytes : FILL_LEAST;
        size_t frames = share + c->frame_bytes; /* a part of a frame is not planned */
        most = most < frames ? most : frames;
        rest = rest < share ? rest : share;
    }
    size_t room = grpc_inbox_room(in, most);
    grpc_scatter_plan(&plan, grpc_inbox_place(in), grpc_inbox_left(in), room, c->frame_left,
                      c->frame_bytes, w->receive, rest);
    ssize_t n = wire_read_pieces(c->watch.fd, c->tls, plan.pieces, (int)plan.count);
    if (n <= 0)
        return n;
    turns_share_read(&c->share, &w->reader, grpc_conn_loop(c), (size_t)n, w->receive_bytes);
    if (others_wait)
        turns_share_began(&c->share, began);
    size_t good = grpc_scatter_check(&plan, (size_t)n, stream);
    size_t wrong = (size_t)n - good;
    uint8_t *moved = NULL;
    if (wrong > 0) {
        moved = mem_try_alloc(wrong, 8);
        if (!moved)
            return -2;
        grpc_scatter_copy(&plan, good, (size_t)n, moved);
    }
    worker_received(w, grpc_scatter_rest(&plan, (size_t)n));
    struct buf *buf = buf_ref(in->buf); /* the bytes in it may end the call that owns it */
    bool ok = feed_pieces(c, &plan, good) && (wrong == 0 || grpc_conn_feed(c, moved, wrong));
    if (!c->filling) /* a complete message says nothing about how much to read */
        c->share.full = 0;
    buf_unref(buf);
    mem_free(moved);
    return ok ? n : -2;
}

void grpc_conn_of_use(struct grpc_conn *c)
{
    c->turns = 0;
    h2_peer_of_use(&c->peer);
    if (c->proven)
        return;
    c->proven = true;
    turns_stranger_known(&c->home->strangers);
}

/* How much to read in this turn. Uses the share itself, so that a read of all of it counts as
 * full. */
static size_t read_at_once(struct grpc_conn *c)
{
    bool wary = c->watch.lane == LOOP_LANE_SLOW || !list_empty(&c->put_off);
    if (wary && c->share.bytes > READ_WARILY)
        c->share.bytes = READ_WARILY;
    return c->share.bytes;
}

static ssize_t read_once(struct grpc_conn *c)
{
    struct worker *w = c->home->worker;
    c->share.full = 0;
    /* While a part of a header has come, what comes next is not where a plan puts it. */
    if (c->filling && !c->peer.frames.head_got)
        return read_filling(c);
    ssize_t n = wire_read(c->watch.fd, c->tls, w->receive, read_at_once(c));
    if (n <= 0)
        return n;
    turns_share_read(&c->share, &w->reader, grpc_conn_loop(c), (size_t)n, w->receive_bytes);
    if (n < TURNS_BYTES)
        turns_add(&c->turns, TURNS_READ);
    worker_received(w, (size_t)n);
    return grpc_conn_feed(c, w->receive, (size_t)n) ? n : -2;
}

/* Bytes came. If they answer a ping of the server, the next silence begins. */
static void heard(struct grpc_conn *c)
{
    bool awaited = c->keepalive.pinged;
    grpc_keepalive_heard(&c->keepalive, c->progress);
    if (awaited)
        loop_timer_set(grpc_conn_loop(c), &c->keepalive_timer, c->progress);
}

/* Reads from the connection. Returns false if it has ended. */
static bool read_in(struct grpc_conn *c)
{
    for (int i = 0; i < READS_PER_TURN; i++) {
        ssize_t n = read_once(c);
        if (n == -1)
            break;
        if (n <= 0)
            return false;
        c->progress = loop_now(grpc_conn_loop(c));
        heard(c);
        front_metrics_add(&c->home->metrics->received_bytes, (uint64_t)n);
        bool more = c->filling && (size_t)n >= c->home->worker->receive_bytes;
        if (!more || c->watch.lane != LOOP_LANE_FRONT)
            break;
    }
    return true;
}

static void grpc_conn_on_ready(struct loop_fd *watch, uint32_t events)
{
    struct grpc_conn *c = LIST_ITEM(watch, struct grpc_conn, watch);
    events = wire_ready(c->tls, events);
    bool ends = events & (EPOLLHUP | EPOLLERR | EPOLLRDHUP);
    if (turns_end_later(grpc_conn_loop(c), &c->watch, ends && c->peer.streams > CALLS_MANY))
        return;
    if ((events & (EPOLLIN | EPOLLHUP | EPOLLERR)) && !read_in(c)) {
        grpc_conn_close(c);
        return;
    }
    if (events & EPOLLOUT)
        grpc_turn_go_on(c);
    bool more = c->filling ? grpc_inbox_left(&c->filling->in) > TURNS_LONG : c->share.full;
    more |= !c->proven || grpc_turn_waits(c);
    turns_judge(grpc_conn_loop(c), &c->watch, turns_of(c->turns, c->told), more);
    grpc_conn_flush_later(c);
}

/* Clients of gRPC know this text, and then ping less often. */
static int on_ping(struct grpc_conn *c)
{
    bool may = grpc_keepalive_was_pinged(&c->keepalive, &c->home->rules,
                                         loop_now(grpc_conn_loop(c)), !list_empty(&c->streams));
    return may ? 0 : h2_peer_expel(&c->peer, c->session, "too_many_pings");
}

static int on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *user)
{
    struct grpc_conn *c = user;
    if (frame->hd.type == NGHTTP2_DATA || frame->hd.type == NGHTTP2_HEADERS)
        grpc_stream_frame(c, frame);
    else if (frame->hd.type == NGHTTP2_PING && !(frame->hd.flags & NGHTTP2_FLAG_ACK))
        return on_ping(c);
    else
        return h2_peer_received(&c->peer, session, frame);
    return 0;
}

static int on_sent(nghttp2_session *session, const nghttp2_frame *frame, void *user)
{
    struct grpc_conn *c = user;
    if (frame->hd.type == NGHTTP2_DATA || frame->hd.type == NGHTTP2_HEADERS) {
        grpc_keepalive_sent(&c->keepalive);
        c->turns = 0;
    }
    h2_peer_sent(&c->peer, session, frame);
    if (!c->stopping_streams || frame->hd.type != NGHTTP2_HEADERS ||
        !(frame->hd.flags & NGHTTP2_FLAG_END_STREAM))
        return 0;
    struct grpc_stream *s = grpc_stream_find(c, frame->hd.stream_id);
    if (s)
        grpc_answer_sent(s);
    return 0;
}

static int on_begin_frame(nghttp2_session *session, const nghttp2_frame_hd *head, void *user)
{
    (void)session;
    struct grpc_conn *c = user;
    c->filling = NULL;
    turns_frame(&c->turns, head->type == NGHTTP2_DATA ? head->length : 0);
    if (head->type == NGHTTP2_DATA) {
        bool plain = !(head->flags & NGHTTP2_FLAG_PADDED);
        c->frame_bytes = plain ? (uint32_t)head->length : 0;
        c->frame_left = c->frame_bytes;
    }
    return 0;
}

static ssize_t grpc_conn_data_bytes(nghttp2_session *session, uint8_t type, int32_t id,
                                    int32_t session_window, int32_t stream_window,
                                    uint32_t frame_bytes, void *user)
{
    (void)session;
    (void)type;
    uint64_t left = grpc_answer_left(grpc_stream_find(user, id));
    return h2_peer_data_bytes(left, session_window, stream_window, frame_bytes);
}

static int send_data(nghttp2_session *session, nghttp2_frame *frame, const uint8_t *head,
                     size_t length, nghttp2_data_source *source, void *user)
{
    (void)session;
    struct grpc_conn *c = user;
    (void)frame; /* no padding was requested, so the frame has none */
    bool done = grpc_answer_gather(source->ptr, c->home->batch, head, H2_PEER_HEAD_BYTES, length);
    return done ? 0 : NGHTTP2_ERR_WOULDBLOCK;
}

void grpc_conn_callbacks(nghttp2_session_callbacks *c)
{
    nghttp2_session_callbacks_set_on_frame_recv_callback(c, on_frame);
    nghttp2_session_callbacks_set_on_begin_frame_callback(c, on_begin_frame);
    nghttp2_session_callbacks_set_on_frame_send_callback(c, on_sent);
    nghttp2_session_callbacks_set_data_source_read_length_callback(c, grpc_conn_data_bytes);
    nghttp2_session_callbacks_set_send_data_callback(c, send_data);
    grpc_stream_callbacks(c);
}

void grpc_conn_options(nghttp2_option *o)
{
    h2_peer_options(o);
    /* Metadata may begin and end with blanks; models get it unchanged. */
    nghttp2_option_set_no_rfc9113_leading_and_trailing_ws_validation(o, 1);
}

static void on_keepalive(struct loop_timer *t);

static void start_keepalive(struct grpc_conn *c)
{
    time_ns now = loop_now(grpc_conn_loop(c));
    c->keepalive_timer.due = on_keepalive;
    grpc_keepalive_init(&c->keepalive, &c->home->rules, now, clock_now_ns() >> 4);
    on_keepalive(&c->keepalive_timer);
}

void grpc_conn_open(struct grpc_home *home, int fd)
{
    struct grpc_conn *c = MEM_NEW(struct grpc_conn);
    c->home = home;
    c->watch.fd = fd;
    c->watch.ready = grpc_conn_on_ready;
    c->turns = home->strangers;
    c->watch.lane = turns_lane(c->turns, true);
    c->flush.run = grpc_conn_on_flush;
    c->timer.due = grpc_patience_due;
    list_init(&c->flush.node);
    list_init(&c->streams);
    list_init(&c->put_off);
    h2_out_init(&c->out);
    h2_peer_init(&c->peer, "gRPC");
    c->share.bytes = READ_FIRST;
    c->progress = c->sent = loop_now(home->worker->loop);
    if (!home->batch)
        home->batch = mem_alloc(sizeof(*home->batch));
    home->batch->count = 0;
    home->batch->used = 0;
    if (home->tls.tls)
        c->tls = tls_conn_new(&home->tls, fd, c);
    list_append(&home->conns, &c->node);
    c->late = home->stopping;
    home->awaited += !c->late;
    front_metrics_add(&home->metrics->opened, 1);
    struct err *e = loop_add(home->worker->loop, &c->watch, WATCHED);
    if (e) {
        LOG_WARN("gRPC: cannot serve a connection: %s", err_message(e));
        err_free(e);
        c->watch.ready = NULL; /* it is not watched */
        grpc_conn_close(c);
        return;
    }
    grpc_patience_watch(c);
    start_keepalive(c);
}

static void on_goodbye_due(struct loop_timer *t)
{
    struct grpc_conn *c = LIST_ITEM(t, struct grpc_conn, goodbye);
    if (!c->session || !wire_can_write(c->tls)) { /* who is still in its handshake has no call */
        grpc_conn_close(c);
        return;
    }
    h2_peer_say_goodbye(&c->peer, c->session);
    grpc_conn_flush_later(c);
}

/* Tells the client to open no more calls. */
static void grpc_conn_retire(struct grpc_conn *c)
{
    if (c->peer.retiring)
        return;
    h2_peer_retire(&c->peer, has_session(c) ? c->session : NULL);
    c->goodbye.due = on_goodbye_due;
    loop_timer_set(grpc_conn_loop(c), &c->goodbye, loop_now(grpc_conn_loop(c)) + H2_PEER_GOODBYE);
    grpc_conn_flush_later(c);
}

static void on_keepalive(struct loop_timer *t)
{
    struct grpc_conn *c = LIST_ITEM(t, struct grpc_conn, keepalive_timer);
    time_ns next = TIME_NEVER;
    switch (grpc_keepalive_due(&c->keepalive, &c->home->rules, loop_now(grpc_conn_loop(c)),
                               !list_empty(&c->streams), &next)) {
    case GRPC_KEEPALIVE_WAIT:
        break;
    case GRPC_KEEPALIVE_PING:
        if (has_session(c))
            nghttp2_submit_ping(c->session, NGHTTP2_FLAG_NONE, keepalive_ping);
        grpc_conn_flush_later(c);
        break;
    case GRPC_KEEPALIVE_RETIRE:
        grpc_conn_retire(c);
        break;
    case GRPC_KEEPALIVE_DEAD:
    case GRPC_KEEPALIVE_CUT:
        LOG_VERBOSE(1, "gRPC: closing a connection that %s",
                    c->peer.retiring ? "has come of age" : "does not answer a ping");
        grpc_conn_close(c);
        return;
    }
    if (next != TIME_NEVER)
        loop_timer_set(grpc_conn_loop(c), t, next);
}

static void grpc_conn_leave(struct grpc_conn *c)
{
    c->fresh = false;
    c->leaving = true;
    grpc_conn_retire(c);
    LIST_EACH (node, &c->streams)
        grpc_stream_leave(LIST_ITEM(node, struct grpc_stream, node));
    grpc_conn_flush_later(c);
}

static void on_fresh_due(struct loop_timer *t)
{
    grpc_conn_leave(LIST_ITEM(t, struct grpc_conn, goodbye));
}

static bool grpc_conn_was_called(const struct grpc_conn *c)
{
    return c->session && nghttp2_session_get_last_proc_stream_id(c->session) > 0;
}

void grpc_conn_goodbye(struct grpc_conn *c)
{
    if (c->leaving || c->fresh)
        return;
    time_ns until = c->progress + GRPC_CONN_FRESH;
    bool told = c->peer.retiring; /* it has come of age */
    c->fresh = !told && !grpc_conn_was_called(c) && until > loop_now(grpc_conn_loop(c));
    if (!c->fresh) {
        grpc_conn_leave(c);
        return;
    }
    c->goodbye.due = on_fresh_due;
    loop_timer_set(grpc_conn_loop(c), &c->goodbye, until);
}

void grpc_conn_called(struct grpc_conn *c)
{
    if (c->fresh)
        loop_timer_set(grpc_conn_loop(c), &c->goodbye, loop_now(grpc_conn_loop(c)));
}

unsigned grpc_conn_cut(struct grpc_conn *c)
{
    unsigned count = 0;
    LIST_EACH (node, &c->streams) {
        struct grpc_stream *s = LIST_ITEM(node, struct grpc_stream, node);
        count += grpc_stream_works(s);
        grpc_stream_cut(s);
    }
    write_out(c);
    sock_discard(c->watch.fd, SOCK_DISCARD_BYTES); /* else closing may take the answers back */
    return count;
}

void grpc_conn_close(struct grpc_conn *c)
{
    struct grpc_home *home = c->home;
    if (!c->proven)
        turns_stranger_gone(&home->strangers);
    LIST_EACH (node, &c->streams)
        grpc_stream_closed(LIST_ITEM(node, struct grpc_stream, node));
    if (c->watch.ready)
        loop_del(home->worker->loop, &c->watch);
    loop_timer_clear(home->worker->loop, &c->timer);
    loop_timer_clear(home->worker->loop, &c->goodbye);
    loop_timer_clear(home->worker->loop, &c->keepalive_timer);
    loop_task_cancel(&c->flush);
    h2_peer_session_free(c->session);
    if (c->peer.expelled) /* so that the client reads the reason */
        sock_discard(c->watch.fd, SOCK_DISCARD_BYTES);
    if (c->tls)
        tls_conn_goodbye(c->tls);
    tls_conn_free(c->tls);
    sock_close(c->watch.fd);
    h2_out_fini(&c->out);
    h2_peer_streams_gone(&c->peer, c->account, GRPC_STREAM_BYTES);
    budget_account_close(c->account);
    list_remove(&c->node);
    home->awaited -= !c->late;
    mem_free(c);
    if (list_empty(&home->conns)) {
        mem_free(home->batch);
        home->batch = NULL;
    }
    front_metrics_add(&home->metrics->closed, 1);
    home->conn_gone(home);
}
