#include "grpc/grpc_delay.h"

#include "base/debug_env.h"
#include "base/list.h"
#include "base/mem.h"
#include "grpc/grpc_answer.h"
#include "grpc/grpc_conn.h"
#include "grpc/grpc_method.h"
#include "os/pool.h"
#include "server/worker.h"

#include <string.h>

/* Something that a stream does later. */
struct step {
    struct list node;
    time_ns due;
    struct h2_reply *reply;  /* to send; owned */
    grpc_delay_take_fn take; /* gets `message`; NULL = there is no message */
    struct buf *message;     /* owned */
    size_t message_bytes;
    bool ends;
    int status;
    char *text; /* owned */
};

/* The delays of a stream. */
struct grpc_delay {
    struct loop_timer timer;
    struct grpc_stream *stream;
    struct list steps; /* in order of their time */
    time_ns last;      /* nothing is sent before this time */
    bool passing;      /* a step is running: what it sends is not delayed again */
};

const struct grpc_delays *grpc_delay_read(void)
{
    static struct grpc_delays delays;
    static bool known;
    if (!known) {
        known = true;
        delays = (struct grpc_delays){
            .process = TIME_MS(debug_env_number("TRITONSERVER_DELAY_GRPC_PROCESS")),
            .response = TIME_MS(debug_env_number("TRITONSERVER_DELAY_GRPC_RESPONSE")),
            .complete = TIME_MS(debug_env_number("TRITONSERVER_DELAY_GRPC_COMPLETE")),
            .control = TIME_S(debug_env_number("TRITONSERVER_SERVER_DELAY_GRPC_RESPONSE_SEC")),
        };
    }
    bool any = delays.process || delays.response || delays.complete || delays.control;
    return any ? &delays : NULL;
}

static struct loop *grpc_delay_loop(const struct grpc_stream *s)
{
    return s->conn->home->worker->loop;
}

static const struct grpc_delays *delays_of(const struct grpc_stream *s)
{
    return s->conn ? s->conn->home->delays : NULL;
}

static void free_step(struct step *p)
{
    if (p->reply)
        p->reply->free_fn(p->reply);
    buf_unref(p->message);
    mem_free(p->text);
    mem_free(p);
}

static void do_step(struct grpc_stream *s, struct step *p)
{
    struct h2_reply *reply = p->reply;
    p->reply = NULL;
    if (p->take && !s->ended)
        p->take(s, p->message->data, p->message_bytes, &p->message);
    if (reply)
        grpc_answer_send(s, reply);
    if (p->ends)
        grpc_answer_end(s, p->status, p->text);
    free_step(p);
}

static void set_timer(struct grpc_delay *d)
{
    if (!list_empty(&d->steps))
        loop_timer_set(grpc_delay_loop(d->stream), &d->timer,
                       LIST_ITEM(d->steps.next, struct step, node)->due);
}

static void on_due(struct loop_timer *t)
{
    struct grpc_delay *d = LIST_ITEM(t, struct grpc_delay, timer);
    struct grpc_stream *s = d->stream;
    time_ns now = loop_now(grpc_delay_loop(s));
    while (!list_empty(&d->steps) && LIST_ITEM(d->steps.next, struct step, node)->due <= now) {
        struct step *p = LIST_ITEM(list_pop(&d->steps), struct step, node);
        d->passing = !p->take;
        do_step(s, p);
        d->passing = false;
    }
    set_timer(d);
}

static struct grpc_delay *delay_of(struct grpc_stream *s)
{
    if (s->delay)
        return s->delay;
    s->delay = MEM_NEW(struct grpc_delay);
    s->delay->stream = s;
    s->delay->timer.due = on_due;
    list_init(&s->delay->steps);
    return s->delay;
}

static void grpc_delay_add_step(struct grpc_delay *d, const struct step *step)
{
    struct step *p = MEM_NEW(struct step);
    *p = *step;
    p->due = d->last;
    list_append(&d->steps, &p->node);
    set_timer(d);
}

/* Delays the next step by this much from now, and from the step before it. */
static void push_back(struct grpc_stream *s, time_ns by)
{
    struct grpc_delay *d = delay_of(s);
    time_ns now = clock_now_ns();
    d->last = time_later(d->last > now ? d->last : now, by);
}

bool grpc_delay_message(struct grpc_stream *s, const uint8_t *data, size_t len,
                        grpc_delay_take_fn take)
{
    const struct grpc_delays *delays = delays_of(s);
    struct buf *copy;
    if (!delays || !delays->process || (s->delay && s->delay->last))
        return false;
    struct err *e = pool_buf(len ? len : 1, &copy);
    if (e) {
        grpc_answer_fail(s, e);
        return true;
    }
    if (len)
        memcpy(copy->data, data, len);
    push_back(s, delays->process);
    grpc_delay_add_step(s->delay,
                        &(struct step){.take = take, .message = copy, .message_bytes = len});
    return true;
}

void grpc_delay_response(struct grpc_stream *s, bool written)
{
    const struct grpc_delays *delays = delays_of(s);
    if (delays && (delays->complete || (written && delays->response)))
        push_back(s, delays->complete + (written ? delays->response : 0));
}

/* True if the stream delays what it is to send now. */
static bool sends_later(struct grpc_stream *s)
{
    const struct grpc_delays *delays = delays_of(s);
    if (!delays || s->ended || !s->method || (s->delay && s->delay->passing))
        return false;
    bool control = !s->method->streams && !s->method->tensors;
    if (control && delays->control && !s->delay)
        push_back(s, delays->control);
    return s->delay && (!list_empty(&s->delay->steps) || s->delay->last > clock_now_ns());
}

bool grpc_delay_reply(struct grpc_stream *s, struct h2_reply *r)
{
    if (!sends_later(s))
        return false;
    grpc_delay_add_step(s->delay, &(struct step){.reply = r});
    return true;
}

bool grpc_delay_end(struct grpc_stream *s, int status, const char *message)
{
    if (status == GRPC_ANSWER_DEADLINE_EXCEEDED || !sends_later(s))
        return false;
    char *text = message ? mem_strndup(message, strlen(message)) : NULL;
    s->ending = true;
    grpc_delay_add_step(s->delay, &(struct step){.ends = true, .status = status, .text = text});
    return true;
}

void grpc_delay_drop(struct grpc_stream *s)
{
    struct grpc_delay *d = s->delay;
    if (!d)
        return;
    s->delay = NULL;
    loop_timer_clear(grpc_delay_loop(s), &d->timer);
    struct list *node;
    while ((node = list_pop(&d->steps)))
        free_step(LIST_ITEM(node, struct step, node));
    mem_free(d);
}
