/* Connections as a whole: how they end, peers that leave, stopping, the spread over workers, the
 * limit. */
#include "http/http_front.h"

#include "base/strbuf.h"
#include "http/http_conn.h"
#include "os/thread.h"

#include "support/http_rig.h"
#include "support/unit.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static void connections_end_when_they_should(void **state)
{
    (void)state;
    static const char *const last_words[] = {
        "GET /fail HTTP/1.1\r\nConnection: close\r\n\r\nGET /never HTTP/1.1\r\n\r\n",
        "GET /fail HTTP/1.0\r\n\r\n",
    };
    struct http_rig *r = http_rig_new(0);
    for (size_t i = 0; i < sizeof(last_words) / sizeof(*last_words); i++) {
        int fd = http_rig_dial(r);
        http_rig_send(fd, last_words[i]);
        http_rig_expect(fd, 404, "{\"error\":\"a \\\"quoted\\\" reason\"}");
        http_rig_expect_end(fd);
    }
    int fd = http_rig_dial(r);
    http_rig_send(fd, "GET /later HTTP/1.1\r\n\r\nGET /flush HTTP/1.1\r\n\r\nnonsense\r\n\r\n");
    http_rig_expect(fd, 200, "later");
    http_rig_expect(fd, 200, "ok");
    http_rig_expect(fd, 400, "{\"error\":\"Invalid method encountered\"}");
    http_rig_expect_end(fd);
    fd = http_rig_dial(r);
    http_rig_send(fd, "GET /echo HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
    char head[1024];
    assert_int_equal(http_rig_head(fd, head), 200);
    assert_non_null(strstr(head, "Connection: keep-alive"));
    http_rig_send(fd, "HEAD /fail HTTP/1.1\r\n\r\n");
    assert_int_equal(http_rig_head(fd, head), 404);
    assert_non_null(strstr(head, "Content-Length: 31"));
    http_rig_send(fd, "GET /fail HTTP/1.1\r\n\r\n");
    http_rig_expect(fd, 404, "{\"error\":\"a \\\"quoted\\\" reason\"}");
    close(fd);
    http_rig_free(r);
}

/* One that only closed its side is waited for: a reset tells that it is gone. */
static void a_peer_that_leaves_cancels_its_requests(void **state)
{
    (void)state;
    struct http_rig *r = http_rig_new(0);
    http_rig_cancelled = false;
    int fd = http_rig_dial(r);
    http_rig_send(fd, "GET /fail HTTP/1.1\r\n\r\n");
    http_rig_expect(fd, 404, "{\"error\":\"a \\\"quoted\\\" reason\"}");
    http_rig_send(fd, "GET /later HTTP/1.1\r\n\r\nGET /echo HTTP/1.1\r\n\r\nPOST /echo "
                      "HTTP/1.1\r\nContent-Length: 99\r\n\r\nabc");
    const struct linger reset = {.l_onoff = 1};
    assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset)), 0);
    close(fd);
    http_rig_until_empty(r);
    http_rig_free(r); /* answers what was left over */
    assert_true(http_rig_cancelled);
}

static void stop_front(void *front)
{
    http_front_stop(front, clock_now_ns() + TIME_S(60));
}

static void stopping_lets_requests_finish(void **state)
{
    (void)state;
    struct http_rig *r = http_rig_new(0);
    int busy = http_rig_dial(r), idle = http_rig_dial(r);
    http_rig_send(idle, "GET /fail HTTP/1.1\r\n\r\n");
    http_rig_expect(idle, 404, "{\"error\":\"a \\\"quoted\\\" reason\"}");
    http_rig_send(busy, "GET /fail HTTP/1.1\r\n\r\nGET /later HTTP/1.1\r\n\r\n");
    http_rig_expect(busy, 404, "{\"error\":\"a \\\"quoted\\\" reason\"}");
    struct thread *stopper;
    unit_succeeds(thread_start("stop", stop_front, r->front, &stopper));
    http_rig_expect_end(idle);
    while (!http_rig_run(http_rig_draining))
        ;
    http_rig_run(http_rig_answer_later);
    char head[1024];
    assert_int_equal(http_rig_head(busy, head), 200);
    assert_non_null(strstr(head, "Connection: close"));
    char body[5];
    http_rig_read(busy, body, 5);
    http_rig_expect_end(busy);
    thread_join(stopper);
    assert_int_equal(listener_connections(r->front->listener), 0);
    http_rig_free(r);
}

/* A front end that was told to stop while requests wait on its one connection. */
struct stopped {
    struct http_rig *r;
    struct thread *stopper;
    int fd;
};

static struct stopped stop_with(const char *sent, unsigned waiting)
{
    struct stopped s = {.r = http_rig_new(0)};
    s.r->front->patience = http_front_patience(60, 60, 600);
    s.fd = http_rig_dial(s.r);
    http_rig_send(s.fd, sent);
    while (http_rig_run(http_rig_count_later) < waiting)
        ;
    unit_succeeds(thread_start("stop", stop_front, s.r->front, &s.stopper));
    while (!http_rig_run(http_rig_draining))
        ;
    return s;
}

static void stopped_end(struct stopped s)
{
    http_rig_expect_end(s.fd);
    thread_join(s.stopper);
    assert_int_equal(listener_connections(s.r->front->listener), 0);
    http_rig_free(s.r);
}

/* Reads answers 200 with that body: none but the last, if any, says that the connection ends. */
static void expect_answers(int fd, unsigned count, const char *body, bool ends)
{
    for (unsigned i = 1; i <= count; i++) {
        char head[1024], got[16] = {0};
        assert_int_equal(http_rig_head(fd, head), 200);
        assert_int_equal(strstr(head, "Connection: close") != NULL, ends && i == count);
        http_rig_read(fd, got, strlen(body));
        assert_string_equal(got, body);
    }
}

#define LATER "GET /later HTTP/1.1\r\n\r\n"
#define ECHO  "POST /echo HTTP/1.1\r\nContent-Length: 4\r\n\r\n"

static void stopping_answers_all_of_a_pipeline(void **state)
{
    (void)state;
    struct stopped s = stop_with(LATER LATER LATER, 3);
    http_rig_run(http_rig_answer_later);
    expect_answers(s.fd, 3, "later", true);
    stopped_end(s);
}

static void stopping_answers_what_is_held(void **state)
{
    (void)state;
    struct strbuf text = STRBUF_INIT;
    for (unsigned i = 0; i < 100; i++)
        strbuf_puts(&text, LATER);
    struct stopped s = stop_with(strbuf_str(&text), HTTP_CONN_MAX_IN_FLIGHT);
    strbuf_fini(&text);
    http_rig_run(http_rig_answer_later);
    expect_answers(s.fd, HTTP_CONN_MAX_IN_FLIGHT, "later", false);
    unsigned rest = 100 - HTTP_CONN_MAX_IN_FLIGHT;
    while (http_rig_run(http_rig_count_later) < rest)
        ;
    http_rig_run(http_rig_answer_later);
    expect_answers(s.fd, rest, "later", true);
    stopped_end(s);
}

static void stopping_answers_a_message_that_has_begun(void **state)
{
    (void)state;
    static const char *const cut[][2] = {
        {"POST /echo HTTP/1.1\r\nContent-Le", "ngth: 4\r\n\r\nabcd"},
        {ECHO "a", "bcd"},
        {"POST /echo HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nab", "cd\r\n0\r\n\r\n"},
    };
    for (size_t i = 0; i < sizeof(cut) / sizeof(*cut); i++) {
        char text[256];
        snprintf(text, sizeof(text), LATER "%s", cut[i][0]);
        struct stopped s = stop_with(text, 1);
        http_rig_run(http_rig_answer_later);
        expect_answers(s.fd, 1, "later", false);
        http_rig_send(s.fd, cut[i][1]);
        expect_answers(s.fd, 1, "abcd", true);
        stopped_end(s);
    }
}

/* All that comes at once is answered, and nothing of what comes after it: a client that goes on
 * asking does not hold the end. */
static void stopping_takes_no_more_messages(void **state)
{
    (void)state;
    struct stopped s = stop_with(LATER, 1);
    http_rig_send(s.fd, ECHO "abcd" ECHO "abcd" ECHO "ab");
    while (http_rig_run(http_rig_in_flight) < 3)
        ;
    http_rig_send(s.fd, "cd" ECHO "none");
    while (!http_rig_run(http_rig_deaf))
        ;
    http_rig_run(http_rig_answer_later);
    expect_answers(s.fd, 1, "later", false);
    expect_answers(s.fd, 3, "abcd", true);
    stopped_end(s);
}

static void stopping_answers_an_old_client(void **state)
{
    (void)state;
    struct stopped s = stop_with("GET /later HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"
                                 "GET /later HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
                                 2);
    http_rig_run(http_rig_answer_later);
    char head[1024], body[5];
    assert_int_equal(http_rig_head(s.fd, head), 200);
    assert_non_null(strstr(head, "Connection: keep-alive"));
    http_rig_read(s.fd, body, sizeof(body));
    expect_answers(s.fd, 1, "later", true);
    stopped_end(s);
}

/* Whether the server stops or not: the message is given up, what was asked for before it is
 * answered. */
static void a_message_that_stalls_takes_nothing_with_it(void **state)
{
    (void)state;
    static const char *const parts[] = {
        ECHO "a",
        "POST /echo HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nab",
        "POST /drop HTTP/1.1\r\nContent-Length: 4\r\n\r\nab",
    };
    for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++) {
        bool answered = i == 2; /* by its head */
        struct http_rig *r = http_rig_new(0);
        r->front->patience = http_front_patience(60, 1, 600);
        int fd = http_rig_dial(r);
        http_rig_send(fd, LATER);
        http_rig_send(fd, parts[i]);
        while (!http_rig_run(http_rig_deaf))
            ;
        http_rig_run(http_rig_answer_later);
        expect_answers(fd, 1, "later", !answered);
        if (answered)
            expect_answers(fd, 1, "", true);
        http_rig_expect_end(fd);
        http_rig_free(r);
    }
}

static void stopping_does_not_wait_for_ever(void **state)
{
    (void)state;
    struct http_rig *r = http_rig_new(0);
    int fd = http_rig_dial(r);
    http_rig_send(fd, "GET /fail HTTP/1.1\r\n\r\nGET /later HTTP/1.1\r\n\r\n");
    http_rig_expect(fd, 404, "{\"error\":\"a \\\"quoted\\\" reason\"}");
    assert_int_equal(http_front_stop(r->front, clock_now_ns()), 1);
    http_rig_expect(fd, 503, "{\"error\":\"the server is stopping\"}");
    http_rig_expect_end(fd);
    assert_int_equal(http_front_stop(r->front, clock_now_ns()), 0);
    http_rig_free(r);
}

static void connections_are_spread_over_the_workers(void **state)
{
    (void)state;
    struct http_rig *r = http_rig_new(0);
    int fds[8];
    for (int i = 0; i < 8; i++) {
        fds[i] = http_rig_dial(r);
        http_rig_send(fds[i], "GET /fail HTTP/1.1\r\n\r\n");
        http_rig_expect(fds[i], 404, "{\"error\":\"a \\\"quoted\\\" reason\"}");
    }
    for (unsigned i = 0; i < HTTP_RIG_WORKERS; i++)
        assert_int_equal(atomic_load(&r->workers[i].connections), 8 / HTTP_RIG_WORKERS);
    for (int i = 0; i < 8; i++)
        close(fds[i]);
    http_rig_free(r);
}

static void connections_over_the_limit_are_told(void **state)
{
    (void)state;
    struct http_rig *r = http_rig_new(2);
    int first = http_rig_dial(r), second = http_rig_dial(r);
    /* Both are counted then: workers that accept at the same time count in any order. */
    const int both[] = {first, second};
    for (int i = 0; i < 2; i++) {
        http_rig_send(both[i], "GET /fail HTTP/1.1\r\n\r\n");
        http_rig_expect(both[i], 404, "{\"error\":\"a \\\"quoted\\\" reason\"}");
    }
    int third = http_rig_dial(r);
    char text[4];
    http_rig_read(third, text, 4);
    assert_memory_equal(text, "full", 4);
    http_rig_expect_end(third);
    http_rig_send(second, "GET /fail HTTP/1.1\r\n\r\n");
    http_rig_expect(second, 404, "{\"error\":\"a \\\"quoted\\\" reason\"}");
    close(first);
    close(second);
    http_rig_until_empty(r);
    int again = http_rig_dial(r);
    http_rig_send(again, "GET /fail HTTP/1.1\r\n\r\n");
    http_rig_expect(again, 404, "{\"error\":\"a \\\"quoted\\\" reason\"}");
    close(again);
    http_rig_free(r);
}

UNIT_MAIN(UNIT(connections_end_when_they_should), UNIT(a_peer_that_leaves_cancels_its_requests),
          UNIT(stopping_lets_requests_finish), UNIT(stopping_answers_all_of_a_pipeline),
          UNIT(stopping_answers_what_is_held), UNIT(stopping_answers_a_message_that_has_begun),
          UNIT(stopping_takes_no_more_messages), UNIT(stopping_answers_an_old_client),
          UNIT(a_message_that_stalls_takes_nothing_with_it), UNIT(stopping_does_not_wait_for_ever),
          UNIT(connections_are_spread_over_the_workers), UNIT(connections_over_the_limit_are_told))
