#pragma once
/* What a connection has besides once it speaks HTTP/2: a session of nghttp2 and its streams, each
 * of which is a line of answers (http_conn.h). nghttp2's callbacks do no I/O: bytes are read into
 * the worker's buffer and fed to the session, its output is written once per turn. Worker's thread
 * only. */
#include "base/list.h"
#include "net/h2/h2_out.h"
#include "net/h2/h2_peer.h"
#include "os/loop.h"

#include <nghttp2/nghttp2.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct http_conn;

/* The limits of a connection. */
#define HTTP2_CONN_MAX_STREAMS   256u                /* requests at the same time */
#define HTTP2_CONN_FRAME_BYTES   ((uint32_t)1 << 20) /* of a frame from a client */
#define HTTP2_CONN_WINDOW        ((uint32_t)1 << 20) /* of a body whose length is not known yet */
#define HTTP2_CONN_SURPLUS_BYTES ((size_t)131072)    /* of a head; a longer one ends it all */

/* The most pings of a client without a message or an answer in between. */
#define HTTP2_CONN_PINGS 1000u

struct http2_conn {
    struct http_conn *conn;
    nghttp2_session *session;
    struct h2_peer peer;
    struct h2_out out;
    struct list streams;
    struct list ready;   /* streams whose next answer is complete */
    struct list put_off; /* streams whose requests wait for a turn to be answered */
    uint32_t receiving;  /* streams whose body is incomplete */
    uint32_t answering;  /* streams with answers that wait to be sent */
    uint32_t pings;
    bool whole;       /* a frame, or a whole block of headers, came since the last read */
    time_ns begun;    /* when the client began what is still incomplete; 0 = nothing is */
    time_ns progress; /* when bytes were last read or written */
    time_ns sent;     /* when bytes were last written, or began to wait for the socket */
    time_ns moved;    /* when a part of an answer was last sent, or the first began to wait */
    struct loop_timer goodbye; /* for a client that does not answer before that */
};

/* http2_conn_callbacks - set the callbacks of all sessions.
 * http2_conn_options - set their limits. */
void http2_conn_callbacks(nghttp2_session_callbacks *c);
void http2_conn_options(nghttp2_option *o);

/* http2_conn_begin - the connection speaks HTTP/2 from its first byte on, and has sent the
 * preface. Returns false, and nothing has changed, if there is no memory. */
bool http2_conn_begin(struct http_conn *c);

/* http2_conn_take - bytes came. The connection may be dead afterwards. */
void http2_conn_take(struct http_conn *c, const char *data, size_t n);

/* The connection's events, as those of HTTP/1.1: the socket is ready, the turn ends, the timer is
 * due, the front end stops. */
void http2_conn_ready(struct http_conn *c, uint32_t events);
void http2_conn_flush(struct http_conn *c);
void http2_conn_due(struct http_conn *c);
void http2_conn_drain(struct http_conn *c);

/* http2_conn_watch - watch the events that matter now, and for how long. */
void http2_conn_watch(struct http_conn *c);

/* http2_conn_cut - as http_cut_conn, but for closing the connection. */
unsigned http2_conn_cut(struct http_conn *c);

/* http2_conn_abandon - the connection is closed: nobody waits for its answers any more.
 * http2_conn_free - free it in a later phase of the turn; NULL is fine. */
void http2_conn_abandon(struct http2_conn *h);
void http2_conn_free(struct http2_conn *h);
