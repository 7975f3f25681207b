#include "grpc/grpc_patience.h"

#include "base/log.h"
#include "grpc/grpc_answer.h"
#include "grpc/grpc_conn.h"
#include "grpc/grpc_stream.h"
#include "server/worker.h"

static struct loop *grpc_patience_loop(const struct grpc_conn *c)
{
    return c->home->worker->loop;
}

/* True if the client must send bytes, whatever calls it has. */
static bool owes_bytes(const struct grpc_conn *c)
{
    return !c->peer.greeted || h2_frames_partial(&c->peer.frames);
}

void grpc_patience_watch(struct grpc_conn *c)
{
    bool owes = owes_bytes(c) || c->receiving > 0 || h2_out_waits(&c->out) || c->answering > 0;
    if (c->timer.heap_index == 0 && owes)
        loop_timer_set(grpc_patience_loop(c), &c->timer,
                       loop_now(grpc_patience_loop(c)) + GRPC_PATIENCE);
}

static time_ns earlier(time_ns a, time_ns b)
{
    return a < b ? a : b;
}

/* Ends calls whose client does not go on with a message, whatever comes of others. Returns when to
 * check again. */
static time_ns judge_messages(struct grpc_conn *c, time_ns now)
{
    time_ns next = TIME_NEVER;
    LIST_EACH (node, &c->streams) {
        struct grpc_stream *s = LIST_ITEM(node, struct grpc_stream, node);
        if (!s->counted || grpc_stream_over(s))
            continue;
        time_ns due = s->arrived + GRPC_PATIENCE;
        if (now >= due)
            grpc_answer_abandon(s, GRPC_ANSWER_CANCELLED, NGHTTP2_CANCEL);
        else
            next = earlier(next, due);
    }
    return next;
}

/* Drops answers of calls whose window was closed all the time; most waiting answers wait for a
 * window. Returns when to check again; a time that is not after now means that the connection's
 * own window stays closed. */
static time_ns judge_answers(struct grpc_conn *c, time_ns now)
{
    bool closed = nghttp2_session_get_remote_window_size(c->session) <= 0;
    time_ns next = TIME_NEVER;
    LIST_EACH (node, &c->streams) {
        struct grpc_stream *s = LIST_ITEM(node, struct grpc_stream, node);
        if (!s->replies || s->replies->waits)
            continue;
        if (closed)
            return c->moved + GRPC_PATIENCE;
        time_ns due = now + GRPC_PATIENCE; /* checked again later */
        if (nghttp2_session_get_stream_remote_window_size(c->session, s->id) <= 0)
            due = s->moved + GRPC_PATIENCE;
        if (now >= due)
            grpc_answer_abandon(s, GRPC_ANSWER_RESOURCE_EXHAUSTED, NGHTTP2_ENHANCE_YOUR_CALM);
        else
            next = earlier(next, due);
    }
    return next;
}

void grpc_patience_due(struct loop_timer *t)
{
    struct grpc_conn *c = LIST_ITEM(t, struct grpc_conn, timer);
    time_ns now = loop_now(grpc_patience_loop(c));
    time_ns next = owes_bytes(c) ? c->progress + GRPC_PATIENCE : TIME_NEVER;
    if (c->receiving > 0)
        next = earlier(next, judge_messages(c, now));
    if (h2_out_waits(&c->out))
        next = earlier(next, c->sent + GRPC_PATIENCE);
    else if (c->answering > 0)
        next = earlier(next, judge_answers(c, now));
    if (now >= next) {
        LOG_VERBOSE(1, "gRPC: closing a connection that made no progress");
        grpc_conn_close(c);
    } else if (next != TIME_NEVER) {
        loop_timer_set(grpc_patience_loop(c), t, next);
    }
}
