#include "os/packet.h"

#include "base/check.h"
#include "base/fault.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

_Static_assert(PACKET_READABLE == EPOLLIN, "");

#define ROOM_BYTES (256 << 10) /* requested buffer size; the system may give less */

struct err *packet_pair(int ret_fds[2])
{
    int rc = fault_hit() ? (errno = EMFILE, -1)
                         : socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ret_fds);
    if (rc != 0)
        return err_errno(errno, "making a pair of sockets");
    int room = ROOM_BYTES;
    for (int i = 0; i < 2; i++)
        setsockopt(ret_fds[i], SOL_SOCKET, SO_SNDBUF, &room, sizeof(room));
    return NULL;
}

union control {
    struct cmsghdr head;
    char room[CMSG_SPACE(PACKET_MAX_FDS * sizeof(int))];
};

bool packet_send(int fd, const struct iovec *pieces, int count, const int *fds, unsigned fd_count,
                 bool wait)
{
    union control control;
    struct msghdr m = {.msg_iov = (struct iovec *)(uintptr_t)pieces, .msg_iovlen = (size_t)count};
    if (fd_count) {
        CHECK(fd_count <= PACKET_MAX_FDS);
        memset(&control, 0, sizeof(control));
        m.msg_control = control.room;
        m.msg_controllen = CMSG_SPACE(fd_count * sizeof(int));
        struct cmsghdr *c = CMSG_FIRSTHDR(&m);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(fd_count * sizeof(int));
        memcpy(CMSG_DATA(c), fds, fd_count * sizeof(int));
    }
    ssize_t put;
    do
        put = fault_hit() ? (errno = EPIPE, -1)
                          : sendmsg(fd, &m, MSG_NOSIGNAL | (wait ? 0 : MSG_DONTWAIT));
    while (put < 0 && errno == EINTR);
    return put > 0;
}

static void take_fds(struct msghdr *m, int *ret_fds)
{
    unsigned count = 0;
    for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
            continue;
        size_t n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (size_t i = 0; i < n && count < PACKET_MAX_FDS; i++)
            memcpy(&ret_fds[count++], CMSG_DATA(c) + i * sizeof(int), sizeof(int));
    }
}

ssize_t packet_receive(int fd, void *to, size_t cap, int *ret_fds, bool wait)
{
    union control control;
    struct iovec piece = {to, cap};
    struct msghdr m = {.msg_iov = &piece, .msg_iovlen = 1};
    for (unsigned i = 0; ret_fds && i < PACKET_MAX_FDS; i++)
        ret_fds[i] = -1;
    if (ret_fds) {
        m.msg_control = control.room;
        m.msg_controllen = sizeof(control.room);
    }
    ssize_t got;
    do
        got = fault_hit() ? 0 : recvmsg(fd, &m, MSG_CMSG_CLOEXEC | (wait ? 0 : MSG_DONTWAIT));
    while (got < 0 && errno == EINTR);
    if (got < 0)
        return errno == EAGAIN ? PACKET_NONE : errno == ECONNRESET ? 0 : PACKET_BAD;
    if (ret_fds)
        take_fds(&m, ret_fds);
    return m.msg_flags & MSG_TRUNC ? PACKET_BAD : got;
}

void packet_set_patience(int fd, time_ns most)
{
    struct timeval t = {.tv_sec = (time_t)(most / TIME_S(1)),
                        .tv_usec = (suseconds_t)(most % TIME_S(1) / TIME_US(1))};
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &t, sizeof(t));
}

void packet_end(int fd)
{
    shutdown(fd, SHUT_RDWR);
}

void packet_close(int fd)
{
    if (fd >= 0)
        close(fd);
}
