#pragma once
/* A gRPC connection: a socket and an nghttp2 session on one worker. nghttp2's callbacks do no
 * I/O: bytes are read into the worker's buffer and fed to the session, and the session's output
 * is written once per turn. Everything here runs on the worker's thread. */
#include "base/list.h"
#include "grpc/grpc_keepalive.h"
#include "net/h2/h2_out.h"
#include "net/h2/h2_peer.h"
#include "net/guard.h"
#include "net/tls/tls_conn.h"
#include "net/turns.h"
#include "os/loop.h"

#include <nghttp2/nghttp2.h>
#include <stdbool.h>
#include <stdint.h>

struct budget_account;
struct forward;
struct front_metrics;
struct grpc_front;
struct grpc_stream;
struct helpers;
struct worker;

/* The limits of a connection. */
#define GRPC_CONN_MAX_STREAMS  1024u               /* calls at the same time */
#define GRPC_CONN_HEADER_BYTES ((size_t)16384)     /* names and values of a call's metadata */
#define GRPC_CONN_FRAME_BYTES  ((uint32_t)1 << 20) /* of a frame from a client */

/* A call with more metadata than allowed is refused; a call with more than this ends the
 * connection. Reading on would be expensive: one byte can stand for a header of four thousand. */
#define GRPC_CONN_SURPLUS_BYTES ((size_t)65536)

/* What a call may send before its first message's size is known. It does not limit memory: a
 * message's bytes are reserved and charged when its prefix came, and the window grows by exactly
 * that much. */
#define GRPC_CONN_WINDOW ((int32_t)2 << 20)

/* A message that still needs this many bytes is read directly into its buffer: grpc_scatter.h. */
#define GRPC_CONN_FILL_BYTES ((uint32_t)65536)
/* How long a client that was heard of may be about to make its first call. gRPC's own client, if it
 * is told to go just then, retries that call on the same connection until its deadline. */
#define GRPC_CONN_FRESH TIME_S(1)

/* The part of a front end on one worker. */
struct grpc_home {
    struct worker *worker;
    const struct grpc_service *service;
    struct grpc_front *front;
    const nghttp2_session_callbacks *callbacks; /* the front end's, like options */
    const nghttp2_option *options;
    struct guard guard;
    const struct forward *forward;    /* forwards metadata as parameters; NULL = none */
    uint8_t pack_level;               /* enum grpc_pack_level */
    const struct grpc_delays *delays; /* NULL = none: grpc_delay.h */
    /* all metadata must be looked at: restrictions, forwarding, packing or tracing need it */
    bool curious;
    struct grpc_keepalive_rules rules;
    struct helpers *helpers; /* for large compressed messages */
    struct tls_home tls;
    struct list conns;
    struct front_metrics *metrics;
    uint32_t strangers; /* turns.h */
    /* connections close when their calls have ended; new connections are late */
    bool stopping;
    bool closing;                           /* late connections close too, and none are accepted */
    uint32_t awaited;                       /* connections that are not late */
    struct h2_batch *batch;                 /* the worker's; exists while it has connections */
    void (*conn_gone)(struct grpc_home *h); /* called when a connection was closed */
};

struct grpc_conn {
    struct loop_fd watch; /* first member */
    struct loop_task flush;
    struct loop_timer timer; /* set while the client must send or read something: grpc_patience.h */
    struct list node;        /* linked into home->conns */
    struct grpc_home *home;
    struct tls_conn *tls;     /* NULL = no TLS: net/tls/wire.h */
    nghttp2_session *session; /* NULL until it is needed */
    struct h2_out out;
    /* charged for what the client makes the server hold; NULL until there is a session */
    struct budget_account *account;
    struct list streams;
    /* the stream that was opened last, whose frames mostly come next: nghttp2 need not be asked for
     * it; NULL = it is gone */
    struct grpc_stream *newest;
    /* the stream whose large message continues in the current DATA frame; NULL = none */
    struct grpc_stream *filling;
    uint32_t frame_bytes;  /* length of that frame; 0 if it is padded */
    uint32_t frame_left;   /* bytes left of that frame */
    uint32_t held_streams; /* paused streams with kept bytes */
    /* streams that were answered before their client had sent everything */
    uint32_t stopping_streams;
    uint32_t receiving;       /* streams whose client must go on with a message */
    uint32_t answering;       /* streams with answers that wait to be sent */
    uint32_t turns;           /* turns since it was last useful: net/turns.h */
    struct turns_share share; /* how much is read in a turn */
    /* bytes of information about the server since it was last useful: net/turns.h */
    size_t told;
    size_t unread;             /* how many of these the client has not taken yet */
    struct list put_off;       /* calls that wait for a turn to be answered */
    bool proven;               /* a whole message came */
    bool leaving;              /* it will end because the server stops */
    bool fresh;                /* it leaves with its first unary call, or when goodbye is due */
    bool late;                 /* it was opened while the server stops: calls get an error */
    struct loop_timer goodbye; /* for a client that does not answer before that */
    struct h2_peer peer;
    time_ns progress; /* when bytes were last read or written */
    time_ns sent;     /* when bytes were last written, or began to wait for the socket */
    /* when a part of an answer was last sent, or the first answer began to wait for a window */
    time_ns moved;
    struct grpc_keepalive keepalive;
    struct loop_timer keepalive_timer;
};

/* grpc_conn_callbacks - set the session callbacks of the connection and its streams. */
void grpc_conn_callbacks(nghttp2_session_callbacks *c);

/* grpc_conn_options - set the limits of sessions. */
void grpc_conn_options(nghttp2_option *o);

/* grpc_conn_open - serve a new connection; owns the socket. It sends nothing before the client
 * does. */
void grpc_conn_open(struct grpc_home *home, int fd);

/* grpc_conn_flush_later - the session has output: write it at the end of this turn. */
void grpc_conn_flush_later(struct grpc_conn *c);

/* grpc_conn_goodbye - tell the client to open no more calls (GOAWAY), serve the calls that it
 * opened before it read that, and close when they have ended. A streaming call ends as soon as
 * it has no request in flight. A client that has not called yet, and was heard of within
 * GRPC_CONN_FRESH, is told with its first unary call or when that time is over. */
void grpc_conn_goodbye(struct grpc_conn *c);

/* grpc_conn_called - the request of a unary call came. */
void grpc_conn_called(struct grpc_conn *c);

/* grpc_conn_close - close now: calls in flight are cancelled, their answers dropped. Not from
 * nghttp2's callbacks. */
void grpc_conn_close(struct grpc_conn *c);

/* grpc_conn_cut - end calls in flight with a status, as far as it can be written at once, before
 * the connection is closed. Not from nghttp2's callbacks.
 * returns  how many calls were waiting for their models */
unsigned grpc_conn_cut(struct grpc_conn *c);

/* grpc_conn_of_use - a whole message came. */
void grpc_conn_of_use(struct grpc_conn *c);
