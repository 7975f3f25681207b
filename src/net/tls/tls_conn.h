#pragma once
/* A connection that speaks TLS: its session, which begins with the client's first bytes. A
 * worker's connections of one front end share a home, which sees that handshakes end in time and
 * are not too many. Worker's thread only. */
#include "base/list.h"
#include "os/loop.h"
#include "net/tls/tls_abi.h"

struct tls;
struct tls_conn;

/* How long a handshake may take from the client's first bytes on, and how many of a worker may
 * be under way at once; of more, the oldest is given up. */
#define TLS_CONN_PATIENCE TIME_S(10)
#define TLS_CONN_SHAKING  512u

/* What a session holds at most, in its handshake; charged to the budget. */
#define TLS_CONN_BYTES ((size_t)48 << 10)

/* The first byte of everything that a client says in TLS before its keys are agreed upon: a
 * record of the handshake. */
#define TLS_CONN_HANDSHAKE 22

struct tls_home {
    struct tls *tls; /* NULL = the front end is plain */
    struct loop *loop;
    struct list shaking; /* the oldest first */
    uint32_t count;      /* of them */
    struct loop_timer timer;
    const char *plain; /* what who does not speak TLS is told, if anything; static */
    /* give_up - close the connection that t belongs to, now */
    void (*give_up)(struct tls_conn *t);
};

struct tls_conn {
    struct tls_abi_session *session; /* NULL = nothing came yet */
    const struct tls_abi *abi;
    struct tls_home *home;
    void *owner; /* of the connection */
    int fd;
    struct list node; /* of home->shaking, while the handshake is under way */
    time_ns begun;
    bool spared; /* its bytes were not within the budget */
};

/* tls_home_init - once the rest is set. tls_home_fini - without connections. */
void tls_home_init(struct tls_home *h);
void tls_home_fini(struct tls_home *h);

/* tls_conn_new - for a fresh socket, which stays the caller's. */
struct tls_conn *tls_conn_new(struct tls_home *h, int fd, void *owner);

/* tls_conn_free - before the socket is closed. NULL is fine. */
void tls_conn_free(struct tls_conn *t);

/* tls_conn_read, tls_conn_write - as sock_read and sock_write. What failed is logged. */
ssize_t tls_conn_read(struct tls_conn *t, void *to, size_t n);
ssize_t tls_conn_write(struct tls_conn *t, const struct iovec *pieces, int count);
ssize_t tls_conn_read_pieces(struct tls_conn *t, const struct iovec *pieces, int count);

/* tls_conn_goodbye - nothing more will be written. */
void tls_conn_goodbye(struct tls_conn *t);

/* tls_conn_note - a client speaks TLS to a front end that is plain: a line of the log. */
void tls_conn_note(int fd, const char *front);

/* tls_conn_events - what to watch the socket for, where the connection wants `wanted`. */
uint32_t tls_conn_events(const struct tls_conn *t, uint32_t wanted);

/* tls_conn_ready - what the connection is ready for, where the socket is ready for `events`. */
uint32_t tls_conn_ready(const struct tls_conn *t, uint32_t events);
