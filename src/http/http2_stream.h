#pragma once
/* One request of an HTTP/2 connection: its head, its body, and the line of its answer, which
 * http2_answer.h sends. Worker's thread only. */
#include "base/list.h"
#include "codec/http2_head.h"
#include "http/http_body.h"
#include "http/http_conn.h"
#include "http/http_service.h"
#include "net/h2/h2_out.h"

#include <nghttp2/nghttp2.h>
#include <stdbool.h>
#include <stdint.h>

struct http2_conn;

/* The memory of a stream, with its part of the session, is about this much. */
#define HTTP2_STREAM_BYTES ((size_t)2048)

enum http2_stage {
    HTTP2_STAGE_HEAD,   /* the head is not complete */
    HTTP2_STAGE_BODY,   /* the body is being received */
    HTTP2_STAGE_WHOLE,  /* the message is complete, and waits for its turn */
    HTTP2_STAGE_SERVED, /* the service has it, or it was refused: what still comes is dropped */
};

struct http2_stream {
    uint32_t magic;
    int32_t id;
    struct http2_conn *h2;
    struct list node;    /* linked into h2->streams */
    struct list ready;   /* linked into h2->ready */
    struct list waiting; /* linked into h2->put_off */
    struct http_line line;

    /* Incoming. */
    struct http2_head head; /* freed when the message was served or refused */
    size_t head_held;       /* bytes of it that the account is charged for */
    struct http_route route;
    struct http_body body;
    enum http2_stage stage;
    bool half_closed; /* the client sends no more */
    bool of_use;      /* it brought a message */
    time_ns arrived;  /* when something of it last came */

    /* Outgoing: http2_answer.c. */
    bool responding; /* the head of the answer was submitted */
    bool deferred;   /* nghttp2 waits for the next reply */
    bool ended;      /* the answer is complete */
    bool given_up;   /* it will be reset, and nothing of its answer is held any more */
    struct h2_reply *replies;
    struct h2_reply **last_reply;
    time_ns moved; /* when a part of the answer was last sent, or its first began to wait */
};

/* http2_stream_callbacks - set the callbacks for heads, bodies and closing. */
void http2_stream_callbacks(nghttp2_session_callbacks *c);

/* http2_stream_frame - a DATA or HEADERS frame was received whole. */
void http2_stream_frame(struct http2_conn *h, const nghttp2_frame *frame);

/* http2_stream_turn - a new turn has begun: requests that were put off may be answered now. */
void http2_stream_turn(struct http2_conn *h);

/* http2_stream_waits - true if requests were put off, and their client reads what it is told. */
bool http2_stream_waits(const struct http2_conn *h);

/* http2_stream_ready - the next part of its answer is complete. */
void http2_stream_ready(struct http2_stream *s);

/* http2_stream_reset - the client does not go on with it: end it with this error code. */
void http2_stream_reset(struct http2_stream *s, uint32_t code);

/* http2_stream_give_up - its client does not take the answer, and others of the connection need
 * the room: reset it, and hold nothing of it any more. */
void http2_stream_give_up(struct http2_stream *s);

/* http2_stream_slowest - the stream that makes the connection hold most events and does not take
 * them; NULL = there is none. */
struct http2_stream *http2_stream_slowest(const struct http2_conn *h);

/* http2_stream_closed - the stream or its connection is gone: cancel its request, and free it. */
void http2_stream_closed(struct http2_stream *s);
