#include "http/http_event.h"

#include "base/budget.h"
#include "codec/json_out.h"
#include "infer/request.h"
#include "infer/response.h"
#include "http/http2_stream.h"
#include "http/http_answer.h"
#include "http/http_conn.h"
#include "http/http_exchange.h"
#include "http/http_flat.h"
#include "http/http_out.h"
#include "http/http_read.h"

#include <string.h>

#define TYPE "text/event-stream; charset=utf-8"

static bool in_chunks(const struct http_exchange *stream)
{
    return !stream->explicit_keep_alive && !stream->framed; /* HTTP/1.0 and HTTP/2 have none */
}

void http_event_begin(struct http_exchange *x)
{
    x->part = HTTP_PART_END;
    x->status = 200;
    x->content_type = TYPE;
    if (!x->explicit_keep_alive)
        return;
    x->keep_alive = false;
    http_read_no_more(x->conn);
}

/* What its client makes us keep as long as it does not take it. */
static size_t event_bytes_of(const struct response *r)
{
    size_t bytes = sizeof(struct http_exchange);
    if (!r)
        return bytes;
    bytes += RESPONSE_OWN_BYTES + r->arena.held;
    for (const struct tensor_output *o = r->outputs; o; o = o->next)
        bytes += o->buf ? o->byte_size : 0;
    return bytes;
}

static struct http_exchange *new_event(struct http_exchange *x, struct response *r)
{
    struct http_exchange *event = http_exchange_before(x);
    event->part = HTTP_PART_EVENT;
    event->stream = x;
    event->status = 200;
    event->begins = !x->begun;
    event->response = r;
    event->event_bytes = event_bytes_of(r);
    x->begun = true;
    x->conn->event_bytes += event->event_bytes;
    x->line->event_bytes += event->event_bytes;
    http_exchange_hold(event, sizeof(*event));
    return event;
}

/* What is made of it, whether it is a response or an error. */
static void event_done(struct http_exchange *x, struct http_exchange *event, struct err *e)
{
    if (e) {
        response_free(event->response);
        event->response = NULL;
        http_exchange_error(event, e);
    } else {
        http_exchange_done(event);
    }
    if (event->begins) {
        x->status = event->status;
        x->retry_secs = event->retry_secs;
    }
}

/* A client that takes no events must not make us hold them without end, nor any where others need
 * the room. One that takes them as they come is not ended because of what others hold. */
static bool takes_too_little(const struct http_exchange *x)
{
    const struct http_conn *c = x->conn;
    return c->event_bytes > HTTP_EVENT_BYTES ||
           (http_conn_lags(x->line) && !budget_account_room(c->account, 0));
}

void http_event_give_up(struct http_exchange *x)
{
    x->given_up = true;
    event_done(
        x, new_event(x, NULL),
        err_new(STATUS_UNAVAILABLE, "the client does not take the responses of its request"));
    if (x->request)
        request_cancel(x->request);
}

/* Ends what is in the way, if an event is too much: the stream that it is of, or another one that
 * holds more and that nobody reads. */
static void bound_events(struct http_exchange *x)
{
    if (!takes_too_little(x))
        return;
    struct http2_conn *h = x->conn->h2;
    struct http2_stream *slowest = h ? http2_stream_slowest(h) : NULL;
    if (slowest && slowest->line.event_bytes > x->line->event_bytes)
        http2_stream_give_up(slowest);
    else
        http_event_give_up(x);
}

void http_event_response(struct http_exchange *x, struct response *r)
{
    struct http_exchange *event = new_event(x, r);
    event_done(x, event, http_flat_prepare(r, &event->flat, &event->json_room));
    bound_events(x);
}

void http_event_text(struct http_exchange *x, char *text, size_t len)
{
    struct http_exchange *event = new_event(x, NULL);
    event->event_bytes += len;
    x->conn->event_bytes += len;
    x->line->event_bytes += len;
    http_exchange_own(event, text, len);
    event->body = text;
    event->body_len = len;
    event_done(x, event, NULL);
    bound_events(x);
}

void http_event_error(struct http_exchange *x, struct err *e)
{
    event_done(x, new_event(x, NULL), e);
}

void http_event_end(struct http_exchange *x)
{
    http_exchange_done(x);
}

void http_event_ask(struct http_exchange *x)
{
    struct http_exchange *event = new_event(x, NULL);
    event->body = "";
    http_exchange_done(event);
}

/* A comment, a response, or the text of an error. */
static char *put_event(char *to, const struct http_exchange *event)
{
    if (!event->response && !event->body_len)
        return JSON_OUT_LITERAL(to, ":\n\n");
    to = JSON_OUT_LITERAL(to, "data: ");
    if (event->response)
        to = http_flat_write(to, event->response, event->flat);
    else
        to = json_out_text(to, event->body, event->body_len);
    return JSON_OUT_LITERAL(to, "\n\n");
}

/* The length of a chunk, and the end of its line. */
static char *put_chunk_size(char *to, size_t len)
{
    static const char hex[] = "0123456789abcdef";
    unsigned digits = 1;
    while (digits < 2 * sizeof(len) && len >> (4 * digits))
        digits++;
    for (unsigned i = digits; i--;)
        *to++ = hex[len >> (4 * i) & 15];
    return JSON_OUT_LITERAL(to, "\r\n");
}

/* The event, and its length in front of it as soon as that is known. */
static char *put_chunk(char *to, const struct http_exchange *event)
{
    char *text = to + 2 * sizeof(size_t) + 2;
    char *end = put_event(text, event);
    size_t len = (size_t)(end - text);
    to = put_chunk_size(to, len);
    memmove(to, text, len);
    return JSON_OUT_LITERAL(to + len, "\r\n");
}

/* What is around the text of an event. */
#define AROUND_BYTES (sizeof("data: \n\n") - 1)

/* Ends `head` with a large text, which is written from where it lies: it has been charged for, and
 * a copy would need room once more. */
static size_t write_long_event(const struct http_exchange *event, char *head, char *to,
                               struct http_out *out)
{
    bool chunk = in_chunks(event->stream);
    if (chunk)
        to = put_chunk_size(to, AROUND_BYTES + event->body_len);
    to = JSON_OUT_LITERAL(to, "data: ");
    http_out_add(out, head, (size_t)(to - head));
    http_out_add(out, event->body, event->body_len);
    char *tail = to;
    to = JSON_OUT_LITERAL(to, "\n\n");
    if (chunk)
        to = JSON_OUT_LITERAL(to, "\r\n");
    http_out_add(out, tail, (size_t)(to - tail));
    return (size_t)(to - head);
}

size_t http_event_write(struct http_exchange *x, char *to, struct http_out *out)
{
    bool last = x->part == HTTP_PART_END;
    struct http_exchange *stream = last ? x : x->stream;
    char *end = to;
    if (last ? !x->begun : x->begins)
        end = http_answer_put_head(end, stream);
    if (!last && !x->response && x->body_len > HTTP_ANSWER_COPY_BYTES)
        return write_long_event(x, to, end, out);
    if (!last)
        end = in_chunks(stream) ? put_chunk(end, x) : put_event(end, x);
    else if (in_chunks(x))
        end = JSON_OUT_LITERAL(end, "0\r\n\r\n");
    http_out_add(out, to, (size_t)(end - to));
    return (size_t)(end - to);
}
