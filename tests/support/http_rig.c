#include "support/http_rig.h"

#include "base/mem.h"
#include "http/http_conn.h"
#include "http/http_exchange.h"
#include "infer/request.h"
#include "os/sock.h"
#include "os/thread.h"

#include "support/unit.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define BODY_LIMIT ((uint64_t)1 << 40)

/* Exchanges that wait for "/flush". They belong to one worker; tests that use them have one
 * connection. */
struct later {
    struct list node;
    struct http_exchange *x;
    struct request request; /* only its cancelled flag is used */
    char *text;             /* of the answer */
    size_t len;
};

static struct list later_ones = {&later_ones, &later_ones};
static _Atomic(struct worker *) later_worker; /* the worker whose thread uses the list */
char *http_rig_large;
atomic_bool http_rig_cancelled;
atomic_bool http_rig_aligned;
time_ns http_rig_ended = TIME_S(600);

static struct err *admit(const struct http_front *f, const struct http1_head *head,
                         const struct http_route *route, uint64_t *ret_max)
{
    (void)f;
    (void)route;
    *ret_max = head->url_len >= 5 && memcmp(head->url, "/drop", 5) == 0 ? 0 : BODY_LIMIT;
    if (head->url_len >= 7 && memcmp(head->url, "/refuse", 7) == 0)
        return err_new(STATUS_INVALID_ARG, "not this one");
    return NULL;
}

static bool is_url(const struct http_message *m, const char *url)
{
    return m->head->url_len == strlen(url) && memcmp(m->head->url, url, m->head->url_len) == 0;
}

static void answer_later(struct http_exchange *x, const char *text, size_t len)
{
    struct later *l = MEM_NEW(struct later);
    l->x = x;
    l->text = mem_strndup(text, len);
    l->len = len;
    static struct request_target nobody;
    l->request.target = &nobody;
    x->request = &l->request;
    list_append(&later_ones, &l->node);
    atomic_store(&later_worker, x->shard->worker);
}

/* Answers the waiting exchanges, newest first. */
static void flush_later(void)
{
    while (!list_empty(&later_ones)) {
        struct later *l = LIST_ITEM(later_ones.prev, struct later, node);
        list_remove(&l->node);
        http_rig_cancelled = http_rig_cancelled || atomic_load(&l->request.cancelled);
        l->x->request = NULL;
        if (l->x->conn)
            http_exchange_text(l->x, 200, HTTP_TEXT, mem_strndup(l->text, l->len), l->len);
        else
            http_exchange_free(l->x);
        mem_free(l->text);
        mem_free(l);
    }
}

static void note_alignment(const struct http_message *m)
{
    if (!m->head->tensor_header.given || !m->buf)
        return;
    http_rig_aligned =
        ((uintptr_t)m->body + strtoul(m->head->tensor_header.text, NULL, 10)) % 64 == 0;
}

static void serve(struct http_exchange *x, struct http_message *m)
{
    note_alignment(m);
    if (is_url(m, "/later")) {
        answer_later(x, "later", 5);
    } else if (is_url(m, "/later-echo")) {
        answer_later(x, m->body, m->body_len);
    } else if (is_url(m, "/flush")) {
        flush_later();
        http_exchange_static(x, 200, HTTP_TEXT, "ok", 2);
    } else if (is_url(m, "/large")) {
        http_exchange_static(x, 200, HTTP_TEXT, http_rig_large, HTTP_RIG_LARGE);
    } else if (is_url(m, "/quote")) {
        char *message = mem_strndup(m->body, m->body_len);
        http_exchange_fault(x, 400, message);
        mem_free(message);
    } else if (is_url(m, "/fail")) {
        http_exchange_error(x, err_new(STATUS_NOT_FOUND, "a \"quoted\" reason"));
    } else {
        char *copy = mem_alloc(m->body_len + 1);
        if (m->body_len)
            memcpy(copy, m->body, m->body_len);
        http_exchange_text(x, 200, HTTP_TEXT, copy, m->body_len);
    }
}

static struct http_route route_of(const struct http_front *f, struct http1_head *head)
{
    (void)f;
    bool told = head->url_len == 5 && memcmp(head->url, "/told", 5) == 0;
    return (struct http_route){.kind = told};
}

static const struct front_metrics_route routes[] = {{"any", -1}, {"told", -1}};
static const struct front_metrics_kind metrics = {
    .protocol = "rig", .routes = routes, .route_count = 2};
static const struct http_service service = {
    .metrics = &metrics, .route = route_of, .admit = admit, .serve = serve, .tells = 1u << 1};

static void accepted(struct worker *w, int fd, void *owner)
{
    struct http_front *f = owner;
    http_conn_open(&f->shards[w->index], fd);
}

static void refused(int fd, void *owner)
{
    (void)owner;
    struct iovec piece = {(void *)(uintptr_t) "full", 4};
    sock_write(fd, &piece, 1);
}

static void run_loop(void *loop)
{
    loop_run(loop);
}

/* Made once; the same bytes every time. */
static void make_large(void)
{
    static char text[HTTP_RIG_LARGE];
    for (size_t i = 0; i < HTTP_RIG_LARGE; i++)
        text[i] = (char)(i * 2654435761u >> 13);
    http_rig_large = text;
}

struct http_rig *http_rig_new(uint32_t max_connections)
{
    struct http_rig *r = MEM_NEW(struct http_rig);
    make_large();
    atomic_store(&later_worker, NULL);
    r->server.workers = r->workers;
    r->server.worker_count = HTTP_RIG_WORKERS;
    struct http_front *f = r->front = MEM_NEW(struct http_front);
    f->server = &r->server;
    f->patience = http_front_patience(60, 60, 600);
    f->patience.ended = http_rig_ended;
    f->service = &service;
    unit_succeeds(http_front_init_h2(f));
    mutex_init(&f->lock, MUTEX_RANK_LEAF);
    mutex_cond_init(&f->settled);
    f->shards = mem_zalloc(HTTP_RIG_WORKERS * sizeof(*f->shards));
    for (unsigned i = 0; i < HTTP_RIG_WORKERS; i++) {
        struct worker *w = &r->workers[i];
        *w = (struct worker){.server = &r->server, .index = i, .receive_bytes = 65536};
        w->receive = mem_alloc(w->receive_bytes);
        unit_succeeds(loop_new(&w->loop));
        f->shards[i].front = f;
        f->shards[i].worker = w;
        f->shards[i].metrics = front_metrics_new(&metrics);
        list_init(&f->shards[i].conns);
        unit_succeeds(thread_start("loop", run_loop, w->loop, &w->thread));
    }
    unit_succeeds(listener_open(&r->server, "127.0.0.1", 0, false, max_connections, accepted,
                                refused, f, &f->listener));
    r->port = listener_port(f->listener);
    return r;
}

void http_rig_free(struct http_rig *r)
{
    http_front_stop(r->front, 0);
    for (unsigned i = 0; i < HTTP_RIG_WORKERS; i++) {
        loop_stop(r->workers[i].loop);
        thread_join(r->workers[i].thread);
    }
    flush_later();
    http_front_free(r->front);
    for (unsigned i = 0; i < HTTP_RIG_WORKERS; i++) {
        assert_int_equal(atomic_load(&r->workers[i].connections), 0);
        loop_free(r->workers[i].loop);
        mem_free(r->workers[i].receive);
    }
    mem_free(r);
}

/* A blocking client. Its timeout is reached only if the test has failed. */
int http_rig_dial(const struct http_rig *r)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(r->port)};
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    struct timeval limit = {.tv_sec = 60};
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
    assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof(to)), 0);
    return fd;
}

void http_rig_send(int fd, const char *text)
{
    assert_int_equal(send(fd, text, strlen(text), MSG_NOSIGNAL), (ssize_t)strlen(text));
}

/* A receive with a timeout also returns when the process was stopped and continued. */
static ssize_t receive(int fd, char *to, size_t n)
{
    ssize_t got;
    do {
        got = recv(fd, to, n, 0);
    } while (got < 0 && errno == EINTR);
    return got;
}

void http_rig_read(int fd, char *to, size_t n)
{
    for (size_t at = 0; at < n;) {
        ssize_t got = receive(fd, to + at, n - at);
        assert_true(got > 0);
        at += (size_t)got;
    }
}

/* Reads up to the blank line; returns the status. */
int http_rig_head(int fd, char head[1024])
{
    size_t len = 0;
    do {
        assert_true(len < 1000);
        http_rig_read(fd, head + len++, 1);
        head[len] = '\0';
    } while (!strstr(head, "\r\n\r\n"));
    return (int)strtol(head + 9, NULL, 10);
}

void http_rig_expect(int fd, int status, const char *body)
{
    char head[1024], text[4096];
    assert_int_equal(http_rig_head(fd, head), status);
    const char *length = strstr(head, "Content-Length: ");
    assert_non_null(length);
    size_t n = strtoul(length + 16, NULL, 10);
    assert_true(n < sizeof(text));
    http_rig_read(fd, text, n);
    text[n] = '\0';
    assert_string_equal(text, body);
}

void http_rig_expect_end(int fd)
{
    char c;
    assert_int_equal(receive(fd, &c, 1), 0);
    close(fd);
}

/* Work that a worker does for the test. */
struct errand {
    struct mail mail;
    unsigned (*run)(void);
    unsigned result;
    atomic_bool done; /* released after result */
};

static void do_errand(struct mail *m)
{
    struct errand *e = (struct errand *)m;
    e->result = e->run();
    atomic_store(&e->done, true);
}

unsigned http_rig_run(unsigned (*run)(void))
{
    struct worker *w;
    while (!(w = atomic_load(&later_worker)))
        sched_yield();
    struct errand e = {.mail = {.deliver = do_errand}, .run = run};
    loop_post(w->loop, &e.mail, &e.mail);
    while (!atomic_load(&e.done))
        sched_yield();
    return e.result;
}

unsigned http_rig_count_later(void)
{
    unsigned n = 0;
    LIST_EACH (it, &later_ones)
        n++;
    return n;
}

struct http_conn *http_rig_later_conn(void)
{
    assert_false(list_empty(&later_ones));
    return LIST_ITEM(later_ones.next, struct later, node)->x->conn;
}

unsigned http_rig_lane(void)
{
    return http_rig_later_conn()->fd.lane;
}

unsigned http_rig_draining(void)
{
    if (list_empty(&later_ones))
        return 0;
    return LIST_ITEM(later_ones.next, struct later, node)->x->shard->draining;
}

unsigned http_rig_asked(void)
{
    return !list_empty(&later_ones) &&
           LIST_ITEM(later_ones.next, struct later, node)->x->conn->asked;
}

unsigned http_rig_in_flight(void)
{
    return list_empty(&later_ones)
               ? 0
               : LIST_ITEM(later_ones.next, struct later, node)->x->conn->in_flight;
}

unsigned http_rig_deaf(void)
{
    return !list_empty(&later_ones) &&
           LIST_ITEM(later_ones.next, struct later, node)->x->conn->phase == HTTP_PHASE_IGNORE;
}

unsigned http_rig_answer_later(void)
{
    flush_later();
    return 0;
}

/* Waits until the worker threads have closed every connection. */
void http_rig_until_empty(const struct http_rig *r)
{
    while (listener_connections(r->front->listener))
        sched_yield();
}
