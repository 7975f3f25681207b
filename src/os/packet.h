#pragma once
/* Messages between two processes: a pair of Unix sockets that keep the bounds of what is sent,
 * and carry descriptors. The end of one process is the end of what the other receives.
 * Close-on-exec, without SIGPIPE. Any thread. */
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>
#include <sys/uio.h>

#define PACKET_MAX_BYTES 65536u /* of one message */
#define PACKET_MAX_FDS   8u

#define PACKET_READABLE 1u /* EPOLLIN, to watch an end with a loop */

#define PACKET_NONE (-1) /* nothing to receive now */
#define PACKET_BAD  (-2) /* a message over the size, or an error of the system */

/* packet_pair - two connected ends; blocking, see packet_send and packet_receive.
 * errors  INTERNAL: no descriptors left */
struct err *packet_pair(int ret_fds[2]);

/* packet_send - one message, never empty, with descriptors, which stay the caller's too.
 * wait     until there is room; else false where there is none
 * returns  false: the other end is gone, or there is no room */
bool packet_send(int fd, const struct iovec *pieces, int count, const int *fds, unsigned fd_count,
                 bool wait);

/* packet_receive - one message.
 * ret_fds   room for PACKET_MAX_FDS; -1 in those that did not come; NULL = descriptors that come
 *           are dropped
 * wait      for one
 * returns   its bytes; 0 = the other end is gone and nothing is left; PACKET_NONE; PACKET_BAD */
ssize_t packet_receive(int fd, void *to, size_t cap, int *ret_fds, bool wait);

/* packet_end - nothing can be sent any more; both sides receive what is under way, then the end.
 * Safe in a signal handler. */
void packet_end(int fd);
void packet_close(int fd);
