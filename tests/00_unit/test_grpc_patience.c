/* Clients that owe something: half a frame, a block of headers without its end, windows for
 * answers that wait, reading. What a minute does to them is tried by making the connection's
 * times a minute older. */
#include "grpc/grpc_patience.h"

#include "base/budget.h"
#include "base/strbuf.h"
#include "grpc/grpc_conn.h"
#include "grpc/api/grpc_methods.h"
#include "grpc/grpc_stream.h"
#include "metrics/front_metrics.h"
#include "net/door.h"
#include "net/helpers.h"
#include "net/turns.h"
#include "server/server.h"
#include "server/worker.h"

#include "support/unit.h"

#include <errno.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#define LIVE       "/inference.GRPCInferenceService/ServerLive"
#define STREAM     "/inference.GRPCInferenceService/ModelStreamInfer"
#define INDEX      "/inference.GRPCInferenceService/RepositoryIndex"
#define PREFACE    "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
#define ANSWER     30000u /* about so long is the error of a model whose name has so many bytes */
#define WIDE       0x7FFFFFFFu
#define SMALL_PART 4096

struct rig {
    struct server *server;
    struct grpc_home home;
    nghttp2_session_callbacks *callbacks;
    struct options server_options;
    nghttp2_option *options;
    int fd;             /* the client's */
    struct strbuf out;  /* to be sent */
    struct strbuf back; /* what came */
};

static void on_gone(struct grpc_home *h)
{
    (void)h;
}

static struct loop *loop_of(const struct rig *r)
{
    return r->server->workers[0].loop;
}

static struct loop *stopping;

static void stop_here(struct mail *m)
{
    (void)m;
    loop_stop(stopping);
}

static void take(struct rig *r)
{
    static char bytes[65536];
    ssize_t n;
    while ((n = recv(r->fd, bytes, sizeof(bytes), MSG_DONTWAIT)) > 0)
        strbuf_append(&r->back, bytes, (size_t)n);
}

/* One turn of the loop. */
static void turn(struct rig *r)
{
    static struct mail stop = {.deliver = stop_here};
    LIST_EACH (node, &r->home.conns)
        LIST_ITEM(node, struct grpc_conn, node)->turns = 0; /* no rest in the slow lane */
    stopping = loop_of(r);
    loop_post(stopping, &stop, &stop);
    loop_run(stopping);
}

/* The server has all of it, and said what it can as far as the client takes that. */
static void flush(struct rig *r, bool taking)
{
    const char *at = r->out.data;
    size_t left = r->out.len;
    while (left) {
        ssize_t n = send(r->fd, at, left, MSG_DONTWAIT | MSG_NOSIGNAL);
        assert_true(n > 0 || errno == EAGAIN);
        if (n > 0) {
            at += n;
            left -= (size_t)n;
        }
        turn(r);
        if (taking)
            take(r);
    }
    strbuf_fini(&r->out);
    r->out = (struct strbuf)STRBUF_INIT;
    for (int i = 0; i < 64; i++) { /* more than what lies in the socket takes */
        turn(r);
        if (taking)
            take(r);
    }
}

static void frame_head(struct rig *r, size_t len, int type, int flags, int id)
{
    const char head[9] = {
        (char)(len >> 16), (char)(len >> 8), (char)len, (char)type, (char)flags, 0, 0, 0, (char)id};
    strbuf_append(&r->out, head, sizeof(head));
}

static void number(struct rig *r, uint32_t n)
{
    const char text[4] = {(char)(n >> 24), (char)(n >> 16), (char)(n >> 8), (char)n};
    strbuf_append(&r->out, text, sizeof(text));
}

static void window(struct rig *r, int id, uint32_t by)
{
    frame_head(r, 4, NGHTTP2_WINDOW_UPDATE, 0, id);
    number(r, by);
}

static void call(struct rig *r, int id, const char *path)
{
    const char *const headers[][2] = {{":method", "POST"},
                                      {":scheme", "http"},
                                      {":path", path},
                                      {":authority", "a"},
                                      {"content-type", "application/grpc"},
                                      {"te", "trailers"}};
    struct strbuf block = STRBUF_INIT;
    for (size_t i = 0; i < sizeof(headers) / sizeof(*headers); i++) {
        strbuf_putc(&block, 0);
        for (int j = 0; j < 2; j++) {
            strbuf_putc(&block, (char)strlen(headers[i][j]));
            strbuf_puts(&block, headers[i][j]);
        }
    }
    frame_head(r, block.len, NGHTTP2_HEADERS, NGHTTP2_FLAG_END_HEADERS, id);
    strbuf_append(&r->out, block.data, block.len);
    strbuf_fini(&block);
}

static void live(struct rig *r, int id)
{
    call(r, id, LIVE);
    frame_head(r, 5, NGHTTP2_DATA, NGHTTP2_FLAG_END_STREAM, id);
    strbuf_append(&r->out, "\0\0\0\0\0", 5);
}

static void index_of(struct rig *r, int id)
{
    call(r, id, INDEX);
    frame_head(r, 5, NGHTTP2_DATA, NGHTTP2_FLAG_END_STREAM, id);
    strbuf_append(&r->out, "\0\0\0\0\0", 5);
}

/* A request of a stream for a model with a long name, which is not served. */
static void refused(struct rig *r, int id)
{
    static char name[ANSWER];
    memset(name, 'm', sizeof(name));
    const char field[4] = {0x0A, (char)((ANSWER & 0x7F) | 0x80),
                           (char)((ANSWER >> 7 & 0x7F) | 0x80), (char)(ANSWER >> 14)};
    size_t len = sizeof(field) + sizeof(name);
    const char prefix[5] = {0, 0, 0, (char)(len >> 8), (char)len};
    frame_head(r, sizeof(prefix) + len, NGHTTP2_DATA, 0, id);
    strbuf_append(&r->out, prefix, sizeof(prefix));
    strbuf_append(&r->out, field, sizeof(field));
    strbuf_append(&r->out, name, sizeof(name));
}

static struct rig *rig_new(uint32_t initial_window)
{
    static struct rig made;
    struct rig *r = &made;
    *r = (struct rig){.out = STRBUF_INIT, .back = STRBUF_INIT};
    options_defaults(&r->server_options);
    r->server_options.loop_threads = 1;
    unit_succeeds(server_new(&r->server_options, &r->server));
    assert_int_equal(nghttp2_session_callbacks_new(&r->callbacks), 0);
    assert_int_equal(nghttp2_option_new(&r->options), 0);
    grpc_conn_callbacks(r->callbacks);
    grpc_conn_options(r->options);
    const struct options *settings = r->server->options;
    r->home = (struct grpc_home){.worker = &r->server->workers[0],
                                 .guard = {.restrictions = &settings->grpc_restrictions},
                                 .helpers = helpers_new(0),
                                 .service = &grpc_methods_service,
                                 .metrics = front_metrics_new(grpc_methods_service.metrics()),
                                 .callbacks = r->callbacks,
                                 .options = r->options,
                                 .conn_gone = on_gone};
    grpc_keepalive_rules(settings, &r->home.rules);
    list_init(&r->home.conns);
    int pair[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair), 0);
    r->fd = pair[1];
    grpc_conn_open(&r->home, pair[0]);
    strbuf_append(&r->out, PREFACE, sizeof(PREFACE) - 1);
    frame_head(r, 6, NGHTTP2_SETTINGS, 0, 0);
    strbuf_append(&r->out, "\0\4", 2);
    number(r, initial_window);
    flush(r, true);
    frame_head(r, 0, NGHTTP2_SETTINGS, NGHTTP2_FLAG_ACK, 0); /* frames may be large from here on */
    flush(r, true);
    return r;
}

static bool is_open(const struct rig *r)
{
    return !list_empty(&r->home.conns);
}

static struct grpc_conn *conn_of(const struct rig *r)
{
    assert_true(is_open(r));
    return LIST_ITEM(r->home.conns.next, struct grpc_conn, node);
}

static void rig_free(struct rig *r)
{
    close(r->fd);
    for (int i = 0; i < 4; i++)
        turn(r);
    assert_false(is_open(r));
    strbuf_fini(&r->out);
    strbuf_fini(&r->back);
    helpers_free(r->home.helpers);
    front_metrics_free(r->home.metrics);
    nghttp2_session_callbacks_del(r->callbacks);
    nghttp2_option_del(r->options);
    server_free(r->server);
}

/* So much time passes in which nothing happens, and the connection's timer comes. */
static void wait(struct rig *r, time_ns span)
{
    struct grpc_conn *c = conn_of(r);
    assert_int_not_equal(c->timer.heap_index, 0);
    c->progress -= span;
    c->sent -= span;
    c->moved -= span;
    LIST_EACH (node, &c->streams) {
        LIST_ITEM(node, struct grpc_stream, node)->moved -= span;
        LIST_ITEM(node, struct grpc_stream, node)->arrived -= span;
    }
    loop_timer_set(loop_of(r), &c->timer, loop_now(loop_of(r)));
    turn(r);
    take(r);
}

/* Frames of a type for a stream that came; ret_last is the first word of the last one. */
static unsigned frames(const struct rig *r, int type, int id, uint32_t *ret_last)
{
    unsigned count = 0;
    for (size_t at = 0; at + 9 <= r->back.len;) {
        const uint8_t *p = (const uint8_t *)r->back.data + at;
        size_t len = (size_t)p[0] << 16 | (size_t)p[1] << 8 | p[2];
        if (p[3] == type && p[8] == id) {
            count++;
            if (len >= 4)
                *ret_last =
                    (uint32_t)p[9] << 24 | (uint32_t)p[10] << 16 | (uint32_t)p[11] << 8 | p[12];
        }
        at += 9 + len;
    }
    return count;
}

static void idle_clients_owe_nothing(void **state)
{
    (void)state;
    struct rig *r = rig_new(WIDE);
    live(r, 1);
    flush(r, true);
    uint32_t word;
    assert_int_equal(frames(r, NGHTTP2_DATA, 1, &word), 1);
    wait(r, TIME_S(3600)); /* from the time before the handshake the timer is still set */
    assert_true(is_open(r));
    assert_int_equal(conn_of(r)->timer.heap_index, 0);
    rig_free(r);
}

static void half_a_frame_has_a_minute(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        size_t len;
    } halves[] = {
        {"\0\0\x8\6", 4},                    /* of a head */
        {"\0\0\x8\6\0\0\0\0\0half", 13},     /* of a PING */
        {"\0\0\1\1\0\0\0\0\1\x83", 10},      /* HEADERS that are to go on */
        {"\0\x40\0\1\4\0\0\0\1\x83\x86", 11} /* HEADERS that are cut off */
    };
    for (size_t i = 0; i < sizeof(halves) / sizeof(*halves); i++) {
        struct rig *r = rig_new(WIDE);
        strbuf_append(&r->out, halves[i].bytes, halves[i].len);
        flush(r, true);
        wait(r, GRPC_PATIENCE / 2);
        assert_true(is_open(r));
        wait(r, GRPC_PATIENCE / 2 + TIME_S(1));
        assert_false(is_open(r));
        rig_free(r);
    }
}

static void data(struct rig *r, int id, const char *bytes, size_t len)
{
    frame_head(r, len, NGHTTP2_DATA, 0, id);
    strbuf_append(&r->out, bytes, len);
}

/* Whatever else its client sends: a call without its message, half of one, a whole one behind
 * which the call does not end. Streaming calls may be idle between messages. */
static void a_message_has_a_minute_of_its_own(void **state)
{
    (void)state;
    size_t before = budget_in_use();
    struct rig *r = rig_new(WIDE);
    enum { NONE = 1, HALF = 3, WHOLE = 5, STREAMED = 7, ALIVE = 9, IDLE = 11, IDLE_AGAIN = 13 };
    for (int id = NONE; id <= ALIVE; id += 2)
        call(r, id, id == STREAMED ? STREAM : LIVE);
    call(r, IDLE, STREAM);
    call(r, IDLE_AGAIN, STREAM);
    data(r, HALF, "\0\0\1\0\0h", 6);
    data(r, WHOLE, "\0\0\0\0\0", 5);
    data(r, STREAMED, "\0\0", 2);
    data(r, ALIVE, "\0\0\0\0\x9h", 6);
    data(r, IDLE_AGAIN, "\0\0\0\0\0", 5);
    flush(r, true);
    assert_int_equal(conn_of(r)->receiving, 5);
    wait(r, TIME_S(30));
    data(r, ALIVE, "a", 1);
    flush(r, true);
    wait(r, TIME_S(31));
    flush(r, true);
    uint32_t word = 0;
    for (int id = NONE; id <= IDLE_AGAIN; id += 2) {
        assert_int_equal(frames(r, NGHTTP2_RST_STREAM, id, &word), id < ALIVE);
        assert_int_equal(word, NGHTTP2_CANCEL);
    }
    assert_int_equal(conn_of(r)->receiving, 1);
    frame_head(r, 7, NGHTTP2_DATA, NGHTTP2_FLAG_END_STREAM, ALIVE);
    strbuf_append(&r->out, "message", 7);
    flush(r, true);
    assert_int_not_equal(frames(r, NGHTTP2_HEADERS, ALIVE, &word), 0);
    assert_int_equal(conn_of(r)->receiving, 0);
    rig_free(r);
    assert_int_equal(budget_in_use(), before);
}

/* Its client may not send more before some of its requests were answered. */
static void a_paused_call_owes_nothing(void **state)
{
    (void)state;
    struct rig *r = rig_new(WIDE);
    call(r, 1, STREAM);
    data(r, 1, "\0\0\0\0\x9h", 6);
    flush(r, true);
    struct grpc_stream *s = LIST_ITEM(conn_of(r)->streams.next, struct grpc_stream, node);
    s->call_count = GRPC_STREAM_MAX_CALLS;
    data(r, 1, "a", 1);
    flush(r, true);
    assert_non_null(s->held);
    wait(r, TIME_S(61));
    uint32_t word;
    assert_int_equal(frames(r, NGHTTP2_RST_STREAM, 1, &word), 0);
    s->call_count = 0;
    grpc_conn_flush_later(conn_of(r));
    flush(r, true);
    assert_null(s->held);
    wait(r, TIME_S(30));
    assert_int_equal(frames(r, NGHTTP2_RST_STREAM, 1, &word), 0);
    wait(r, TIME_S(31));
    assert_int_equal(frames(r, NGHTTP2_RST_STREAM, 1, &word), 1);
    rig_free(r);
}

static void an_answer_waits_a_minute_for_its_window(void **state)
{
    (void)state;
    size_t before = budget_in_use();
    struct rig *r = rig_new(0);
    uint32_t word = 0;
    live(r, 1);
    call(r, 3, STREAM);
    refused(r, 3);
    live(r, 5);
    flush(r, true);
    assert_true(budget_in_use() >= before + ANSWER);
    assert_int_equal(frames(r, NGHTTP2_HEADERS, 3, &word), 1);
    wait(r, TIME_S(30));
    assert_int_equal(frames(r, NGHTTP2_RST_STREAM, 3, &word), 0);
    window(r, 1, 1); /* takes a byte: its minute begins anew */
    flush(r, true);
    window(r, 5, 1000);
    flush(r, true);
    assert_int_equal(frames(r, NGHTTP2_HEADERS, 5, &word), 2);
    wait(r, TIME_S(31));
    flush(r, true);
    assert_int_equal(frames(r, NGHTTP2_RST_STREAM, 1, &word), 0);
    assert_int_equal(frames(r, NGHTTP2_RST_STREAM, 3, &word), 1);
    assert_int_equal(word, NGHTTP2_ENHANCE_YOUR_CALM);
    assert_int_equal(budget_in_use(), before + H2_PEER_SESSION_BYTES);
    window(r, 1, 1000);
    flush(r, true);
    assert_int_equal(frames(r, NGHTTP2_HEADERS, 1, &word), 2);
    assert_int_equal(conn_of(r)->answering, 0);
    rig_free(r);
}

static void the_window_of_the_connection_has_a_minute(void **state)
{
    (void)state;
    for (int opened = 0; opened < 2; opened++) {
        struct rig *r = rig_new(WIDE);
        call(r, 1, STREAM);
        for (int i = 0; i < 4; i++) /* more than 65,535 bytes */
            refused(r, 1);
        flush(r, true);
        assert_int_equal(nghttp2_session_get_remote_window_size(conn_of(r)->session), 0);
        wait(r, GRPC_PATIENCE / 2);
        if (opened) {
            window(r, 0, 1);
            flush(r, true);
        }
        wait(r, GRPC_PATIENCE / 2 + TIME_S(1));
        assert_int_equal(is_open(r), opened);
        rig_free(r);
    }
}

/* Whatever else the client sends meanwhile. */
static void what_is_written_must_be_read(void **state)
{
    (void)state;
    struct rig *r = rig_new(WIDE);
    window(r, 0, WIDE - 65535);
    call(r, 1, STREAM);
    for (int i = 0; i < 40; i++)
        refused(r, 1);
    flush(r, false);
    struct grpc_conn *c = conn_of(r);
    assert_true(h2_out_waits(&c->out));
    c->progress += TIME_S(3600);
    wait(r, GRPC_PATIENCE + TIME_S(1));
    assert_false(is_open(r));
    rig_free(r);
}

/* However much of it has come, and though one read could take it all. */
static void calls_behind_one_that_waits_are_taken_in_small_parts(void **state)
{
    (void)state;
    struct rig *r = rig_new(0);
    struct grpc_conn *c = conn_of(r);
    live(r, 1);
    flush(r, true);
    assert_true(list_empty(&c->put_off));
    c->unread = TURNS_UNREAD + 1; /* as if long answers lay there */
    index_of(r, 3);
    flush(r, true);
    assert_false(list_empty(&c->put_off));
    for (int id = 5; id < 255; id += 2)
        index_of(r, id);
    assert_true(r->out.len > 3 * SMALL_PART);
    assert_int_equal(send(r->fd, r->out.data, r->out.len, MSG_NOSIGNAL), r->out.len);
    int left = (int)r->out.len;
    r->out.len = 0;
    while (left) {
        int before = left;
        loop_move(loop_of(r), &c->watch, LOOP_LANE_FRONT); /* in the busy lane a turn has several */
        turn(r);
        assert_int_equal(ioctl(c->watch.fd, FIONREAD, &left), 0);
        assert_in_range(before - left, 1, SMALL_PART);
    }
    rig_free(r);
}

/* Clients that have one question are served before one that sent hundreds, of which a part is
 * read at a time. */
static void who_sends_much_is_busy(void **state)
{
    (void)state;
    struct rig *r = rig_new(WIDE);
    struct grpc_conn *c = conn_of(r);
    int id = 1;
    for (; id < 200; id += 2)
        live(r, id);
    assert_int_equal(send(r->fd, r->out.data, r->out.len, MSG_NOSIGNAL), r->out.len);
    int left = (int)r->out.len;
    r->out.len = 0;
    unsigned turns = 0;
    for (; left; turns++) {
        turn(r);
        take(r);
        assert_int_equal(ioctl(c->watch.fd, FIONREAD, &left), 0);
        if (left)
            assert_int_equal(c->watch.lane, LOOP_LANE_BUSY);
    }
    assert_true(turns > 1);
    assert_true(c->proven);
    live(r, id);
    flush(r, true);
    assert_int_equal(c->watch.lane, LOOP_LANE_FRONT);
    rig_free(r);
}

static int connect_again(struct rig *r)
{
    int pair[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair), 0);
    grpc_conn_open(&r->home, pair[0]);
    return pair[1];
}

static unsigned open_ones(const struct rig *r)
{
    unsigned count = 0;
    LIST_EACH (node, &r->home.conns)
        count++;
    return count;
}

static int connect_with_calls(struct rig *r, int calls)
{
    r->fd = connect_again(r);
    strbuf_append(&r->out, PREFACE, sizeof(PREFACE) - 1);
    frame_head(r, 0, NGHTTP2_SETTINGS, 0, 0);
    live(r, 1); /* before its first message it waits behind the others */
    flush(r, true);
    for (int i = 1; i <= calls; i++) { /* apart, so that none of them makes it busy */
        call(r, 2 * i + 1, LIVE);
        flush(r, true);
    }
    return r->fd;
}

/* Their clients end at the same moment, by a reset or only their side: giving up the calls of
 * one takes long, so others have their turns in between. */
static void many_calls_are_given_up_by_and_by(void **state)
{
    (void)state;
    struct rig *r = rig_new(WIDE);
    const int clients = 4, first = r->fd;
    for (int half = 0; half < 2; half++) {
        int fds[4];
        for (int i = 0; i < clients; i++)
            fds[i] = connect_with_calls(r, 40);
        for (int i = 0; i < clients; i++)
            assert_int_equal(half ? shutdown(fds[i], SHUT_WR) : close(fds[i]), 0);
        turn(r);
        assert_int_equal(open_ones(r), 1 + clients);
        for (int i = 0; i < clients; i++)
            turn(r);
        assert_int_equal(open_ones(r), 1);
        for (int i = 0; half && i < clients; i++)
            close(fds[i]);
    }
    r->fd = first;
    rig_free(r);
}

/* Where the process has as many descriptors as it may, there is no lane to wait in; what ends
 * gives one back. */
static void one_ends_where_descriptors_are_short(void **state)
{
    (void)state;
    struct rig *r = rig_new(WIDE);
    const int first = r->fd;
    struct rlimit allowed;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &allowed), 0);
    int fd = connect_with_calls(r, 20);
    struct rlimit none = {.rlim_cur = 0, .rlim_max = allowed.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    close(fd);
    for (int i = 0; i < 4; i++)
        turn(r);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &allowed), 0);
    assert_int_equal(open_ones(r), 1);
    r->fd = first;
    rig_free(r);
}

/* Of a connection with calls that wait little is read at a time. Where that was all it may, it
 * is busy, too. */
static void who_sends_much_behind_calls_that_wait_is_busy(void **state)
{
    (void)state;
    struct rig *r = rig_new(0);
    struct grpc_conn *c = conn_of(r);
    c->unread = TURNS_UNREAD + 1; /* as if long answers lay there */
    index_of(r, 1);
    flush(r, true);
    assert_false(list_empty(&c->put_off));
    c->share.bytes = r->home.worker->receive_bytes; /* as after a large message */
    for (int id = 3; id < 255; id += 2)
        live(r, id);
    assert_true(r->out.len > 3 * SMALL_PART);
    assert_int_equal(send(r->fd, r->out.data, r->out.len, MSG_NOSIGNAL), r->out.len);
    r->out.len = 0;
    turn(r);
    assert_int_equal(c->watch.lane, LOOP_LANE_BUSY);
    rig_free(r);
}

/* Half a message has come when the server stops, and a request of the call is under way for as
 * long as it takes. */
static void a_client_that_is_left_owes_nothing(void **state)
{
    (void)state;
    struct rig *r = rig_new(WIDE);
    struct grpc_conn *c = conn_of(r);
    call(r, 1, STREAM);
    frame_head(r, 6, NGHTTP2_DATA, 0, 1);
    strbuf_append(&r->out, "\0\0\0\0\x9h", 6);
    flush(r, true);
    assert_int_equal(c->receiving, 1);
    struct grpc_stream *s = LIST_ITEM(c->streams.next, struct grpc_stream, node);
    struct grpc_call under_way = {0};
    grpc_stream_hold(s, &under_way);
    grpc_conn_goodbye(c);
    flush(r, true);
    wait(r, GRPC_PATIENCE + TIME_S(1));
    assert_true(is_open(r));
    rig_free(r);
    grpc_stream_release(s, &under_way);
}

/* Five seconds after the server stopped: a call without its message, half of one, a whole one
 * behind which the call does not end, an answer without a window. */
static void who_stalls_is_left_behind(void **state)
{
    (void)state;
    for (int window_of_all = 0; window_of_all < 2; window_of_all++) {
        struct rig *r = rig_new(window_of_all ? WIDE : 0);
        struct grpc_conn *c = conn_of(r);
        if (window_of_all) { /* closed by answers to another call */
            call(r, 1, STREAM);
            for (int i = 0; i < 4; i++)
                refused(r, 1);
        } else {
            live(r, 1);
        }
        for (int id = 3; id <= 9; id += 2)
            call(r, id, LIVE);
        data(r, 5, "\0\0\0\0\x9h", 6);
        data(r, 7, "\0\0\0\0\0", 5);
        data(r, 9, "\0", 1);
        flush(r, true);
        grpc_conn_goodbye(c);
        loop_timer_clear(loop_of(r), &c->goodbye);
        flush(r, true);
        assert_in_range(c->timer.when, 0, loop_now(loop_of(r)) + DOOR_STALL);
        wait(r, TIME_MS(2500));
        data(r, 9, "\0", 1);
        flush(r, true);
        wait(r, TIME_MS(2600));
        flush(r, true);
        uint32_t word = 0; /* calls without an answer are told a status */
        for (int id = 3; id <= 9; id += 2)
            assert_int_equal(frames(r, NGHTTP2_HEADERS, id, &word), id < 9);
        assert_int_equal(frames(r, NGHTTP2_RST_STREAM, 1, &word), 1);
        assert_int_equal(word, NGHTTP2_ENHANCE_YOUR_CALM);
        assert_true(is_open(r));
        wait(r, DOOR_STALL);
        h2_peer_say_goodbye(&c->peer, c->session);
        grpc_conn_flush_later(c);
        flush(r, true);
        assert_int_equal(frames(r, NGHTTP2_HEADERS, 9, &word), 1);
        assert_false(is_open(r));
        rig_free(r);
    }
}

/* Half a frame, of whatever; but a call that is under way is waited for. */
static void half_a_frame_has_five_seconds_of_a_stop(void **state)
{
    (void)state;
    struct rig *r = rig_new(WIDE);
    struct grpc_conn *c = conn_of(r);
    call(r, 1, STREAM);
    flush(r, true);
    struct grpc_stream *s = LIST_ITEM(c->streams.next, struct grpc_stream, node);
    struct grpc_call under_way = {0};
    grpc_stream_hold(s, &under_way);
    grpc_conn_goodbye(c);
    loop_timer_clear(loop_of(r), &c->goodbye);
    strbuf_append(&r->out, "\0\x40\0\1\4\0\0\0\3\x83\x86", 11);
    flush(r, true);
    wait(r, TIME_MS(5100));
    assert_true(is_open(r));
    grpc_stream_release(s, &under_way);
    grpc_stream_end_if_over(s);
    flush(r, true);
    assert_true(is_open(r));
    wait(r, DOOR_STALL + TIME_MS(100));
    assert_false(is_open(r));
    rig_free(r);
}

/* Its client opened it before it read that the server stops, and waits for answers. */
static void a_stream_that_comes_too_late_is_told_so(void **state)
{
    (void)state;
    struct rig *r = rig_new(WIDE);
    struct grpc_conn *c = conn_of(r);
    call(r, 1, STREAM); /* whoever has not called yet would have time */
    flush(r, true);
    grpc_conn_goodbye(c);
    loop_timer_clear(loop_of(r), &c->goodbye);
    call(r, 3, STREAM);
    flush(r, true);
    uint32_t word;
    assert_int_equal(frames(r, NGHTTP2_HEADERS, 3, &word), 1);
    assert_int_equal(frames(r, NGHTTP2_RST_STREAM, 3, &word), 1);
    assert_int_equal(word, NGHTTP2_NO_ERROR);
    rig_free(r);
}

UNIT_MAIN(UNIT(who_sends_much_is_busy), UNIT(many_calls_are_given_up_by_and_by),
          UNIT(one_ends_where_descriptors_are_short),
          UNIT(who_sends_much_behind_calls_that_wait_is_busy),
          UNIT(calls_behind_one_that_waits_are_taken_in_small_parts),
          UNIT(idle_clients_owe_nothing), UNIT(half_a_frame_has_a_minute),
          UNIT(a_message_has_a_minute_of_its_own), UNIT(a_paused_call_owes_nothing),
          UNIT(an_answer_waits_a_minute_for_its_window), UNIT(a_client_that_is_left_owes_nothing),
          UNIT(who_stalls_is_left_behind), UNIT(half_a_frame_has_five_seconds_of_a_stop),
          UNIT(a_stream_that_comes_too_late_is_told_so),
          UNIT(the_window_of_the_connection_has_a_minute), UNIT(what_is_written_must_be_read))
