#include "grpc/grpc_stream.h"

#include "base/budget.h"
#include "base/check.h"
#include "base/log.h"
#include "base/slab.h"
#include "codec/grpc_text.h"
#include "grpc/grpc_answer.h"
#include "grpc/grpc_conn.h"
#include "grpc/grpc_delay.h"
#include "grpc/grpc_method.h"
#include "grpc/grpc_pack.h"
#include "grpc/grpc_turn.h"
#include "grpc/grpc_unpack.h"
#include "infer/request.h"
#include "metrics/front_metrics.h"
#include "net/access.h"
#include "net/guard.h"
#include "net/turns.h"
#include "os/pool.h"
#include "server/options/options_front.h"
#include "server/worker.h"
#include "tracing/tracing.h"

#include <string.h>
#include <strings.h>

#define MAGIC 0x47535452u

static const struct slab slab = {.kind = SLAB_GRPC_STREAM,
                                 .object_bytes = sizeof(struct grpc_stream)};

static struct loop *grpc_stream_loop(const struct grpc_stream *s)
{
    return s->conn->home->worker->loop;
}

static void end_late(struct grpc_stream *s)
{
    grpc_answer_end(s, GRPC_ANSWER_DEADLINE_EXCEEDED, "Deadline Exceeded");
}

static void on_deadline(struct loop_timer *t)
{
    end_late(LIST_ITEM(t, struct grpc_stream, timer));
}

static struct grpc_stream *new_stream(struct grpc_conn *c, int32_t id)
{
    struct grpc_stream *s = slab_alloc(&slab);
    memset(s, 0, sizeof(*s));
    s->magic = MAGIC;
    s->id = id;
    s->conn = c;
    s->last_reply = &s->replies;
    s->timer.due = on_deadline;
    s->begun = loop_now(c->home->worker->loop);
    list_init(&s->calls);
    list_init(&s->waiting);
    list_append(&c->streams, &s->node);
    h2_peer_stream(&c->peer, c->account, GRPC_STREAM_BYTES);
    /* Clients open many calls before they send data. So this frame and one more, such as the one
     * that opens the call's window, are not counted as useless. If the call brings nothing, that
     * is counted when it ends. */
    turns_make_up(&c->turns, 2);
    front_metrics_add(&c->home->metrics->begun, 1);
    s->access = access_begin(c->watch.fd, "grpc", "call");
    return s;
}

static bool is_request(const nghttp2_frame *frame)
{
    return frame->hd.type == NGHTTP2_HEADERS && frame->headers.cat == NGHTTP2_HCAT_REQUEST;
}

static int on_begin_headers(nghttp2_session *session, const nghttp2_frame *frame, void *user)
{
    if (!is_request(frame))
        return 0;
    struct grpc_conn *c = user;
    if (h2_peer_full(&c->peer))
        return h2_peer_refuse(&c->peer, session, frame->hd.stream_id);
    struct grpc_stream *s = new_stream(c, frame->hd.stream_id);
    c->newest = s;
    return nghttp2_session_set_stream_user_data(session, frame->hd.stream_id, s);
}

struct grpc_stream *grpc_stream_find(const struct grpc_conn *c, int32_t id)
{
    if (c->newest && c->newest->id == id)
        return c->newest;
    return nghttp2_session_get_stream_user_data(c->session, id);
}

#define IS(text, len, literal) \
    ((len) == sizeof(literal) - 1 && memcmp((text), (literal), sizeof(literal) - 1) == 0)

/* Unlike a Content-Encoding, it must not be empty. */
static enum coding encoding_of(const char *value, size_t len)
{
    return len ? grpc_text_coding(value, len) : CODING_UNKNOWN;
}

static void take_timeout(struct grpc_stream *s, const char *text, size_t len)
{
    s->bad_timeout = !grpc_text_timeout(text, len, &s->timeout);
    s->late = !s->bad_timeout && s->timeout == 0;
}

static void take_header(struct grpc_stream *s, const char *name, size_t name_len, const char *value,
                        size_t len)
{
    if (IS(name, name_len, ":path"))
        s->method = grpc_method_find(s->conn->home->service, value, len);
    else if (IS(name, name_len, ":method"))
        s->post = IS(value, len, "POST");
    else if (IS(name, name_len, "content-type"))
        s->grpc = grpc_text_is_grpc(value, len);
    else if (IS(name, name_len, "grpc-timeout"))
        take_timeout(s, value, len);
    else if (IS(name, name_len, "grpc-encoding"))
        s->encoding = encoding_of(value, len);
    else if (IS(name, name_len, "triton_grpc_error"))
        s->grpc_errors = IS(value, len, "true");
}

/* True for headers that gRPC libraries do not show to the application. */
static bool is_protocol(const char *name, size_t len)
{
    static const char *const names[] = {"te",
                                        "content-type",
                                        "grpc-timeout",
                                        "grpc-encoding",
                                        "grpc-accept-encoding",
                                        "grpc-internal-encoding-request",
                                        "grpc-trace-bin",
                                        "grpc-tags-bin"};
    if (len && *name == ':')
        return true;
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
        if (strlen(names[i]) == len && memcmp(names[i], name, len) == 0)
            return true;
    return false;
}

static enum options_category category_of(const struct grpc_stream *s)
{
    return s->method ? s->method->category : OPTIONS_CATEGORY_NONE;
}

static void keep_header(struct strbuf *sb, const char *name, size_t name_len, const char *value,
                        size_t len)
{
    strbuf_append(sb, name, name_len);
    strbuf_putc(sb, '\0');
    strbuf_append(sb, value, len);
    strbuf_putc(sb, '\0');
}

/* Looks at metadata that an option needs: restricted interfaces, forwarded headers, compressed
 * answers, traces of callers. */
static void look_closer(struct grpc_stream *s, const char *name, size_t name_len, const char *value,
                        size_t len)
{
    const struct grpc_home *home = s->conn->home;
    enum options_category category = category_of(s);
    if (guard_watches(&home->guard, category))
        guard_header(&home->guard, category, &s->seen, name, name_len, value, len);
    if (!s->method || !s->method->tensors)
        return;
    if (home->pack_level && IS(name, name_len, "grpc-accept-encoding"))
        s->packing = grpc_pack_coding((enum grpc_pack_level)home->pack_level, value, len);
    if (home->forward && !is_protocol(name, name_len))
        keep_header(&s->headers, name, name_len, value, len);
    if (tracing_wants_context(home->worker->tracing) &&
        (IS(name, name_len, "traceparent") || IS(name, name_len, "tracestate")))
        keep_header(&s->context, name, name_len, value, len);
}

/* true if the client may not make this call: it was answered. For restricted interfaces the
 * answer is UNAVAILABLE, as the reference's. */
static bool grpc_stream_turned_away(struct grpc_stream *s)
{
    const struct guard *g = &s->conn->home->guard;
    enum options_category category = category_of(s);
    if (!guard_watches(g, category))
        return false;
    enum guard_answer answer = guard_decide(g, category, &s->seen);
    if (answer == GUARD_PASS)
        return false;
    struct strbuf text = STRBUF_INIT;
    guard_say(g, category, answer, &text);
    grpc_answer_end(s,
                    answer == GUARD_RESTRICTED ? GRPC_ANSWER_UNAVAILABLE
                    : answer == GUARD_NO_KEY   ? GRPC_ANSWER_UNAUTHENTICATED
                                               : GRPC_ANSWER_PERMISSION_DENIED,
                    strbuf_str(&text));
    strbuf_fini(&text);
    return true;
}

/* Answers as the reference, except for inference: the reference finds no model and says
 * NOT_FOUND, but another server may have the model. */
static void answer_late(struct grpc_stream *s)
{
    bool exiting = s->method->end == GRPC_METHOD_EXITING;
    grpc_answer_end(s, GRPC_ANSWER_UNAVAILABLE, exiting ? "Server exiting" : "Server not ready");
}

static int grpc_stream_on_header(nghttp2_session *session, const nghttp2_frame *frame,
                                 const uint8_t *name, size_t name_len, const uint8_t *value,
                                 size_t len, uint8_t flags, void *user)
{
    (void)flags;
    struct grpc_stream *s = grpc_stream_find(user, frame->hd.stream_id);
    if (!s)
        return 0;
    s->header_bytes += name_len + len + 32; /* counted as for SETTINGS_MAX_HEADER_LIST_SIZE */
    if (s->header_bytes > GRPC_CONN_SURPLUS_BYTES)
        return h2_peer_expel(&s->conn->peer, session, "too_much_metadata");
    if (!is_request(frame)) /* trailers, which are ignored */
        return 0;
    if (s->header_bytes <= GRPC_CONN_HEADER_BYTES)
        take_header(s, (const char *)name, name_len, (const char *)value, len);
    if (s->conn->home->curious && s->header_bytes <= GRPC_CONN_HEADER_BYTES)
        look_closer(s, (const char *)name, name_len, (const char *)value, len);
    return 0;
}

void grpc_stream_cut(struct grpc_stream *s)
{
    grpc_answer_end(s, GRPC_ANSWER_UNAVAILABLE, "the server is stopping");
}

/* All metadata came: refuses the call, or lets its messages come. */
static void grpc_stream_admit(struct grpc_stream *s)
{
    struct err *e;
    if (s->method)
        LOG_VERBOSE(1, "gRPC request: %s", s->method->path);
    if (!s->post)
        grpc_answer_http(s, "405");
    else if (!s->grpc)
        grpc_answer_http(s, "415");
    else if (s->header_bytes > GRPC_CONN_HEADER_BYTES)
        grpc_answer_end(s, GRPC_ANSWER_RESOURCE_EXHAUSTED, "received metadata size exceeds limit");
    else if (grpc_stream_turned_away(s))
        return;
    else if (!s->method)
        grpc_answer_end(s, GRPC_ANSWER_UNIMPLEMENTED, NULL);
    else if (s->conn->late && s->method->end != GRPC_METHOD_SERVED)
        answer_late(s);
    else if (s->conn->leaving && s->method->streams)
        grpc_stream_cut(s);
    else if (s->encoding == CODING_UNKNOWN)
        grpc_answer_encoding(s);
    else if (s->bad_timeout)
        grpc_answer_end(s, GRPC_ANSWER_INTERNAL, "grpc-timeout cannot be read");
    else if (s->late)
        end_late(s);
    else if ((e = grpc_stream_room(s)))
        grpc_answer_fail(s, e);
    else if (s->timeout)
        loop_timer_set(grpc_stream_loop(s), &s->timer, loop_now(grpc_stream_loop(s)) + s->timeout);
}

/* True if the client must go on with a message: the one of a unary call, whether it has begun or
 * not, or one that a streaming call has begun. */
static bool owes_message(const struct grpc_stream *s)
{
    if (grpc_stream_over(s) || s->held)
        return false;
    return s->method->streams ? grpc_inbox_partial(&s->in) : s->unary != GRPC_STREAM_DELIVERED;
}

static void count_owing(struct grpc_stream *s)
{
    bool owes = owes_message(s);
    if (owes == s->counted)
        return;
    s->counted = owes;
    s->conn->receiving += owes ? 1u : -1u;
    if (owes)
        s->arrived = loop_now(grpc_stream_loop(s));
}

/* Opens the window by what was reserved for the message. */
static void open_window(struct grpc_stream *s)
{
    nghttp2_session *session = s->conn->session;
    int64_t missing = (int64_t)grpc_inbox_left(&s->in) -
                      nghttp2_session_get_stream_local_window_size(session, s->id);
    if (missing > 0)
        nghttp2_submit_window_update(session, NGHTTP2_FLAG_NONE, s->id, (int32_t)missing);
}

static void grpc_stream_refuse(struct grpc_stream *s, enum grpc_inbox_result why, struct err *e)
{
    if (why == GRPC_INBOX_NO_ROOM) {
        grpc_answer_fail(s, e);
    } else if (why == GRPC_INBOX_TOO_LARGE) {
        e = err_new(STATUS_INTERNAL, "Received message larger than max (%u vs. %u)", s->in.size,
                    grpc_method_max_bytes(s->method));
        grpc_answer_end(s, GRPC_ANSWER_RESOURCE_EXHAUSTED, err_message(e));
        err_free(e);
    } else {
        grpc_answer_end(s, GRPC_ANSWER_INTERNAL,
                        "a message has flags that this server does not know");
    }
}

/* Takes bytes. Returns true when a message is complete. */
static bool grpc_stream_feed(struct grpc_stream *s, const uint8_t **data, size_t *len)
{
    struct err *e = NULL;
    enum grpc_inbox_result r =
        grpc_inbox_feed(&s->in, s->conn->account, data, len, grpc_method_max_bytes(s->method),
                        s->method->tensors, &e);
    if (r == GRPC_INBOX_WHOLE)
        return true;
    if (r != GRPC_INBOX_MORE)
        grpc_stream_refuse(s, r, e);
    else if (s->in.prefix_got == GRPC_PREFIX_BYTES)
        open_window(s);
    return false;
}

/* Gives a whole message to the method, decompressed if needed. */
static void grpc_stream_deliver(struct grpc_stream *s)
{
    const uint8_t *data = s->in.data;
    size_t len = s->in.size;
    if (s->access)
        s->access->in_bytes += len;
    struct buf *buf = s->in.buf;
    bool compressed = s->in.compressed;
    s->in = (struct grpc_inbox){0};
    s->of_use = true;
    grpc_conn_of_use(s->conn);
    if (!s->method->streams)
        grpc_conn_called(s->conn);
    pool_whole(s->conn->account, len);
    if (compressed && s->encoding == CODING_IDENTITY) {
        grpc_answer_fail(
            s, err_new(STATUS_INTERNAL, "Compressed-Flag bit set, but no grpc-encoding header"));
    } else if (compressed) {
        grpc_unpack(s, data, len, buf);
        return;
    } else {
        grpc_turn_message(s, data, len, &buf);
    }
    buf_unref(buf);
}

/* Notes that the next bytes of a large message are read directly to their place. */
static void note_filling(struct grpc_stream *s)
{
    bool large = grpc_inbox_left(&s->in) >= GRPC_CONN_FILL_BYTES && grpc_inbox_place(&s->in) &&
                 s->conn->frame_bytes > 0;
    s->conn->filling = large && !grpc_stream_over(s) ? s : NULL;
}

/* Handles bytes of a unary call. last: they belong to the client's last frame, so a whole
 * message can be used in place. */
static void take_unary(struct grpc_stream *s, const uint8_t *data, size_t len, bool last)
{
    if (s->unary == GRPC_STREAM_WAITING && !grpc_stream_feed(s, &data, &len))
        return;
    if (len > 0 || s->unary != GRPC_STREAM_WAITING) {
        grpc_answer_end(s, GRPC_ANSWER_INTERNAL, "a unary call has more than one message");
    } else if (last) {
        s->unary = GRPC_STREAM_DELIVERED;
        s->half_closed = true;
        grpc_stream_deliver(s);
    } else {
        s->unary = GRPC_STREAM_KEPT;
        struct err *e = grpc_inbox_keep(&s->in, s->conn->account);
        if (e)
            grpc_answer_fail(s, e);
    }
}

static bool paused(const struct grpc_stream *s)
{
    return s->unpacking || s->call_count >= GRPC_STREAM_MAX_CALLS ||
           s->reply_bytes > GRPC_STREAM_REPLY_BYTES;
}

/* Handles bytes of a streaming call until it pauses. Returns how many were handled or dropped. */
static size_t take_streamed(struct grpc_stream *s, const uint8_t *data, size_t len)
{
    size_t left = len;
    s->cut = s->cut || (s->conn->leaving && len > 0);
    while (left > 0 && !grpc_stream_over(s) && !s->cut && !paused(s))
        if (grpc_stream_feed(s, &data, &left))
            grpc_stream_deliver(s);
    size_t taken = grpc_stream_over(s) || s->cut ? len : len - left;
    nghttp2_session_consume_stream(s->conn->session, s->id, taken);
    return taken;
}

static void drop_held(struct grpc_stream *s)
{
    buf_unref(s->held);
    s->held = NULL;
    s->held_at = s->held_end = 0;
    s->conn->held_streams--;
}

/* Keeps bytes for later. The window, which is not opened meanwhile, limits them. */
static void grpc_stream_keep(struct grpc_stream *s, const uint8_t *data, size_t len)
{
    size_t kept = s->held_end - s->held_at;
    if (!s->held)
        s->conn->held_streams++;
    if (!s->held || s->held->size - s->held_end < len) {
        struct buf *bigger;
        struct err *e = pool_buf((kept + len) * 2, &bigger);
        if (e) {
            drop_held(s);
            grpc_answer_fail(s, e);
            return;
        }
        if (kept)
            memcpy(bigger->data, s->held->data + s->held_at, kept);
        buf_unref(s->held);
        s->held = bigger;
        s->held_at = 0;
        s->held_end = kept;
    }
    memcpy(s->held->data + s->held_end, data, len);
    s->held_end += len;
}

static int on_data(nghttp2_session *session, uint8_t flags, int32_t id, const uint8_t *data,
                   size_t len, void *user)
{
    struct grpc_conn *c = user;
    c->filling = NULL;
    c->frame_left -= len < c->frame_left ? (uint32_t)len : c->frame_left;
    nghttp2_session_consume_connection(session, len);
    struct grpc_stream *s = grpc_stream_find(c, id);
    if (!s || grpc_stream_over(s))
        return 0;
    CHECK_MAGIC(s, MAGIC);
    s->arrived = loop_now(grpc_stream_loop(s));
    if (!s->method->streams) {
        take_unary(s, data, len, flags & NGHTTP2_FLAG_END_STREAM);
    } else {
        size_t taken = s->held ? 0 : take_streamed(s, data, len);
        if (taken < len)
            grpc_stream_keep(s, data + taken, len - taken);
    }
    count_owing(s);
    note_filling(s);
    return 0;
}

void grpc_stream_end_if_over(struct grpc_stream *s)
{
    if (s->call_count > 0 || s->unpacking)
        return;
    if (s->half_closed && !s->held && !s->cut)
        grpc_answer_end(s, GRPC_ANSWER_OK, NULL);
    else if (s->conn->leaving)
        grpc_stream_cut(s);
}

void grpc_stream_leave(struct grpc_stream *s)
{
    if (!s->method || !s->method->streams)
        return;
    if (grpc_inbox_partial(&s->in)) {
        grpc_inbox_next(&s->in);
        s->cut = true;
        if (s->conn->filling == s)
            s->conn->filling = NULL;
    }
    grpc_stream_end_if_over(s);
    count_owing(s);
}

bool grpc_stream_works(const struct grpc_stream *s)
{
    return !s->ended && (s->call_count > 0 || s->unary == GRPC_STREAM_DELIVERED);
}

/* The client has sent everything, and the method has had all of it. */
static void on_half_closed(struct grpc_stream *s)
{
    if (grpc_stream_over(s) || s->held || s->unpacking)
        return;
    bool partial = grpc_inbox_partial(&s->in);
    if (s->method->streams && !partial) {
        grpc_stream_end_if_over(s);
    } else if (s->unary == GRPC_STREAM_KEPT) {
        s->unary = GRPC_STREAM_DELIVERED;
        grpc_stream_deliver(s);
    } else if (s->unary == GRPC_STREAM_WAITING || partial) {
        grpc_answer_end(s, GRPC_ANSWER_INTERNAL,
                        partial ? "the message is cut off" : "the call has no message");
    }
    count_owing(s);
}

void grpc_stream_frame(struct grpc_conn *c, const nghttp2_frame *frame)
{
    struct grpc_stream *s = grpc_stream_find(c, frame->hd.stream_id);
    if (!s)
        return;
    if (frame->hd.flags & NGHTTP2_FLAG_END_STREAM)
        s->half_closed = true;
    if (is_request(frame)) {
        grpc_stream_admit(s);
        count_owing(s);
    }
    if (s->half_closed)
        on_half_closed(s);
}

struct err *grpc_stream_room(const struct grpc_stream *s)
{
    if (budget_account_room(s->conn->account, 0))
        return NULL;
    return budget_busy(0, "no room for more of this connection");
}

void grpc_stream_hold(struct grpc_stream *s, struct grpc_call *call)
{
    call->stream = s;
    list_append(&s->calls, &call->node);
    s->call_count++;
}

static void free_stream(struct grpc_stream *s)
{
    if (s->call.trace) {
        tracing_mark(s->call.trace, "GRPC_SEND_END", clock_now_ns());
        tracing_end(s->call.trace);
    }
    s->magic = 0;
    slab_free(&slab, s);
}

/* Continues a paused call with the kept bytes. */
static void grpc_stream_go_on(struct grpc_stream *s)
{
    if (!grpc_stream_over(s) && (paused(s) || s->call_count > GRPC_STREAM_MAX_CALLS / 2))
        return;
    s->held_at += take_streamed(s, s->held->data + s->held_at, s->held_end - s->held_at);
    grpc_conn_flush_later(s->conn); /* tells the client how far its window is open now */
    if (s->held_at < s->held_end)
        return;
    drop_held(s);
    if (s->half_closed)
        on_half_closed(s);
    count_owing(s);
}

void grpc_stream_unpacked(struct grpc_stream *s)
{
    if (s->half_closed)
        on_half_closed(s);
    grpc_conn_flush_later(s->conn); /* continues with kept bytes in that turn */
}

void grpc_stream_resume(struct grpc_conn *c)
{
    LIST_EACH (node, &c->streams) {
        struct grpc_stream *s = LIST_ITEM(node, struct grpc_stream, node);
        if (s->held)
            grpc_stream_go_on(s);
    }
}

void grpc_stream_release(struct grpc_stream *s, struct grpc_call *call)
{
    CHECK_MAGIC(s, MAGIC);
    list_remove(&call->node);
    s->call_count--;
    if (!s->conn) {
        if (s->call_count == 0)
            free_stream(s);
        return;
    }
    if (s->held)
        grpc_conn_flush_later(s->conn);
}

void grpc_stream_cancel(struct grpc_stream *s)
{
    LIST_EACH (node, &s->calls) {
        struct grpc_call *call = LIST_ITEM(node, struct grpc_call, node);
        if (call->request && !call->done)
            request_cancel(call->request);
    }
}

/* Counts the call. A call that its client gave up has no status from the server. */
static void count_call(struct grpc_stream *s)
{
    struct front_metrics *metrics = s->conn->home->metrics;
    unsigned route = grpc_method_route(s->conn->home->service, s->method);
    int status = s->ended ? s->status : GRPC_ANSWER_CANCELLED;
    front_metrics_end(metrics, route, s->method && s->method->streams ? 0 : s->model, status);
    access_end(s->access, metrics->kind->routes[route].name, status);
    s->access = NULL;
}

void grpc_stream_closed(struct grpc_stream *s)
{
    CHECK_MAGIC(s, MAGIC);
    count_call(s);
    if (!s->of_use)
        turns_add(&s->conn->turns, TURNS_CALL);
    s->ended = true;
    count_owing(s);
    loop_timer_clear(grpc_stream_loop(s), &s->timer);
    grpc_delay_drop(s);
    grpc_answer_drop(s);
    grpc_inbox_next(&s->in);
    strbuf_fini(&s->headers);
    strbuf_fini(&s->context);
    if (s->unpacking)
        grpc_unpack_forget(s->unpacking);
    s->unpacking = NULL;
    if (s->held)
        drop_held(s);
    list_remove(&s->node);
    list_remove(&s->waiting);
    h2_peer_stream_gone(&s->conn->peer, s->conn->account, GRPC_STREAM_BYTES);
    if (s->conn->filling == s)
        s->conn->filling = NULL;
    if (s->conn->newest == s)
        s->conn->newest = NULL;
    s->conn = NULL;
    grpc_stream_cancel(s);
    if (s->call_count == 0)
        free_stream(s);
}

static int on_close(nghttp2_session *session, int32_t id, uint32_t error, void *user)
{
    (void)session;
    (void)error;
    struct grpc_stream *s = grpc_stream_find(user, id);
    if (s)
        grpc_stream_closed(s);
    return 0;
}

void grpc_stream_callbacks(nghttp2_session_callbacks *c)
{
    nghttp2_session_callbacks_set_on_begin_headers_callback(c, on_begin_headers);
    nghttp2_session_callbacks_set_on_header_callback(c, grpc_stream_on_header);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(c, on_data);
    nghttp2_session_callbacks_set_on_stream_close_callback(c, on_close);
}
