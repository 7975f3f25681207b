#pragma once
/* Stream sockets: TCP and Unix. Everything non-blocking, close-on-exec, without SIGPIPE. */
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

/* sock_listen - a listening TCP socket.
 * address  a numeric IPv4 or IPv6 address, or a host name; "" or "0.0.0.0" = every IPv4 address;
 *          "unix:PATH" = a Unix socket (sock_unix.h)
 * port     0 = the system chooses: see sock_port
 * reuse    SO_REUSEPORT, so that several processes may share the port
 * errors   UNAVAILABLE: "cannot listen on ADDRESS:PORT: Address already in use"; INVALID_ARG for
 *          an address that is none, or not one of this machine; those of sock_unix_listen */
struct err *sock_listen(const char *address, uint16_t port, bool reuse, int *ret_fd);

/* sock_port - the port that a TCP socket is bound to; 0 for others. */
uint16_t sock_port(int fd);

/* sock_peer - who is at the other end: "192.0.2.7:40312", "[2001:db8::1]:40312", "unix", or "-"
 * when it is gone; cut to `bytes`. */
void sock_peer(int fd, char *to, size_t bytes);

/* sock_accept - the next connection, TCP_NODELAY set; -1 with errno as accept4 when there is
 * none. */
int sock_accept(int listen_fd);

/* sock_refuse_new - a listening TCP socket begins no further handshake; those under way end, and
 * can be accepted. Clients that try are told that nobody listens once the socket is closed. */
void sock_refuse_new(int listen_fd);

/* sock_read - bytes read; 0 = the peer closed; -1 = would block; -2 = error, close it. */
ssize_t sock_read(int fd, void *to, size_t n);

/* sock_peek - the same; the bytes will be read again. */
ssize_t sock_peek(int fd, void *to, size_t n);

/* sock_read_pieces - the same, into several pieces in order. */
ssize_t sock_read_pieces(int fd, const struct iovec *pieces, int count);

/* sock_write - bytes written of all pieces, may be fewer; 0 = would block; -2 = error, close it. */
ssize_t sock_write(int fd, const struct iovec *pieces, int count);

/* sock_low_water - wake up for reading only when n bytes are there (1 = any). */
void sock_low_water(int fd, int n);

/* sock_probe - ask the peer's system from time to time whether the peer is still there: a TCP
 * connection whose peer is gone fails within about two minutes, though nothing is written. */
void sock_probe(int fd);

/* sock_discard - drop what came and was not read, at most so many bytes: closing a TCP socket
 * with something unread resets the connection, and the peer may then not see what it was told
 * last. */
void sock_discard(int fd, size_t most);
void sock_close(int fd);
