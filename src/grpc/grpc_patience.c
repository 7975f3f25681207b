#include "grpc/grpc_patience.h"

#include "base/log.h"
#include "grpc/grpc_answer.h"
#include "grpc/grpc_conn.h"
#include "grpc/grpc_stream.h"
#include "net/door.h"
#include "server/worker.h"

static struct loop *grpc_patience_loop(const struct grpc_conn *c)
{
    return c->home->worker->loop;
}

static time_ns grpc_patience_of(const struct grpc_conn *c)
{
    return c->leaving ? DOOR_STALL : GRPC_PATIENCE;
}

/* True if the client must send bytes, whatever calls it has. */
static bool owes_bytes(const struct grpc_conn *c)
{
    return !c->peer.greeted || h2_frames_partial(&c->peer.frames);
}

void grpc_patience_watch(struct grpc_conn *c)
{
    bool owes = owes_bytes(c) || c->receiving > 0 || h2_out_waits(&c->out) || c->answering > 0;
    time_ns when = loop_now(grpc_patience_loop(c)) + grpc_patience_of(c);
    if (owes && (c->timer.heap_index == 0 || c->timer.when > when))
        loop_timer_set(grpc_patience_loop(c), &c->timer, when);
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
        time_ns due = s->arrived + grpc_patience_of(c);
        if (now < due)
            next = time_sooner(next, due);
        else if (c->leaving)
            grpc_stream_cut(s);
        else
            grpc_answer_abandon(s, GRPC_ANSWER_CANCELLED, NGHTTP2_CANCEL);
    }
    return next;
}

/* Drops answers of calls whose window was closed all the time; most waiting answers wait for a
 * window. Returns when to check again; a time that is not after now means that the connection's
 * own window stays closed. While the connection leaves, other calls of it are waited for. */
static time_ns judge_answers(struct grpc_conn *c, time_ns now)
{
    bool closed = nghttp2_session_get_remote_window_size(c->session) <= 0;
    time_ns next = TIME_NEVER;
    LIST_EACH (node, &c->streams) {
        struct grpc_stream *s = LIST_ITEM(node, struct grpc_stream, node);
        if (!s->replies || s->replies->waits)
            continue;
        if (closed && !c->leaving)
            return c->moved + GRPC_PATIENCE;
        time_ns due = now + grpc_patience_of(c); /* checked again later */
        if (closed || nghttp2_session_get_stream_remote_window_size(c->session, s->id) <= 0)
            due = s->moved + grpc_patience_of(c);
        if (now >= due)
            grpc_answer_abandon(s, GRPC_ANSWER_RESOURCE_EXHAUSTED, NGHTTP2_ENHANCE_YOUR_CALM);
        else
            next = time_sooner(next, due);
    }
    return next;
}

/* True if a call waits for its model. */
static bool any_works(const struct grpc_conn *c)
{
    LIST_EACH (node, &c->streams)
        if (grpc_stream_works(LIST_ITEM(node, struct grpc_stream, node)))
            return true;
    return false;
}

/* When a client has owed bytes too long, whatever calls it has. While the connection leaves, its
 * calls are waited for. */
static time_ns bytes_due(const struct grpc_conn *c, time_ns now)
{
    if (!owes_bytes(c))
        return TIME_NEVER;
    time_ns due = c->progress + grpc_patience_of(c);
    return now >= due && c->leaving && any_works(c) ? now + DOOR_STALL : due;
}

void grpc_patience_due(struct loop_timer *t)
{
    struct grpc_conn *c = LIST_ITEM(t, struct grpc_conn, timer);
    time_ns now = loop_now(grpc_patience_loop(c));
    time_ns next = bytes_due(c, now);
    if (c->receiving > 0)
        next = time_sooner(next, judge_messages(c, now));
    if (h2_out_waits(&c->out))
        next = time_sooner(next, c->sent + grpc_patience_of(c));
    else if (c->answering > 0)
        next = time_sooner(next, judge_answers(c, now));
    if (now >= next) {
        LOG_VERBOSE(1, "gRPC: closing a connection that made no progress");
        grpc_conn_close(c);
    } else if (next != TIME_NEVER) {
        loop_timer_set(grpc_patience_loop(c), t, next);
    }
}
