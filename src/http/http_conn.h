#pragma once
/* One HTTP connection on its worker's loop: what it waits for, and for how long. http_read
 * reads the messages, http_out writes the answers, in order; once a client speaks HTTP/2,
 * http2_conn does both. Worker's thread only. */
#include "base/list.h"
#include "codec/http1.h"
#include "http/http_body.h"
#include "http/http_service.h"
#include "net/turns.h"
#include "os/loop.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct budget_account;
struct http_backlog;
struct http_exchange;
struct http2_conn;
struct http2_stream;
struct http_shard;
struct tls_conn;

/* The most requests of one connection that wait for their answers; further requests are left
 * unread. */
#define HTTP_CONN_MAX_IN_FLIGHT 64u

/* How much is read in the first turn of a connection, and at most in one turn. It is small, so
 * that most of a large body is received directly into its own buffer. */
#define HTTP_CONN_READ_FIRST ((size_t)4096)
#define HTTP_CONN_READ_MOST  ((size_t)16384)

enum http_phase {
    HTTP_PHASE_HEAD,    /* between messages, or in a head */
    HTTP_PHASE_BODY,    /* body.left bytes of a body with a length are still to come */
    HTTP_PHASE_CHUNKS,  /* in a chunked body */
    HTTP_PHASE_DISCARD, /* body.left bytes of a body that is dropped are still to come */
    HTTP_PHASE_TURN,    /* a head was read whose answer is made in a later turn */
    HTTP_PHASE_FRAMES,  /* the client speaks HTTP/2 */
    HTTP_PHASE_IGNORE,  /* the last message was read; later bytes are dropped */
};

/* Where answers go, each after those before it. */
struct http_line {
    struct http_conn *conn;
    struct http2_stream *stream; /* NULL = HTTP/1.1 */
    struct list exchanges;       /* not written yet, oldest first */
    size_t event_bytes;          /* bytes of events that wait to be written: http_event.h */
    time_ns begun; /* when the message that is received began; 0 = it came in one read */
};

/* As http_conn.preface: no preface of HTTP/2 can come any more. */
#define HTTP_CONN_NO_PREFACE UINT8_MAX

struct http_conn {
    struct loop_fd fd; /* first member; the connection is found through it */
    struct loop_task flush;
    struct loop_timer timer;
    struct list node; /* linked into the shard's connections */
    struct http_shard *shard;
    struct tls_conn *tls;  /* NULL = plain: net/tls/wire.h */
    struct http_line line; /* of HTTP/1.1 */
    struct http2_conn *h2; /* NULL = HTTP/1.1 */
    uint32_t in_flight;    /* exchanges that are not written yet */
    enum http_phase phase;
    uint8_t preface; /* bytes of the preface of HTTP/2 that the client began with */
    bool proven;     /* a whole message came */
    bool closing;    /* the front end stops: a message that has begun is the last one */
    bool dead;       /* the socket is closed; freed at the end of the turn */
    bool ended;      /* the client closed its side: it sends no more, but may still read */
    bool hung_up;    /* the same, seen behind what it has sent and was not read yet */
    bool asked;      /* an ended client was asked whether it is still there */
    /* everything is written and the server's side is closed: waiting for the client to close */
    bool lingering;
    time_ns since;            /* when the current wait began, or last made progress */
    time_ns patience;         /* while the front end stops: how long it waits for a request */
    int low_water;            /* the current SO_RCVLOWAT */
    uint32_t turns;           /* turns since it was last useful: net/turns.h */
    struct turns_share share; /* how much is read in a turn */
    /* bytes of information about the server since it was last useful */
    size_t told;
    size_t unread;      /* bytes of texts that wait to be written */
    size_t event_bytes; /* of all its lines, until they are written */
    /* charged for what the client makes the server hold; NULL until needed */
    struct budget_account *account;

    struct http_route route; /* of the message whose head was read */
    struct http_body body;   /* of the message that is being received */

    char *held; /* received bytes that must wait until answers are written */
    size_t held_len;

    struct http_backlog *backlog; /* answers that the socket did not take; NULL = none */
    struct http1_parser parser;
};

/* http_conn_open - serve a new connection; owns the socket. */
void http_conn_open(struct http_shard *s, int fd);

/* http_conn_account - c->account; made when it is first needed. */
struct budget_account *http_conn_account(struct http_conn *c);

/* http_conn_kill - close the socket now and free the rest at the end of the turn. Requests in
 * flight are marked as cancelled. */
void http_conn_kill(struct http_conn *c);

/* http_conn_drain - the front end stops: the connection ends after its outstanding answers; the
 * last one tells the client so. A message that has begun is also received and answered. A
 * connection without outstanding answers waits a little for one more request. */
void http_conn_drain(struct http_conn *c);

/* http_conn_ended - the client closed its side. Nothing more is read. The connection continues
 * while answers are outstanding. */
void http_conn_ended(struct http_conn *c);

/* http_conn_orphan - nobody waits for the answers of a line: its requests are cancelled. */
void http_conn_orphan(struct http_line *l);

/* http_conn_is_told - true if the answer of a route describes the server.
 * http_conn_may_tell - true if such an answer may be made in this turn.
 * http_conn_waits_to_ask - true if a later turn may make one, of which the head was read.
 * http_conn_of_use - a whole message for a route came. */
bool http_conn_is_told(const struct http_conn *c, const struct http_route *route);
bool http_conn_may_tell(const struct http_conn *c);
bool http_conn_waits_to_ask(const struct http_conn *c);
void http_conn_of_use(struct http_conn *c, const struct http_route *route);

/* http_conn_owes - true if messages that were received completely, or may have been, are not
 * answered yet. */
bool http_conn_owes(const struct http_conn *c);

/* http_conn_is_due - true if the line's next answer, or the next event of one, is complete.
 * http_conn_lags   - true if the client does not take what its line has to say. */
bool http_conn_is_due(const struct http_line *l);
bool http_conn_lags(const struct http_line *l);

/* http_conn_answered - the answer of x is complete. */
void http_conn_answered(struct http_conn *c, const struct http_exchange *x);

/* http_conn_watch - watch the events that matter now. */
void http_conn_watch(struct http_conn *c);

/* http_conn_finish - the last answer is written: close the server's side and wait for the
 * client. */
void http_conn_finish(struct http_conn *c);

/* http_conn_wait - a wait begins or continues: make sure that it ends in time. */
void http_conn_wait(struct http_conn *c);
