#include "os/sock.h"

#include "base/fault.h"
#include "base/mem.h"
#include "base/strbuf.h"
#include "os/sock_unix.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#define BACKLOG         4096
#define PROBE_SECONDS   15
#define CONNECT_SECONDS 10

/* Which descriptors are sockets that clients reach, one bit each; those beyond are not known.
 * Relaxed: only a child reads it, and has no other thread. */
#define SERVED_MOST 65536
static atomic_uint_least64_t served[SERVED_MOST / 64];

/* Call it with false before the socket is closed: then its number may be another's. */
static void sock_serves(int fd, bool serves)
{
    if (fd < 0 || fd >= SERVED_MOST)
        return;
    uint64_t bit = (uint64_t)1 << (fd % 64);
    if (serves)
        atomic_fetch_or_explicit(&served[fd / 64], bit, memory_order_relaxed);
    else
        atomic_fetch_and_explicit(&served[fd / 64], ~bit, memory_order_relaxed);
}

static void sock_forked(void)
{
    for (int i = 0; i < SERVED_MOST / 64; i++) {
        uint64_t bits = atomic_exchange_explicit(&served[i], 0, memory_order_relaxed);
        for (int bit = 0; bit < 64; bit++)
            if (bits >> bit & 1)
                close(i * 64 + bit);
    }
}

void sock_leave_at_fork(void)
{
    static atomic_flag asked = ATOMIC_FLAG_INIT;
    if (!atomic_flag_test_and_set(&asked))
        pthread_atfork(NULL, NULL, sock_forked);
}

static int sock_new_socket(int family)
{
    return fault_hit() ? (errno = EMFILE, -1)
                       : socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
}

/* "" is every address of IPv4. */
static const char *sock_named(const char *address)
{
    return *address ? address : "0.0.0.0";
}

char *sock_address(const char *address, uint16_t port)
{
    struct strbuf text = STRBUF_INIT;
    bool bare = strchr(address, ':') && *address != '[';
    if (sock_unix_path(address))
        strbuf_puts(&text, address);
    else
        strbuf_printf(&text, bare ? "[%s]:%u" : "%s:%u", sock_named(address), port);
    return strbuf_take(&text);
}

/* What the system says of an address. doing  "connect to", "listen on" */
static struct err *sock_system_error(int number, const char *doing, const char *address,
                                     uint16_t port)
{
    char *shown = sock_address(address, port);
    struct err *e = err_recode(err_errno(number, "cannot %s %s", doing, shown),
                               number == EMFILE ? STATUS_INTERNAL : STATUS_UNAVAILABLE);
    mem_free(shown);
    return e;
}

static struct err *bind_and_listen(int fd, const struct addrinfo *to, bool only_bind,
                                   const char *address, uint16_t port, int *ret_fd)
{
    if (fd >= 0 && bind(fd, to->ai_addr, to->ai_addrlen) == 0 &&
        (only_bind || listen(fd, BACKLOG) == 0)) {
        *ret_fd = fd;
        return NULL;
    }
    enum status status = errno == EADDRNOTAVAIL ? STATUS_INVALID_ARG : STATUS_UNAVAILABLE;
    struct err *e = err_recode(sock_system_error(errno, "listen on", address, port), status);
    if (fd >= 0)
        close(fd);
    return e;
}

static struct err *sock_look_up(const char *doing, const char *address, uint16_t port, int flags,
                                struct addrinfo **ret)
{
    char service[8];
    snprintf(service, sizeof(service), "%u", port);
    struct addrinfo hints = {
        .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = flags | AI_NUMERICSERV};
    int rc = getaddrinfo(address, service, &hints, ret);
    if (rc == EAI_SYSTEM)
        return sock_system_error(errno, doing, address, port);
    if (rc != 0)
        return err_new(STATUS_INVALID_ARG, "cannot %s %s: %s", doing, address, gai_strerror(rc));
    return NULL;
}

/* The address that a socket for `address` is bound to; one of IPv4 as ::ffff:192.0.2.7. */
static bool sock_bound_to(const char *address, struct in6_addr *ret)
{
    struct addrinfo *found;
    struct err *e = sock_look_up("listen on", sock_named(address), 0, AI_PASSIVE, &found);
    if (e) {
        err_free(e);
        return false;
    }
    if (found->ai_family == AF_INET6) {
        *ret = ((const struct sockaddr_in6 *)found->ai_addr)->sin6_addr;
    } else {
        *ret = (struct in6_addr){.s6_addr = {[10] = 0xff, [11] = 0xff}};
        memcpy(&ret->s6_addr[12], &((const struct sockaddr_in *)found->ai_addr)->sin_addr, 4);
    }
    freeaddrinfo(found);
    return true;
}

static bool sock_includes(const struct in6_addr *one, const struct in6_addr *other)
{
    static const struct in6_addr every_ipv4 = {.s6_addr = {[10] = 0xff, [11] = 0xff}};
    return IN6_IS_ADDR_UNSPECIFIED(one) || IN6_ARE_ADDR_EQUAL(one, other) ||
           (IN6_ARE_ADDR_EQUAL(one, &every_ipv4) && IN6_IS_ADDR_V4MAPPED(other));
}

bool sock_meet(const char *one, const char *other)
{
    struct in6_addr a, b;
    return sock_bound_to(one, &a) && sock_bound_to(other, &b) &&
           (sock_includes(&a, &b) || sock_includes(&b, &a));
}

static struct err *listen_tcp(const char *address, uint16_t port, bool reuse, int *ret_fd)
{
    struct addrinfo *found;
    struct err *e = sock_look_up("listen on", address, port, AI_PASSIVE, &found);
    if (e)
        return e;
    int fd = sock_new_socket(found->ai_family);
    int on = 1;
    if (fd >= 0) {
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
        if (reuse)
            setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof(on));
    }
    e = bind_and_listen(fd, found, reuse, address, port, ret_fd);
    freeaddrinfo(found);
    return e;
}

struct err *sock_listen(const char *address, uint16_t port, bool reuse, int *ret_fd)
{
    const char *path = sock_unix_path(address);
    struct err *e = path ? sock_unix_listen(path, ret_fd)
                         : listen_tcp(sock_named(address), port, reuse, ret_fd);
    if (!e)
        sock_serves(*ret_fd, true);
    return e;
}

/* As "192.0.2.7:40312", "[2001:db8::1]:40312", or "unix". */
static void put_address(const struct sockaddr_storage *at, char *to, size_t bytes)
{
    char text[INET6_ADDRSTRLEN] = "";
    if (at->ss_family == AF_INET) {
        const struct sockaddr_in *in = (const struct sockaddr_in *)at;
        inet_ntop(AF_INET, &in->sin_addr, text, sizeof(text));
        snprintf(to, bytes, "%s:%u", text, ntohs(in->sin_port));
    } else if (at->ss_family == AF_INET6) {
        const struct sockaddr_in6 *in = (const struct sockaddr_in6 *)at;
        inet_ntop(AF_INET6, &in->sin6_addr, text, sizeof(text));
        snprintf(to, bytes, "[%s]:%u", text, ntohs(in->sin6_port));
    } else {
        snprintf(to, bytes, "unix");
    }
}

struct err *sock_listen_shared(int fd)
{
    if (listen(fd, BACKLOG) == 0)
        return NULL;
    int number = errno;
    char shown[64];
    struct sockaddr_storage at = {0};
    socklen_t len = sizeof(at);
    getsockname(fd, (struct sockaddr *)&at, &len);
    put_address(&at, shown, sizeof(shown));
    return err_recode(err_errno(number, "cannot listen on %s", shown), STATUS_UNAVAILABLE);
}

/* The socket blocks until it is connected; the limit of writes is that of connecting too. */
static int connect_tcp(const struct addrinfo *to)
{
    const struct timeval most = {.tv_sec = CONNECT_SECONDS};
    int on = 1;
    int fd =
        fault_hit() ? (errno = EMFILE, -1) : socket(to->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -1;
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &most, sizeof(most));
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    if (connect(fd, to->ai_addr, to->ai_addrlen) == 0 && fcntl(fd, F_SETFL, O_NONBLOCK) == 0)
        return fd;
    int number = errno == EINPROGRESS ? ETIMEDOUT : errno;
    close(fd);
    errno = number;
    return -1;
}

struct err *sock_connect(const char *address, uint16_t port, int *ret_fd)
{
    const char *path = sock_unix_path(address);
    if (path)
        return sock_unix_connect(path, ret_fd);
    struct addrinfo *found;
    struct err *e = sock_look_up("connect to", address, port, 0, &found);
    if (e)
        return e;
    int fd = -1;
    for (const struct addrinfo *each = found; each && fd < 0; each = each->ai_next)
        fd = connect_tcp(each);
    int number = errno;
    freeaddrinfo(found);
    if (fd < 0)
        return sock_system_error(number, "connect to", address, port);
    *ret_fd = fd;
    return NULL;
}

uint16_t sock_port(int fd)
{
    struct sockaddr_storage at = {0};
    socklen_t len = sizeof(at);
    if (getsockname(fd, (struct sockaddr *)&at, &len) != 0)
        return 0;
    if (at.ss_family == AF_INET)
        return ntohs(((struct sockaddr_in *)&at)->sin_port);
    return at.ss_family == AF_INET6 ? ntohs(((struct sockaddr_in6 *)&at)->sin6_port) : 0;
}

void sock_peer(int fd, char *to, size_t bytes)
{
    struct sockaddr_storage at = {0};
    socklen_t len = sizeof(at);
    if (getpeername(fd, (struct sockaddr *)&at, &len) != 0)
        snprintf(to, bytes, "-");
    else
        put_address(&at, to, bytes);
}

int sock_accept(int listen_fd)
{
    int fd = fault_hit() ? (errno = EMFILE, -1)
                         : accept4(listen_fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    int on = 1;
    sock_serves(fd, true);
    if (fd >= 0)
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on,
                   sizeof(on)); /* fails harmlessly on Unix sockets */
    return fd;
}

/* A filter on the socket sees segments from the TCP header on, before the TCP stack does. It
 * drops segments that have only SYN set. */
void sock_refuse_new(int listen_fd)
{
    enum { FLAGS_AT = 13, SYN = 0x02, ACK = 0x10 };
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_B | BPF_ABS, FLAGS_AT),
        BPF_STMT(BPF_ALU | BPF_AND | BPF_K, SYN | ACK),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYN, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, 0),
        BPF_STMT(BPF_RET | BPF_K, UINT32_MAX),
    };
    struct sock_fprog program = {.len = sizeof(code) / sizeof(*code), .filter = code};
    setsockopt(listen_fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program));
}

static inline ssize_t receive(int fd, void *to, size_t n, int flags)
{
    for (;;) {
        ssize_t got = fault_hit() ? (errno = ECONNRESET, -1) : recv(fd, to, n, flags);
        if (got >= 0)
            return got;
        if (errno == EAGAIN)
            return -1;
        if (errno != EINTR)
            return -2;
    }
}

ssize_t sock_read(int fd, void *to, size_t n)
{
    return receive(fd, to, n, 0);
}

ssize_t sock_peek(int fd, void *to, size_t n)
{
    return receive(fd, to, n, MSG_PEEK);
}

ssize_t sock_read_pieces(int fd, const struct iovec *pieces, int count)
{
    struct msghdr m = {.msg_iov = (struct iovec *)(uintptr_t)pieces, .msg_iovlen = (size_t)count};
    for (;;) {
        ssize_t got = fault_hit() ? (errno = ECONNRESET, -1) : recvmsg(fd, &m, 0);
        if (got >= 0)
            return got;
        if (errno == EAGAIN)
            return -1;
        if (errno != EINTR)
            return -2;
    }
}

/* Sends the pieces. The usual single piece goes by the plain call, which saves the system
 * reading the array: 0.1 us of 8. */
static ssize_t send_pieces(int fd, const struct iovec *pieces, int count)
{
    struct msghdr m = {.msg_iov = (struct iovec *)(uintptr_t)pieces, .msg_iovlen = (size_t)count};
    return count == 1 ? send(fd, pieces->iov_base, pieces->iov_len, MSG_NOSIGNAL)
                      : sendmsg(fd, &m, MSG_NOSIGNAL);
}

ssize_t sock_write(int fd, const struct iovec *pieces, int count)
{
    for (;;) {
        ssize_t put = fault_hit() ? (errno = EPIPE, -1) : send_pieces(fd, pieces, count);
        if (put >= 0)
            return put;
        if (errno == EAGAIN)
            return 0;
        if (errno != EINTR)
            return -2;
    }
}

void sock_low_water(int fd, int n)
{
    setsockopt(fd, SOL_SOCKET, SO_RCVLOWAT, &n, sizeof(n));
}

void sock_probe(int fd)
{
    const struct {
        int level, option, value;
    } set[] = {{IPPROTO_TCP, TCP_KEEPIDLE, PROBE_SECONDS},
               {IPPROTO_TCP, TCP_KEEPINTVL, PROBE_SECONDS},
               {IPPROTO_TCP, TCP_KEEPCNT, 4},
               {SOL_SOCKET, SO_KEEPALIVE, 1}};
    for (size_t i = 0; i < sizeof(set) / sizeof(*set); i++)
        setsockopt(fd, set[i].level, set[i].option, &set[i].value, sizeof(set[i].value));
}

void sock_discard(int fd, size_t most)
{
    char unused[4096]; /* TCP writes nothing there, but a thread sanitizer assumes that it does */
    while (most > 0) {
        size_t some = most < sizeof(unused) ? most : sizeof(unused);
        ssize_t n = recv(fd, unused, some, MSG_TRUNC | MSG_DONTWAIT);
        if (n <= 0)
            return;
        most -= (size_t)n;
    }
}

void sock_close(int fd)
{
    sock_serves(fd, false);
    close(fd);
}
