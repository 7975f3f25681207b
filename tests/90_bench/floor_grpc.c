/* floor_grpc - what gRPC itself costs: nghttp2 on one thread, each call answered with its own
 * bytes, headers before and trailers after. Not a server: it trusts its peer, the benchmark.
 * usage: bench_floor_grpc PORT */

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <nghttp2/nghttp2.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { READ_SIZE = 256 * 1024, WRITE_SIZE = 256 * 1024, FRAME_ROOM = 16384 + 64 };
enum { PREFIX = 5, MAX_EVENTS = 64 };

/* A call: its message with the 5-byte prefix, received first and sent after. */
struct call {
    struct call *next; /* in the list of idle ones, which keep their buffers */
    uint8_t *data;
    size_t len;
    size_t cap;
    size_t sent;
};

struct conn {
    int fd;
    uint32_t events; /* what epoll watches */
    nghttp2_session *session;
    uint8_t *out;
    size_t out_len;
    size_t out_sent;
};

static int epoll_fd;
static struct call *idle_calls;
static uint8_t read_buffer[READ_SIZE];

static void die(const char *what)
{
    perror(what);
    exit(1);
}

static void reserve(struct call *call, size_t cap)
{
    if (call->cap >= cap)
        return;
    call->data = realloc(call->data, cap);
    if (!call->data)
        die("realloc");
    call->cap = cap;
}

static int on_begin_headers(nghttp2_session *session, const nghttp2_frame *frame, void *user)
{
    struct call *call = idle_calls;

    (void)user;
    if (call)
        idle_calls = call->next;
    else if (!(call = calloc(1, sizeof *call)))
        die("calloc");
    call->len = 0;
    call->sent = 0;
    return nghttp2_session_set_stream_user_data(session, frame->hd.stream_id, call);
}

static int on_data(nghttp2_session *session, uint8_t flags, int32_t id, const uint8_t *data,
                   size_t len, void *user)
{
    struct call *call = nghttp2_session_get_stream_user_data(session, id);

    (void)flags;
    (void)user;
    reserve(call, call->len + len + PREFIX);
    memcpy(call->data + call->len, data, len);
    if (call->len < PREFIX && call->len + len >= PREFIX) {
        uint32_t size;

        memcpy(&size, call->data + 1, sizeof size);
        reserve(call, ntohl(size) + 2 * (size_t)PREFIX);
    }
    call->len += len;
    return 0;
}

static nghttp2_nv header(const char *name, const char *value)
{
    return (nghttp2_nv){.name = (uint8_t *)(uintptr_t)name,
                        .value = (uint8_t *)(uintptr_t)value,
                        .namelen = strlen(name),
                        .valuelen = strlen(value),
                        .flags = NGHTTP2_NV_FLAG_NO_COPY_NAME | NGHTTP2_NV_FLAG_NO_COPY_VALUE};
}

static ssize_t read_call(nghttp2_session *session, int32_t id, uint8_t *to, size_t cap,
                         uint32_t *flags, nghttp2_data_source *source, void *user)
{
    struct call *call = source->ptr;
    size_t n = call->len - call->sent;

    (void)user;
    if (n > cap)
        n = cap;
    memcpy(to, call->data + call->sent, n);
    call->sent += n;
    if (call->sent == call->len) {
        nghttp2_nv trailer = header("grpc-status", "0");

        *flags |= NGHTTP2_DATA_FLAG_EOF | NGHTTP2_DATA_FLAG_NO_END_STREAM;
        if (nghttp2_submit_trailer(session, id, &trailer, 1))
            die("nghttp2_submit_trailer");
    }
    return (ssize_t)n;
}

static int on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *user)
{
    bool message = frame->hd.type == NGHTTP2_DATA || frame->hd.type == NGHTTP2_HEADERS;

    (void)user;
    if (!message || !(frame->hd.flags & NGHTTP2_FLAG_END_STREAM))
        return 0;
    nghttp2_nv headers[] = {header(":status", "200"), header("content-type", "application/grpc")};
    nghttp2_data_provider body = {
        .source.ptr = nghttp2_session_get_stream_user_data(session, frame->hd.stream_id),
        .read_callback = read_call};
    return nghttp2_submit_response(session, frame->hd.stream_id, headers, 2, &body);
}

static int on_stream_close(nghttp2_session *session, int32_t id, uint32_t error, void *user)
{
    struct call *call = nghttp2_session_get_stream_user_data(session, id);

    (void)error;
    (void)user;
    call->next = idle_calls;
    idle_calls = call;
    return 0;
}

static void watch(struct conn *c, int op, uint32_t events)
{
    struct epoll_event ev = {.events = events, .data.ptr = c};

    if (epoll_ctl(epoll_fd, op, c->fd, &ev))
        die("epoll_ctl");
    c->events = events;
}

/* Moves frames from the session to the out buffer, as many as fit. */
static void fill_out(struct conn *c)
{
    while (c->out_len + FRAME_ROOM < WRITE_SIZE) {
        const uint8_t *frame;
        ssize_t n = nghttp2_session_mem_send(c->session, &frame);

        if (n <= 0)
            break;
        memcpy(c->out + c->out_len, frame, (size_t)n);
        c->out_len += (size_t)n;
    }
}

/* Sends what there is; waits for EPOLLOUT too when the socket is full. */
static void write_out(struct conn *c)
{
    for (;;) {
        if (c->out_sent == c->out_len) {
            c->out_sent = c->out_len = 0;
            fill_out(c);
            if (!c->out_len)
                break;
        }
        ssize_t n = send(c->fd, c->out + c->out_sent, c->out_len - c->out_sent, MSG_NOSIGNAL);
        if (n < 0)
            break;
        c->out_sent += (size_t)n;
    }
    uint32_t events = c->out_len ? EPOLLIN | EPOLLOUT : EPOLLIN;
    if (events != c->events)
        watch(c, EPOLL_CTL_MOD, events);
}

/* False when the connection has ended. */
static bool on_event(struct conn *c, uint32_t events)
{
    if (events & (EPOLLHUP | EPOLLERR))
        return false;
    if (events & EPOLLIN) {
        ssize_t n = recv(c->fd, read_buffer, sizeof read_buffer, 0);

        if (n == 0 || (n < 0 && errno != EAGAIN))
            return false;
        if (n > 0 && nghttp2_session_mem_recv(c->session, read_buffer, (size_t)n) != n)
            return false;
    }
    write_out(c);
    return nghttp2_session_want_read(c->session) || nghttp2_session_want_write(c->session);
}

static void close_conn(struct conn *c)
{
    nghttp2_session_del(c->session);
    close(c->fd);
    free(c->out);
    free(c);
}

static nghttp2_session *new_session(struct conn *c)
{
    nghttp2_session_callbacks *callbacks;
    nghttp2_session *session;
    nghttp2_settings_entry settings[] = {
        {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, INT32_MAX},
        {NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, 1024},
    };

    if (nghttp2_session_callbacks_new(&callbacks))
        die("nghttp2_session_callbacks_new");
    nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, on_begin_headers);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_stream_close);
    if (nghttp2_session_server_new(&session, callbacks, c) ||
        nghttp2_submit_settings(session, NGHTTP2_FLAG_NONE, settings, 2) ||
        nghttp2_session_set_local_window_size(session, NGHTTP2_FLAG_NONE, 0, INT32_MAX))
        die("nghttp2 session");
    nghttp2_session_callbacks_del(callbacks);
    return session;
}

static void accept_one(int listener)
{
    int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    int one = 1;

    if (fd < 0)
        return;
    struct conn *c = calloc(1, sizeof *c);
    if (!c || !(c->out = malloc(WRITE_SIZE)))
        die("malloc");
    c->fd = fd;
    c->session = new_session(c);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    watch(c, EPOLL_CTL_ADD, EPOLLIN);
    write_out(c);
}

static int listen_on(uint16_t port)
{
    struct sockaddr_in addr = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int one = 1;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one) ||
        bind(fd, (struct sockaddr *)&addr, sizeof addr) || listen(fd, 1024))
        die("listen");
    return fd;
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: %s PORT\n", argv[0]);
        return 2;
    }
    int listener = listen_on((uint16_t)strtoul(argv[1], NULL, 10));
    struct epoll_event ev = {.events = EPOLLIN, .data.ptr = NULL};

    epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (epoll_fd < 0 || epoll_ctl(epoll_fd, EPOLL_CTL_ADD, listener, &ev))
        die("epoll");
    for (;;) {
        struct epoll_event events[MAX_EVENTS];
        int n = epoll_wait(epoll_fd, events, MAX_EVENTS, -1);

        for (int i = 0; i < n; i++) {
            struct conn *c = events[i].data.ptr;

            if (!c)
                accept_one(listener);
            else if (!on_event(c, events[i].events))
                close_conn(c);
        }
    }
}
