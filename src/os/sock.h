#pragma once
/* Stream sockets: TCP and Unix. All of them are non-blocking, close-on-exec, and without
 * SIGPIPE. */
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
 * reuse    SO_REUSEPORT, so that several processes may share the port. A TCP socket is then only
 *          bound, and gets no connection before sock_listen_shared
 * errors   UNAVAILABLE: "cannot listen on ADDRESS:PORT: Address already in use"; INVALID_ARG for
 *          an invalid address, or one that this machine does not have; those of sock_unix_listen */
struct err *sock_listen(const char *address, uint16_t port, bool reuse, int *ret_fd);

/* sock_listen_shared - let such a socket have its share of the new connections.
 * errors  UNAVAILABLE: "cannot listen on ADDRESS:PORT: Address already in use" where a socket
 *         that does not share the port has taken it meanwhile */
struct err *sock_listen_shared(int fd);

/* sock_meet - whether sockets at these two addresses, as for sock_listen, at one port would be in
 * each other's way: one address, or one that includes the other. False if that cannot be told. */
bool sock_meet(const char *one, const char *other);

/* sock_connect - a connection to a listening socket, with TCP_NODELAY. Blocks for at most ten
 * seconds, besides the look-up of a name; not for loop threads that have clients.
 * address  a host name, a numeric address, or "unix:PATH"
 * errors   UNAVAILABLE: "cannot connect to ADDRESS:PORT: Connection refused"; INVALID_ARG for an
 *          invalid address; INTERNAL: this process has no descriptor left */
struct err *sock_connect(const char *address, uint16_t port, int *ret_fd);

/* sock_port - the port that a TCP socket is bound to; 0 for others. */
uint16_t sock_port(int fd);

/* sock_address - an address and a port for people, as "192.0.2.7:8000", "[2001:db8::1]:8000", or
 * "unix:PATH"; "" is every address of IPv4. The caller frees it (mem_free). */
char *sock_address(const char *address, uint16_t port);

/* sock_peer - the address of the other end: "192.0.2.7:40312", "[2001:db8::1]:40312", "unix", or
 * "-" if it is gone; cut to `bytes`. */
void sock_peer(int fd, char *to, size_t bytes);

/* sock_accept - accept the next connection and set TCP_NODELAY; -1 with errno, as accept4, if
 * there is none. */
int sock_accept(int listen_fd);

/* sock_refuse_new - a listening TCP socket starts no new handshake. Handshakes in progress
 * finish and can be accepted. When the socket is closed, other clients are told that nobody
 * listens. */
void sock_refuse_new(int listen_fd);

/* sock_read - bytes read; 0 = the peer closed; -1 = would block; -2 = error, close it. */
ssize_t sock_read(int fd, void *to, size_t n);

/* sock_peek - the same; the bytes will be read again. */
ssize_t sock_peek(int fd, void *to, size_t n);

/* sock_read_pieces - the same, into several pieces in order. */
ssize_t sock_read_pieces(int fd, const struct iovec *pieces, int count);

/* sock_write - write the pieces; returns the number of bytes written, which may be fewer; 0 =
 * would block; -2 = error, close it. */
ssize_t sock_write(int fd, const struct iovec *pieces, int count);

/* sock_low_water - wake up for reading only when n bytes have arrived (1 = any). */
void sock_low_water(int fd, int n);

/* sock_probe - let the system check from time to time that the peer is still there: a TCP
 * connection whose peer is gone then fails within about two minutes, even if nothing is written. */
void sock_probe(int fd);

/* sock_discard - read and drop at most `most` bytes. Closing a TCP socket with unread bytes
 * resets the connection, and the peer may then not receive the last answer. */
#define SOCK_DISCARD_BYTES ((size_t)1 << 20) /* of a client whose connection ends */
void sock_discard(int fd, size_t most);
void sock_close(int fd);

/* sock_leave_at_fork - from now on a child of fork closes the sockets that this process listens on
 * and has accepted: they are the parent's, and a client would wait for as long as the child lives.
 * A second call is fine. */
void sock_leave_at_fork(void);
