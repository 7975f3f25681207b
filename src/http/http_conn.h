#pragma once
/* One HTTP/1.1 connection on its worker's loop, from its first byte to its last: what it waits
 * for, and for how long. http_read takes the messages, http_out writes the answers, in order.
 * Worker's thread only. */
#include "base/list.h"
#include "codec/http1.h"
#include "http/http_service.h"
#include "net/turns.h"
#include "os/loop.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct budget_account;
struct buf;
struct http_backlog;
struct http_exchange;
struct http_shard;
struct tls_conn;

/* Requests of one connection that wait for their answers; more are left unread. */
#define HTTP_CONN_MAX_IN_FLIGHT 64u

/* So much is read in the first turn of a connection, and at most in one: little enough that most
 * of a large body is received straight into its own buffer. */
#define HTTP_CONN_READ_FIRST ((size_t)4096)
#define HTTP_CONN_READ_MOST  ((size_t)16384)

enum http_phase {
    HTTP_PHASE_HEAD,    /* between messages, or in a head */
    HTTP_PHASE_BODY,    /* body_left bytes of a body of known length are to come */
    HTTP_PHASE_CHUNKS,  /* in a chunked body */
    HTTP_PHASE_DISCARD, /* body_left bytes of a body that nobody wants */
    HTTP_PHASE_TURN,    /* a head was read whose answer is to be made up in another turn */
    HTTP_PHASE_IGNORE,  /* the last message was read: what still comes is dropped */
};

struct http_conn {
    struct loop_fd fd; /* first: found through it */
    struct loop_task flush;
    struct loop_timer timer;
    struct list node; /* of the shard's connections */
    struct http_shard *shard;
    struct tls_conn *tls;  /* NULL = plain: net/tls/wire.h */
    struct list exchanges; /* not written yet, oldest first */
    uint32_t in_flight;    /* how many they are */
    enum http_phase phase;
    bool proven;      /* a whole message came */
    bool closing;     /* the front end stops: the message that has begun, if any, is the last */
    bool dead;        /* the socket is closed; freed at the end of the turn */
    bool ended;       /* the peer closed its side: it reads, perhaps, and sends no more */
    bool asked;       /* and was asked whether it is still there */
    bool lingering;   /* everything is written and our side closed: waiting for the peer to close */
    time_ns since;    /* when the present wait began, or last made progress */
    time_ns patience; /* while the front end stops: how long it waits for a request */
    int low_water;    /* SO_RCVLOWAT as set */
    uint32_t turns;   /* that it took since it was last of use: net/turns.h */
    struct turns_share share;       /* of a turn */
    size_t told;                    /* bytes that it was told about the server, the same */
    size_t unread;                  /* of texts that wait to be written */
    struct budget_account *account; /* holds what the client makes us hold; NULL until it asks */

    struct http_route route; /* of the message whose head was read */
    struct buf *body;        /* what is being received; NULL = none */
    size_t body_at;          /* where in it the body begins: the first tensor lies on 64 bytes */
    size_t body_len;         /* received so far */
    uint64_t body_left;
    uint64_t body_max;
    struct err *body_error; /* why a piece of a chunked body was refused */

    char *held; /* bytes that were received but must wait until answers are written */
    size_t held_len;

    struct http_backlog *backlog; /* answers that the socket did not take; NULL = none */
    struct http1_parser parser;
};

/* http_conn_open - take a fresh socket over. */
void http_conn_open(struct http_shard *s, int fd);

/* http_conn_account - c->account, made when it is first asked for. */
struct budget_account *http_conn_account(struct http_conn *c);

/* http_conn_kill - close the socket now, free the rest at the end of the turn; requests under
 * way are marked as cancelled. */
void http_conn_kill(struct http_conn *c);

/* http_conn_drain - the front end stops: the connection ends after the answers that it owes, the
 * last of which tells the client so. Owed is what was received, the rest of a message that has
 * begun included. One that owes nothing waits a little for one more request. */
void http_conn_drain(struct http_conn *c);

/* http_conn_ended - the peer closed its side. Nothing more is read; the connection goes on for
 * the answers that it owes, if any. */
void http_conn_ended(struct http_conn *c);

/* http_conn_owes - whether messages that came whole, or may have, are not answered yet. */
bool http_conn_owes(const struct http_conn *c);

/* http_conn_answered - the answer of x is complete. */
void http_conn_answered(struct http_conn *c, const struct http_exchange *x);

/* http_conn_watch - ask the loop for the events that matter now. */
void http_conn_watch(struct http_conn *c);

/* http_conn_finish - the last answer is written: close our side, wait for the peer. */
void http_conn_finish(struct http_conn *c);

/* http_conn_wait - a wait begins or goes on: see that it ends in time. */
void http_conn_wait(struct http_conn *c);
