#pragma once
/* A gRPC connection: a socket and an nghttp2 session on one worker. No I/O happens in nghttp2's
 * callbacks: bytes are read into the worker's buffer and fed to the session; what the session
 * has to say is written once a turn. Everything here runs on the worker's thread. */
#include "base/list.h"
#include "grpc/grpc_frames.h"
#include "grpc/grpc_keepalive.h"
#include "grpc/grpc_out.h"
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
struct options_restrictions;
struct worker;

/* The limits of a connection. */
#define GRPC_CONN_MAX_STREAMS  1024u               /* calls at once */
#define GRPC_CONN_HEADER_BYTES ((size_t)16384)     /* names and values of a call's metadata */
#define GRPC_CONN_FRAME_BYTES  ((uint32_t)1 << 20) /* of a frame that a client may send */

/* A call with more metadata than allowed is refused; one with more than so much ends the
 * connection. To read on costs what the client chooses: a byte can stand for a header of four
 * thousand. */
#define GRPC_CONN_SURPLUS_BYTES ((size_t)65536)

/* What a call may send before its first message is known. It does not bound memory: a message's
 * bytes are reserved, and charged, by its prefix, and the window is opened further by exactly
 * what was reserved. */
#define GRPC_CONN_WINDOW ((int32_t)2 << 20)

/* A message that lacks so much is read straight into its buffer: grpc_scatter.h. */
#define GRPC_CONN_FILL_BYTES ((uint32_t)65536)

/* A front's share of a worker. */
struct grpc_home {
    struct worker *worker;
    const struct grpc_service *service;
    struct grpc_front *front;
    const nghttp2_session_callbacks *callbacks; /* the front's, and options */
    const nghttp2_option *options;
    const struct options_restrictions *restrictions;
    const struct forward *forward;    /* metadata that become parameters; NULL = none */
    uint8_t pack_level;               /* enum grpc_pack_level */
    const struct grpc_delays *delays; /* NULL = none: grpc_delay.h */
    bool curious;                     /* one of these three asks for a look at all metadata */
    struct grpc_keepalive_rules rules;
    struct helpers *helpers; /* for large messages that are compressed */
    struct tls_home tls;
    struct list conns;
    struct front_metrics *metrics;
    uint32_t strangers; /* turns.h */
    bool stopping;      /* connections close when their calls are done; those that come are late */
    bool closing;       /* so do the late ones, and no more come */
    uint32_t awaited;   /* connections that are not late */
    struct grpc_batch *batch;               /* the worker's, while it has connections */
    void (*conn_gone)(struct grpc_home *h); /* a connection was closed */
};

struct grpc_conn {
    struct loop_fd watch; /* first */
    struct loop_task flush;
    struct loop_timer timer; /* set while the client owes us something: grpc_patience.h */
    struct list node;        /* in home->conns */
    struct grpc_home *home;
    struct tls_conn *tls;     /* NULL = plain: net/tls/wire.h */
    nghttp2_session *session; /* NULL until there is something for it to do */
    struct grpc_out out;
    /* holds what the client makes us hold; NULL until there is a session */
    struct budget_account *account;
    struct list streams;
    uint32_t stream_count;
    uint32_t streams_held; /* the account holds so many: grpc_stream.c */
    /* whose large message goes on in the current DATA frame; NULL = none */
    struct grpc_stream *filling;
    uint32_t frame_bytes;      /* length of that frame; 0 when it is padded */
    uint32_t frame_left;       /* and what is left of it */
    uint32_t held_streams;     /* paused streams that hold bytes */
    uint32_t stopping_streams; /* answered before their client has sent everything */
    uint32_t receiving;        /* streams with a message that has begun and is not whole */
    uint32_t answering;        /* streams with answers that wait to be gathered */
    uint32_t turns;            /* that it took since it was last of use: net/turns.h */
    struct turns_share share;  /* of a turn */
    size_t told;               /* and bytes that it was told about the server: net/turns.h */
    size_t unread;             /* of these, what it has not taken yet */
    struct list put_off;       /* calls that wait to be told */
    uint32_t settings;         /* frames of them since the last message */
    bool proven;               /* a whole message came */
    bool greeted;              /* the client's SETTINGS came */
    bool retiring;             /* the client was told that the connection will end, */
    bool leaving;              /* since the server stops */
    bool late;                 /* it came while the server stops: calls are told so */
    bool expelled;             /* it does what no client needs to do, and was told so */
    bool said_goodbye;         /* and since then which call was the last */
    struct loop_timer goodbye; /* for a client that does not answer meanwhile */
    struct grpc_frames frames;
    time_ns progress; /* when bytes last moved, */
    time_ns sent;     /* were last written, or began to wait for the socket, */
    time_ns moved;    /* and of an answer, or when the first began to wait for a window */
    struct grpc_keepalive keepalive;
    struct loop_timer keepalive_timer;
};

/* grpc_conn_callbacks - set the callbacks of sessions: those of the connection and of its
 * streams. */
void grpc_conn_callbacks(nghttp2_session_callbacks *c);

/* grpc_conn_options - set the limits that sessions keep. */
void grpc_conn_options(nghttp2_option *o);

/* grpc_conn_open - take a connected socket over. It begins to speak when the client does. */
void grpc_conn_open(struct grpc_home *home, int fd);

/* grpc_conn_flush_later - the session has something to say: write it at the end of this turn. */
void grpc_conn_flush_later(struct grpc_conn *c);

/* grpc_conn_goodbye - tell the client to open no more calls (GOAWAY), serve those that it opened
 * before it read that, and close when they are done. Streaming calls end as soon as none of
 * their requests is under way. */
void grpc_conn_goodbye(struct grpc_conn *c);

/* grpc_conn_was_called - whether a call came on it. */
bool grpc_conn_was_called(const struct grpc_conn *c);

/* grpc_conn_close - close now: calls under way are cancelled, their answers dropped. Not from
 * inside nghttp2's callbacks. */
void grpc_conn_close(struct grpc_conn *c);

/* grpc_conn_expel - the client does what none needs to do: tell it why, and close. What it sent
 * behind this is not looked at.
 * returns  what the callback of nghttp2 that found it returns */
int grpc_conn_expel(struct grpc_conn *c, const char *why);

/* grpc_conn_of_use - a whole message came. */
void grpc_conn_of_use(struct grpc_conn *c);
