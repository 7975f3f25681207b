#pragma once
/* Reads and writes the bytes of every connection, plain or with TLS. t is NULL for a plain
 * connection, which costs one branch. */
#include "net/tls/tls_conn.h"
#include "os/sock.h"

#include <sys/socket.h>

#define WIRE_PLAIN_(t) __builtin_expect(!(t), 1)

/* As the functions of os/sock.h. After a TLS read there may be bytes that the socket does not
 * show, so use wire_events for the events to watch and wire_ready for the result. */
static inline ssize_t wire_read(int fd, struct tls_conn *t, void *to, size_t n)
{
    return WIRE_PLAIN_(t) ? sock_read(fd, to, n) : tls_conn_read(t, to, n);
}

static inline ssize_t wire_read_pieces(int fd, struct tls_conn *t, const struct iovec *pieces,
                                       int count)
{
    return WIRE_PLAIN_(t) ? sock_read_pieces(fd, pieces, count)
                          : tls_conn_read_pieces(t, pieces, count);
}

static inline ssize_t wire_write(int fd, struct tls_conn *t, const struct iovec *pieces, int count)
{
    return WIRE_PLAIN_(t) ? sock_write(fd, pieces, count) : tls_conn_write(t, pieces, count);
}

/* wire_note_tls - `data` (at least one byte) cannot be understood: if it is TLS, log that. */
static inline void wire_note_tls(int fd, const void *data, const char *front)
{
    if (*(const unsigned char *)data == TLS_CONN_HANDSHAKE)
        tls_conn_note(fd, front);
}

/* wire_can_write - false during a handshake. */
static inline bool wire_can_write(const struct tls_conn *t)
{
    return WIRE_PLAIN_(t) || tls_conn_established(t);
}

/* wire_end - nothing more will be written; the peer may still send. */
static inline void wire_end(int fd, struct tls_conn *t)
{
    if (t)
        tls_conn_goodbye(t);
    shutdown(fd, SHUT_WR);
}

static inline uint32_t wire_events(const struct tls_conn *t, uint32_t wanted)
{
    return WIRE_PLAIN_(t) ? wanted : tls_conn_events(t, wanted);
}

static inline uint32_t wire_ready(const struct tls_conn *t, uint32_t events)
{
    return WIRE_PLAIN_(t) ? events : tls_conn_ready(t, events);
}
