#pragma once
/* Server-sent events: an answer whose end is not known when it begins, one event a response of the
 * model. Each event is an exchange of its own in front of that of its request, so that events are
 * gathered, written and kept for a slow client as all answers are. HTTP/1.1 clients get each in a
 * chunk; to others the end of the connection is the end of the answer. Worker's thread only. */
#include "base/err.h"

#include <stddef.h>

struct http_exchange;
struct http_out;
struct response;

/* What the events of a connection may take that its client does not read; past that, or where the
 * budget is spent and others need the room, a stream is ended with an error and its request
 * cancelled. If another stream of HTTP/2 holds more and is not read, that one is reset. */
#define HTTP_EVENT_BYTES ((size_t)256 << 20)

/* What is between the text of an event and the chunk that it is in. */
#define HTTP_EVENT_FRAME_BYTES ((size_t)64)

/* http_event_begin - the answer to x will be a stream. */
void http_event_begin(struct http_exchange *x);

/* http_event_response - the next event is a response, taken over, or the error that it carries or
 * that kept it from being written. The first one decides the status. x has a connection. */
void http_event_response(struct http_exchange *x, struct response *r);

/* http_event_text - the next event is this text on the heap, which is taken over. x has a
 * connection. */
void http_event_text(struct http_exchange *x, char *text, size_t len);

/* http_event_error - the next event is this error, which is taken over. x has a connection. */
void http_event_error(struct http_exchange *x, struct err *e);

/* http_event_give_up - the client does not take its events: an error is the last one, and the
 * request is cancelled. x has a connection. */
void http_event_give_up(struct http_exchange *x);

/* http_event_end - no event follows. */
void http_event_end(struct http_exchange *x);

/* http_event_ask - a few bytes that mean nothing to the client of a stream that has begun, but may
 * show that it is gone. */
void http_event_ask(struct http_exchange *x);

/* http_event_write - as http_answer_write, for an event or the end of a stream. */
size_t http_event_write(struct http_exchange *x, char *to, struct http_out *out);
