/* floor_http - what HTTP itself costs: one thread, one epoll, no parser beyond what the load needs.
 * It reads the bytes of a request, copies the payload once and writes an answer of the shape that
 * the identity model gives. Not a server: it trusts its peer, the benchmark.
 * usage: bench_floor_http PORT */

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { HEAD_ROOM = 1024, FIRST_BUFFER = 16384, MAX_EVENTS = 64 };

struct bytes {
    uint8_t *data;
    size_t len;
    size_t cap;
};

struct conn {
    int fd;
    uint32_t events; /* what epoll watches */
    struct bytes in;
    struct bytes out;
    size_t out_sent;
    size_t head_len; /* 0 = the head has not come yet */
    size_t body_len;
    size_t json_len; /* of the body; body_len when nothing is binary */
};

static int epoll_fd;

static void die(const char *what)
{
    perror(what);
    exit(1);
}

static void reserve(struct bytes *b, size_t cap)
{
    if (b->cap >= cap)
        return;
    b->data = realloc(b->data, cap);
    if (!b->data)
        die("realloc");
    b->cap = cap;
}

static size_t header_number(const struct conn *c, const char *name, size_t otherwise)
{
    const char *at = memmem(c->in.data, c->head_len, name, strlen(name));

    return at ? strtoull(at + strlen(name), NULL, 10) : otherwise;
}

static bool parse_head(struct conn *c)
{
    const uint8_t *end = memmem(c->in.data, c->in.len, "\r\n\r\n", 4);

    if (!end)
        return false;
    c->head_len = (size_t)(end - c->in.data) + 4;
    c->body_len = header_number(c, "\r\nContent-Length: ", 0);
    c->json_len = header_number(c, "\r\nInference-Header-Content-Length: ", c->body_len);
    reserve(&c->in, c->head_len + c->body_len);
    return true;
}

/* The answer's JSON up to the data, or up to its end when the data are binary. */
static int format_json(char *to, size_t cap, size_t floats, bool binary, size_t payload)
{
    int len =
        snprintf(to, cap,
                 "{\"model_name\":\"identity\",\"model_version\":\"1\",\"outputs\":[{\"name\":"
                 "\"OUTPUT0\",\"datatype\":\"FP32\",\"shape\":[%zu],",
                 floats);

    if (binary)
        return len + snprintf(to + len, cap - (size_t)len,
                              "\"parameters\":{\"binary_data_size\":%zu}}]}", payload);
    return len + snprintf(to + len, cap - (size_t)len, "\"data\":");
}

static size_t count_floats(const uint8_t *list, size_t len)
{
    size_t n = 1;

    for (size_t i = 0; i < len; i++)
        n += list[i] == ',';
    return n;
}

static void build_answer(struct conn *c)
{
    const uint8_t *body = c->in.data + c->head_len;
    bool binary = c->json_len < c->body_len;
    const uint8_t *payload = body + c->json_len;
    size_t payload_len = c->body_len - c->json_len;
    const char *tail = "";
    size_t floats = payload_len / 4;
    char json[256];

    if (!binary) {
        const uint8_t *key = memmem(body, c->body_len, "\"data\":", 7);
        const uint8_t *end = key ? memchr(key, ']', c->body_len - (size_t)(key - body)) : NULL;

        if (!end)
            die("body without data");
        payload = key + 7;
        payload_len = (size_t)(end - payload) + 1;
        floats = count_floats(payload, payload_len);
        tail = "}]}";
    }

    int json_len = format_json(json, sizeof json, floats, binary, payload_len);
    size_t length = (size_t)json_len + payload_len + strlen(tail);

    reserve(&c->out, HEAD_ROOM + length);
    int head = snprintf((char *)c->out.data, HEAD_ROOM, "HTTP/1.1 200 OK\r\nContent-Type: %s\r\n",
                        binary ? "application/octet-stream" : "application/json");
    if (binary)
        head += snprintf((char *)c->out.data + head, HEAD_ROOM - (size_t)head,
                         "Inference-Header-Content-Length: %d\r\n", json_len);
    head += snprintf((char *)c->out.data + head, HEAD_ROOM - (size_t)head,
                     "Content-Length: %zu\r\n\r\n%s", length, json);
    memcpy(c->out.data + head, payload, payload_len);
    memcpy(c->out.data + (size_t)head + payload_len, tail, strlen(tail));
    c->out.len = (size_t)head + payload_len + strlen(tail);
    c->out_sent = 0;
}

static void watch(struct conn *c, int op, uint32_t events)
{
    struct epoll_event ev = {.events = events, .data.ptr = c};

    if (epoll_ctl(epoll_fd, op, c->fd, &ev))
        die("epoll_ctl");
    c->events = events;
}

/* Writes what the socket takes; waits for EPOLLOUT when some of it stays. */
static void write_out(struct conn *c)
{
    while (c->out_sent < c->out.len) {
        ssize_t n = send(c->fd, c->out.data + c->out_sent, c->out.len - c->out_sent, MSG_NOSIGNAL);
        if (n < 0)
            break;
        c->out_sent += (size_t)n;
    }
    uint32_t events = c->out_sent < c->out.len ? EPOLLOUT : EPOLLIN;
    if (events != c->events)
        watch(c, EPOLL_CTL_MOD, events);
}

static void close_conn(struct conn *c)
{
    close(c->fd);
    free(c->in.data);
    free(c->out.data);
    free(c);
}

/* False when the connection has ended. */
static bool on_event(struct conn *c, uint32_t events)
{
    if (events & (EPOLLHUP | EPOLLERR))
        return false;
    if (events & EPOLLOUT) {
        write_out(c);
        return true;
    }

    ssize_t n = recv(c->fd, c->in.data + c->in.len, c->in.cap - c->in.len, 0);
    if (n <= 0)
        return n < 0 && errno == EAGAIN;
    c->in.len += (size_t)n;
    if (!c->head_len && !parse_head(c))
        return true;
    if (c->in.len < c->head_len + c->body_len)
        return true;
    build_answer(c);
    c->in.len = 0;
    c->head_len = 0;
    write_out(c);
    return true;
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

static void accept_one(int listener)
{
    int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    int one = 1;

    if (fd < 0)
        return;
    struct conn *c = calloc(1, sizeof *c);
    if (!c)
        die("calloc");
    c->fd = fd;
    reserve(&c->in, FIRST_BUFFER);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    watch(c, EPOLL_CTL_ADD, EPOLLIN);
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
