#include "grpc/grpc_turn.h"

#include "grpc/grpc_answer.h"
#include "grpc/grpc_conn.h"
#include "grpc/grpc_method.h"
#include "grpc/grpc_stream.h"
#include "net/turns.h"
#include "server/options/options_front.h"
#include "server/worker.h"

/* True if the answer describes the server: it is made at once, and may be long. */
static bool method_tells(const struct grpc_method *m)
{
    return !m->tensors && !m->streams && m->category != OPTIONS_CATEGORY_HEALTH;
}

static bool may_tell_conn(const struct grpc_conn *c)
{
    return c->unread <= TURNS_UNREAD && worker_may_tell(c->home->worker);
}

/* Keeps the message until a turn may make its answer. */
static void put_off_call(struct grpc_stream *s, const uint8_t *data, size_t len, struct buf **buf)
{
    s->in =
        (struct grpc_inbox){.data = data, .size = (uint32_t)len, .got = (uint32_t)len, .buf = *buf};
    *buf = NULL;
    struct err *e = grpc_inbox_keep(&s->in, s->conn->account);
    if (e)
        grpc_answer_fail(s, e);
    else
        list_append(&s->conn->put_off, &s->waiting);
}

void grpc_turn_message(struct grpc_stream *s, const uint8_t *data, size_t len, struct buf **buf)
{
    if (s->method->tensors)
        s->conn->told = 0;
    else if (method_tells(s->method) &&
             (!list_empty(&s->conn->put_off) || !may_tell_conn(s->conn))) {
        put_off_call(s, data, len, buf);
        return;
    }
    s->method->message(s, data, len, buf);
}

bool grpc_turn_waits(const struct grpc_conn *c)
{
    return c->unread <= TURNS_UNREAD && !list_empty(&c->put_off);
}

void grpc_turn_go_on(struct grpc_conn *c)
{
    while (!list_empty(&c->put_off) && may_tell_conn(c)) {
        struct grpc_stream *s = LIST_ITEM(list_pop(&c->put_off), struct grpc_stream, waiting);
        struct grpc_inbox in = s->in;
        s->in = (struct grpc_inbox){0};
        if (!grpc_stream_over(s))
            s->method->message(s, in.data, in.size, &in.buf);
        buf_unref(in.buf);
    }
}
