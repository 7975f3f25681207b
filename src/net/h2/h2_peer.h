#pragma once
/* The client's end of an HTTP/2 connection, as both front ends see it: which sessions there are,
 * what a client may do that is of no use before it is sent away, and how it is told to go.
 * Worker's thread only. */
#include "net/h2/h2_frames.h"
#include "os/clock.h"

#include <nghttp2/nghttp2.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct budget_account;
struct h2_batch;
struct h2_out;

/* The most SETTINGS frames of a client without a message in between. */
#define H2_PEER_SETTINGS_MAX 1000u

/* How long a client may take to confirm that it knows of the connection's end. */
#define H2_PEER_GOODBYE TIME_S(1)

/* The length of a frame's header. */
#define H2_PEER_HEAD_BYTES ((size_t)9)

/* What a session takes of the heap, with the tables of its header fields. */
#define H2_PEER_SESSION_BYTES ((size_t)32768)

/* What a front end allows on a connection. */
struct h2_peer_limits {
    uint32_t streams;      /* at the same time; more are refused */
    uint32_t window_bytes; /* of a stream, to begin with */
    uint32_t frame_bytes;
    uint32_t header_bytes; /* names and values of a request, each with 32 bytes more */
};

struct h2_peer {
    const char *protocol; /* for the log; static */
    struct h2_frames frames;
    uint32_t streams;      /* open ones */
    uint32_t streams_held; /* how many of them the connection's account is charged for */
    uint32_t settings;     /* SETTINGS frames since the last message */
    uint32_t most;         /* of h2_peer_limits.streams */
    bool announced;        /* the client was told how many streams there may be */
    bool greeted;          /* the client's SETTINGS came */
    bool retiring;         /* it was told that the connection will end */
    bool expelled;         /* it broke a rule, and was told so */
    bool said_goodbye;     /* it was told which stream is the last */
};

/* h2_peer_init - a new connection. */
void h2_peer_init(struct h2_peer *p, const char *protocol);

/* h2_peer_options - set the limits of all sessions that need no other. */
void h2_peer_options(nghttp2_option *o);

/* h2_peer_session - make the session of a connection. Its connection's window is open; what a
 * client may send is limited by its streams' and by what is charged. The session is charged to the
 * budget, also if there is no room: whoever looks after the server is to be answered, and the
 * number of connections has a limit of its own. NULL = no memory.
 * h2_peer_session_free - free it; NULL is fine. */
nghttp2_session *h2_peer_session(struct h2_peer *p, const struct h2_peer_limits *limits,
                                 const nghttp2_session_callbacks *callbacks,
                                 const nghttp2_option *options, void *user);
void h2_peer_session_free(nghttp2_session *session);

/* h2_peer_take - give received bytes to the session. Returns false if the connection must end. */
bool h2_peer_take(struct h2_peer *p, nghttp2_session *session, const void *data, size_t n);

/* h2_peer_gather - move frames from the session into the batch until the session has none or the
 * batch is full. Returns false if the connection must end. */
bool h2_peer_gather(struct h2_peer *p, nghttp2_session *session, struct h2_out *out,
                    struct h2_batch *b);

/* h2_peer_data_bytes - how long the next DATA frame may be: longer than the default only where
 * the answer has so much. For nghttp2's callback of that name.
 * left  of the answer's current part */
ssize_t h2_peer_data_bytes(uint64_t left, int32_t session_window, int32_t stream_window,
                           uint32_t frame_bytes);

/* h2_peer_received - a frame came; for on_frame_recv.
 * h2_peer_sent - a frame was put into the batch; for on_frame_send.
 * return  what the callback must return */
int h2_peer_received(struct h2_peer *p, nghttp2_session *session, const nghttp2_frame *frame);
int h2_peer_sent(struct h2_peer *p, nghttp2_session *session, const nghttp2_frame *frame);

/* h2_peer_full - true if the client has as many streams as it may.
 * h2_peer_refuse - then: refuse the one that it opens, which no callback is to know.
 * returns  what the callback must return */
bool h2_peer_full(const struct h2_peer *p);
int h2_peer_refuse(struct h2_peer *p, nghttp2_session *session, int32_t id);

/* h2_peer_stream - the client opened a stream.
 * h2_peer_stream_gone - it is closed.
 * h2_peer_streams_gone - the connection ends, and so do all of them.
 * account  of the connection
 * bytes    what a stream takes */
void h2_peer_stream(struct h2_peer *p, struct budget_account *account, size_t bytes);
void h2_peer_stream_gone(struct h2_peer *p, struct budget_account *account, size_t bytes);
void h2_peer_streams_gone(struct h2_peer *p, struct budget_account *account, size_t bytes);

/* h2_peer_of_use - a whole message came. */
void h2_peer_of_use(struct h2_peer *p);

/* h2_peer_expel - the client does something that no normal client does: tell it why, and close.
 * Bytes after this are ignored.
 * returns  the value that the calling nghttp2 callback must return */
int h2_peer_expel(struct h2_peer *p, nghttp2_session *session, const char *why);

/* h2_peer_retire - tell the client to open no more streams. This first notice does not name a
 * last stream: all that the client opens before it has read the notice come before its answer to
 * the ping that follows. After H2_PEER_GOODBYE the owner calls h2_peer_say_goodbye.
 * session  NULL is fine */
void h2_peer_retire(struct h2_peer *p, nghttp2_session *session);

/* h2_peer_say_goodbye - tell the client that no later stream is served. */
void h2_peer_say_goodbye(struct h2_peer *p, nghttp2_session *session);

/* h2_peer_wants - whether the session still waits for something. After the notice of
 * h2_peer_retire, a session without streams wants nothing more, but some may be on their way. */
bool h2_peer_wants(const struct h2_peer *p, nghttp2_session *session);
