#pragma once
/* A connection with TLS: its session, which begins with the client's first bytes. A worker's
 * connections of one front end share a home, which limits how long handshakes take and how many
 * there are. Worker's thread only. */
#include "base/list.h"
#include "os/loop.h"
#include "net/tls/tls_abi.h"

struct tls;
struct tls_conn;

/* How long a handshake may take from the client's first bytes on, and how many handshakes of a
 * worker may be in progress; above that, the oldest one is given up. */
#define TLS_CONN_PATIENCE TIME_S(10)
#define TLS_CONN_SHAKING  512u

/* The most memory of a session during its handshake; charged to the budget. */
#define TLS_CONN_BYTES ((size_t)48 << 10)

/* The first byte of every TLS record that a client sends before the keys are agreed: a handshake
 * record. */
#define TLS_CONN_HANDSHAKE 22

struct tls_home {
    struct tls *tls; /* NULL = the front end has no TLS */
    struct loop *loop;
    struct list shaking; /* connections in a handshake, oldest first */
    uint32_t count;      /* their number */
    struct loop_timer timer;
    const char *plain; /* the answer to a client without TLS, if any; static */
    /* give_up - close the connection of t now */
    void (*give_up)(struct tls_conn *t);
};

struct tls_conn {
    struct tls_abi_session *session; /* NULL = no bytes have come yet */
    const struct tls_abi *abi;
    struct tls_home *home;
    void *owner; /* the connection */
    int fd;
    struct list node; /* linked into home->shaking during the handshake */
    time_ns begun;
    bool spared; /* its memory was allowed although the budget was spent */
};

/* tls_conn_home_init - call it when the other fields are set.
 * tls_conn_home_fini - call it when no connection is left. */
void tls_conn_home_init(struct tls_home *h);
void tls_conn_home_fini(struct tls_home *h);

/* tls_conn_new - make one for a new socket, which the caller owns. */
struct tls_conn *tls_conn_new(struct tls_home *h, int fd, void *owner);

/* tls_conn_free - call it before the socket is closed. NULL is fine. */
void tls_conn_free(struct tls_conn *t);

/* tls_conn_read, tls_conn_write - as sock_read and sock_write. Failures are logged. */
ssize_t tls_conn_read(struct tls_conn *t, void *to, size_t n);
ssize_t tls_conn_write(struct tls_conn *t, const struct iovec *pieces, int count);
ssize_t tls_conn_read_pieces(struct tls_conn *t, const struct iovec *pieces, int count);

/* tls_conn_established - true if the handshake has ended; before that nothing can be written. */
bool tls_conn_established(const struct tls_conn *t);

/* tls_conn_goodbye - nothing more will be written. */
void tls_conn_goodbye(struct tls_conn *t);

/* tls_conn_note - log that a client uses TLS on a front end without TLS. */
void tls_conn_note(int fd, const char *front);

/* tls_conn_events - the events to watch the socket for if the connection wants `wanted`. */
uint32_t tls_conn_events(const struct tls_conn *t, uint32_t wanted);

/* tls_conn_ready - what the connection is ready for if the socket is ready for `events`. */
uint32_t tls_conn_ready(const struct tls_conn *t, uint32_t events);
