/* Connections as a whole: how they end, peers that leave, stopping, the spread over workers, the limit. */
#include "http/http_front.h"

#include "os/thread.h"

#include "support/http_rig.h"
#include "support/unit.h"

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

static void stopping_does_not_wait_for_ever(void **state)
{
    (void)state;
    struct http_rig *r = http_rig_new(0);
    int fd = http_rig_dial(r);
    http_rig_send(fd, "GET /fail HTTP/1.1\r\n\r\nGET /later HTTP/1.1\r\n\r\n");
    http_rig_expect(fd, 404, "{\"error\":\"a \\\"quoted\\\" reason\"}");
    http_front_stop(r->front, clock_now_ns());
    http_rig_expect_end(fd);
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
    int first = http_rig_dial(r), second = http_rig_dial(r), third = http_rig_dial(r);
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
          UNIT(stopping_lets_requests_finish), UNIT(stopping_does_not_wait_for_ever),
          UNIT(connections_are_spread_over_the_workers), UNIT(connections_over_the_limit_are_told))
