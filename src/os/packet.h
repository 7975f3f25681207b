#pragma once
/* Messages between two processes: a pair of Unix sockets that keep message boundaries and can
 * carry descriptors. When one process ends, the other receives the end. Close-on-exec, without
 * SIGPIPE. Any thread. */
#include "base/err.h"
#include "os/clock.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>
#include <sys/uio.h>

#define PACKET_MAX_BYTES 65536u /* of one message */
#define PACKET_MAX_FDS   8u

#define PACKET_READABLE 1u /* EPOLLIN, for watching an end with a loop */

#define PACKET_NONE (-1) /* nothing to receive now */
#define PACKET_BAD  (-2) /* a message that is too large, or a system error */

/* packet_pair - make two connected ends; blocking, see packet_send and packet_receive.
 * errors  INTERNAL: no descriptors left */
struct err *packet_pair(int ret_fds[2]);

/* packet_send - send one message, which is not empty, with descriptors; the caller keeps its
 * descriptors.
 * wait     until there is room; else return false if there is none
 * returns  false: the other end is closed, or there is no room */
bool packet_send(int fd, const struct iovec *pieces, int count, const int *fds, unsigned fd_count,
                 bool wait);

/* packet_receive - receive one message.
 * ret_fds   room for PACKET_MAX_FDS; unused entries become -1; NULL = received descriptors are
 *           closed
 * wait      for a message
 * returns   its bytes; 0 = the other end is closed and nothing is left; PACKET_NONE; PACKET_BAD */
ssize_t packet_receive(int fd, void *to, size_t cap, int *ret_fds, bool wait);

/* packet_set_patience - how long packet_receive waits for a message, in nanoseconds, before it
 * returns PACKET_NONE; 0 = for ever. A system error changes nothing. */
void packet_set_patience(int fd, time_ns most);

/* packet_end - shut down sending. Both sides receive what is in flight, then the end. Safe in a
 * signal handler. */
void packet_end(int fd);
void packet_close(int fd);
