/* Messages on a connection: order of answers, limits in flight, bodies in any pieces, slow
 * readers, what is refused. */
#include "base/budget.h"
#include "base/strbuf.h"
#include "http/http_conn.h"

#include "support/http_rig.h"
#include "support/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

static void answers_come_in_order(void **state)
{
    (void)state;
    struct http_rig *r = http_rig_new(0);
    int fd = http_rig_dial(r);
    http_rig_send(fd,
                  "GET /later HTTP/1.1\r\n\r\nPOST /echo HTTP/1.1\r\nContent-Length: 1\r\n\r\naGET "
                  "/later HTTP/1.1\r\n\r\n"
                  "GET /fail HTTP/1.1\r\n\r\nGET /flush HTTP/1.1\r\n\r\n");
    http_rig_expect(fd, 200, "later");
    http_rig_expect(fd, 200, "a");
    http_rig_expect(fd, 200, "later");
    http_rig_expect(fd, 404, "{\"error\":\"a \\\"quoted\\\" reason\"}");
    http_rig_expect(fd, 200, "ok");
    close(fd);
    http_rig_free(r);
}

static void a_long_pipeline_is_served_in_pieces(void **state)
{
    (void)state;
    struct http_rig *r = http_rig_new(0);
    int fd = http_rig_dial(r);
    struct strbuf text = STRBUF_INIT;
    for (int i = 0; i < 1000; i++)
        strbuf_printf(&text, "POST /echo HTTP/1.1\r\nContent-Length: 4\r\n\r\n%04d", i);
    http_rig_send(fd, strbuf_str(&text));
    strbuf_fini(&text);
    for (int i = 0; i < 1000; i++) {
        char expected[16];
        snprintf(expected, sizeof(expected), "%04d", i);
        http_rig_expect(fd, 200, expected);
    }
    close(fd);
    http_rig_free(r);
}

static void no_more_than_the_limit_is_in_flight(void **state)
{
    (void)state;
    struct http_rig *r = http_rig_new(0);
    int fd = http_rig_dial(r);
    struct strbuf text = STRBUF_INIT;
    const unsigned more = 6;
    for (unsigned i = 0; i < HTTP_CONN_MAX_IN_FLIGHT + more; i++)
        strbuf_puts(&text, "GET /later HTTP/1.1\r\n\r\n");
    http_rig_send(fd, strbuf_str(&text));
    strbuf_fini(&text);
    unsigned waiting;
    while ((waiting = http_rig_run(http_rig_count_later)) < HTTP_CONN_MAX_IN_FLIGHT)
        ;
    assert_int_equal(waiting, HTTP_CONN_MAX_IN_FLIGHT);
    http_rig_run(http_rig_answer_later);
    for (unsigned i = 0; i < HTTP_CONN_MAX_IN_FLIGHT; i++)
        http_rig_expect(fd, 200, "later");
    while ((waiting = http_rig_run(http_rig_count_later)) < more)
        ;
    assert_int_equal(waiting, more);
    http_rig_run(http_rig_answer_later);
    for (unsigned i = 0; i < more; i++)
        http_rig_expect(fd, 200, "later");
    close(fd);
    http_rig_free(r);
}

/* The end of what a client sends takes nothing of what it asked for before. */
static void a_client_that_closes_its_side_gets_its_answers(void **state)
{
    (void)state;
    static const char *const rests[] = {
        "", "GET /ha", "POST /echo HTTP/1.1\r\nContent-Length: 9\r\n\r\nabc",
        "POST /echo HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nab"};
    for (size_t i = 0; i < sizeof(rests) / sizeof(*rests); i++) {
        struct http_rig *r = http_rig_new(0);
        int fd = http_rig_dial(r);
        http_rig_send(
            fd, "GET /later HTTP/1.1\r\n\r\nPOST /echo HTTP/1.1\r\nContent-Length: 1\r\n\r\na");
        http_rig_send(fd, rests[i]);
        while (http_rig_run(http_rig_count_later) < 1)
            ;
        shutdown(fd, SHUT_WR);
        http_rig_run(http_rig_count_later);
        http_rig_run(http_rig_answer_later);
        http_rig_expect(fd, 200, "later");
        http_rig_expect(fd, 200, "a");
        http_rig_expect_end(fd);
        http_rig_free(r);
    }
}

/* One that still reads passes over what it is asked with; HTTP/1.0 knows nothing of that. */
static void a_client_that_closed_its_side_is_asked_once(void **state)
{
    (void)state;
    http_rig_ended = 0;
    for (int minor = 0; minor < 2; minor++) {
        struct http_rig *r = http_rig_new(0);
        int fd = http_rig_dial(r);
        char head[1024];
        http_rig_send(fd, minor ? "GET /later HTTP/1.1\r\n\r\nGET /later HTTP/1.1\r\n\r\n"
                                : "GET /later HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"
                                  "GET /later HTTP/1.1\r\n\r\n");
        shutdown(fd, SHUT_WR);
        while (!http_rig_run(http_rig_asked))
            ;
        if (minor)
            assert_int_equal(http_rig_head(fd, head), 100);
        http_rig_run(http_rig_answer_later);
        http_rig_expect(fd, 200, "later");
        http_rig_expect(fd, 200, "later");
        http_rig_expect_end(fd);
        http_rig_free(r);
    }
    http_rig_ended = TIME_S(600);
}

/* What a client asked for that is gone is cancelled, long before its system would say so by
 * itself. */
static void a_client_that_is_gone_is_found_out(void **state)
{
    (void)state;
    http_rig_ended = 0;
    struct http_rig *r = http_rig_new(0);
    int fd = http_rig_dial(r);
    http_rig_send(fd, "GET /later HTTP/1.1\r\n\r\n");
    while (http_rig_run(http_rig_count_later) < 1)
        ;
    http_rig_cancelled = false;
    close(fd);
    http_rig_until_empty(r);
    http_rig_run(http_rig_answer_later);
    assert_true(http_rig_cancelled);
    http_rig_free(r);
    http_rig_ended = TIME_S(600);
}

/* Also of those that waited for their turn, and of large ones that it takes slowly. */
static void a_closed_side_holds_nothing_back(void **state)
{
    (void)state;
    struct http_rig *r = http_rig_new(0);
    int fd = http_rig_dial(r);
    struct strbuf text = STRBUF_INIT;
    const unsigned more = 6;
    for (unsigned i = 0; i < HTTP_CONN_MAX_IN_FLIGHT + more; i++)
        strbuf_puts(&text, "GET /later HTTP/1.1\r\n\r\n");
    http_rig_send(fd, strbuf_str(&text));
    strbuf_fini(&text);
    http_rig_send(fd, "GET /large HTTP/1.1\r\nConnection: close\r\n\r\n");
    shutdown(fd, SHUT_WR);
    for (unsigned left = HTTP_CONN_MAX_IN_FLIGHT + more; left;) {
        unsigned waiting = http_rig_run(http_rig_count_later);
        if (waiting < (left < HTTP_CONN_MAX_IN_FLIGHT ? left : HTTP_CONN_MAX_IN_FLIGHT))
            continue;
        http_rig_run(http_rig_answer_later);
        for (unsigned i = 0; i < waiting; i++)
            http_rig_expect(fd, 200, "later");
        left -= waiting;
    }
    char head[1024];
    char *got = malloc(HTTP_RIG_LARGE);
    assert_int_equal(http_rig_head(fd, head), 200);
    http_rig_read(fd, got, HTTP_RIG_LARGE);
    assert_memory_equal(got, http_rig_large, HTTP_RIG_LARGE);
    free(got);
    http_rig_expect_end(fd);
    http_rig_free(r);
}

static void a_slow_reader_gets_everything(void **state)
{
    (void)state;
    struct http_rig *r = http_rig_new(0);
    int fd = http_rig_dial(r);
    char head[1024];
    char *got = malloc(HTTP_RIG_LARGE);
    for (int i = 0; i < 3; i++)
        http_rig_send(fd, "GET /large HTTP/1.1\r\n\r\nGET /fail HTTP/1.1\r\n\r\n");
    for (int i = 0; i < 3; i++) {
        assert_int_equal(http_rig_head(fd, head), 200);
        http_rig_read(fd, got, HTTP_RIG_LARGE);
        assert_memory_equal(got, http_rig_large, HTTP_RIG_LARGE);
        http_rig_expect(fd, 404, "{\"error\":\"a \\\"quoted\\\" reason\"}");
    }
    free(got);
    close(fd);
    http_rig_free(r);
}

static void bodies_arrive_in_any_pieces(void **state)
{
    (void)state;
    struct http_rig *r = http_rig_new(0);
    int fd = http_rig_dial(r);
    for (const char *c = "POST /echo HTTP/1.1\r\nContent-Length: 10\r\n\r\n0123456789"; *c; c++)
        assert_int_equal(send(fd, c, 1, MSG_NOSIGNAL), 1);
    http_rig_expect(fd, 200, "0123456789");
    for (const char *c = "POST /echo HTTP/1.1\r\nTransfer-Encoding: "
                         "chunked\r\n\r\n3\r\nabc\r\n1\r\nd\r\n0\r\n\r\n";
         *c; c++)
        assert_int_equal(send(fd, c, 1, MSG_NOSIGNAL), 1);
    http_rig_expect(fd, 200, "abcd");
    close(fd);
    http_rig_free(r);
}

/* A request that is more than one read brings comes with all that its client has to say: it need
 * not wait behind those that say more. */
static void one_request_of_some_kilobytes_is_not_busy(void **state)
{
    (void)state;
    struct http_rig *r = http_rig_new(0);
    int fd = http_rig_dial(r);
    struct strbuf text = STRBUF_INIT;
    strbuf_printf(&text, "POST /later HTTP/1.1\r\nContent-Length: %zu\r\n\r\n%0*d",
                  HTTP_CONN_READ_FIRST + 1000, (int)HTTP_CONN_READ_FIRST + 1000, 0);
    http_rig_send(fd, strbuf_str(&text));
    strbuf_fini(&text);
    while (http_rig_run(http_rig_count_later) < 1)
        ;
    assert_int_equal(http_rig_run(http_rig_lane), LOOP_LANE_FRONT);
    http_rig_run(http_rig_answer_later);
    http_rig_expect(fd, 200, "later");
    close(fd);
    http_rig_free(r);
}

static int asker;

/* In a turn that has told all that a turn may, the client of /later asks for more. */
static unsigned ask_once_all_is_told(void)
{
    struct http_conn *c = http_rig_later_conn();
    assert_true(worker_may_tell(c->shard->worker));
    worker_told(c->shard->worker, WORKER_TELL_BYTES);
    http_rig_send(asker, "GET /told HTTP/1.1\r\n\r\n");
    c->fd.ready(&c->fd, EPOLLIN);
    assert_int_equal(c->phase, HTTP_PHASE_TURN);
    return c->fd.lane;
}

/* Among those that always have a next question in front, it would be the last one each time. */
static void who_waits_for_a_turn_is_busy(void **state)
{
    (void)state;
    struct http_rig *r = http_rig_new(0);
    asker = http_rig_dial(r);
    http_rig_send(asker, "GET /later HTTP/1.1\r\n\r\n");
    while (http_rig_run(http_rig_count_later) < 1)
        ;
    assert_int_equal(http_rig_run(http_rig_lane), LOOP_LANE_FRONT);
    assert_int_equal(http_rig_run(ask_once_all_is_told), LOOP_LANE_BUSY);
    http_rig_run(http_rig_answer_later);
    http_rig_expect(asker, 200, "later");
    http_rig_expect(asker, 200, "");
    close(asker);
    http_rig_free(r);
}

static void large_bodies_put_the_first_tensor_on_64_bytes(void **state)
{
    (void)state;
    struct http_rig *r = http_rig_new(0);
    int fd = http_rig_dial(r);
    static const int json_bytes[] = {1, 63, 64, 65, 1000, 131};
    char head[1024];
    char *got = malloc(HTTP_RIG_LARGE);
    for (size_t i = 0; i < sizeof(json_bytes) / sizeof(*json_bytes); i++) {
        http_rig_aligned = false;
        snprintf(head, sizeof(head),
                 "POST /echo HTTP/1.1\r\nInference-Header-Content-Length: %d\r\nContent-Length: "
                 "%zu\r\n\r\n",
                 json_bytes[i], HTTP_RIG_LARGE);
        http_rig_send(fd, head);
        for (size_t at = 0; at < HTTP_RIG_LARGE;) {
            ssize_t put = send(fd, http_rig_large + at, HTTP_RIG_LARGE - at, MSG_NOSIGNAL);
            assert_true(put > 0);
            at += (size_t)put;
        }
        assert_int_equal(http_rig_head(fd, head), 200);
        http_rig_read(fd, got, HTTP_RIG_LARGE);
        assert_memory_equal(got, http_rig_large, HTTP_RIG_LARGE);
        assert_true(http_rig_aligned);
    }
    free(got);
    close(fd);
    http_rig_free(r);
}

static void a_body_is_asked_for_when_the_peer_waits(void **state)
{
    (void)state;
    struct http_rig *r = http_rig_new(0);
    int fd = http_rig_dial(r);
    char head[1024];
    http_rig_send(fd, "POST /echo HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n");
    assert_int_equal(http_rig_head(fd, head), 100);
    http_rig_send(fd, "abc");
    http_rig_expect(fd, 200, "abc");
    http_rig_send(fd, "POST /refuse HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n");
    http_rig_expect(fd, 400, "{\"error\":\"not this one\"}");
    http_rig_expect_end(fd);
    http_rig_free(r);
}

static void bodies_that_nobody_wants_are_dropped(void **state)
{
    (void)state;
    struct http_rig *r = http_rig_new(0);
    int fd = http_rig_dial(r);
    http_rig_send(fd, "POST /drop HTTP/1.1\r\nContent-Length: 3\r\n\r\nabcPOST /refuse "
                      "HTTP/1.1\r\nContent-Length: 3\r\n\r\na");
    http_rig_send(fd, "bcPOST /echo HTTP/1.1\r\nContent-Length: 1\r\n\r\nx");
    http_rig_expect(fd, 200, "");
    http_rig_expect(fd, 400, "{\"error\":\"not this one\"}");
    http_rig_expect(fd, 200, "x");
    http_rig_send(fd,
                  "POST /refuse HTTP/1.1\r\nContent-Length: 0\r\n\r\nGET /fail HTTP/1.1\r\n\r\n");
    http_rig_expect(fd, 400, "{\"error\":\"not this one\"}");
    http_rig_expect(fd, 404, "{\"error\":\"a \\\"quoted\\\" reason\"}");
    http_rig_send(fd, "POST /refuse HTTP/1.1\r\nContent-Length: 99999999\r\n\r\nabc");
    http_rig_expect(fd, 400, "{\"error\":\"not this one\"}");
    http_rig_expect_end(fd);
    http_rig_free(r);
}

static void a_spent_budget_is_an_answer(void **state)
{
    (void)state;
    struct http_rig *r = http_rig_new(0);
    size_t before = budget_limit();
    budget_set_limit((size_t)8 << 20);
    int fd = http_rig_dial(r);
    char head[1024];
    http_rig_send(fd, "POST /echo HTTP/1.1\r\nContent-Length: 1099511627776\r\n\r\nabc");
    assert_int_equal(http_rig_head(fd, head), 503);
    assert_non_null(strstr(head, "Connection: close"));
    close(fd);
    fd = http_rig_dial(r);
    http_rig_send(fd, "GET /fail HTTP/1.1\r\n\r\n");
    http_rig_expect(fd, 404, "{\"error\":\"a \\\"quoted\\\" reason\"}");
    close(fd);
    http_rig_free(r);
    assert_int_equal(budget_in_use(), 0);
    budget_set_limit(before);
}

static void ask_for_quotes(int fd, unsigned count, size_t bytes)
{
    char *text = malloc(bytes + 1);
    memset(text, 'a', bytes);
    text[bytes] = '\0';
    char head[128];
    snprintf(head, sizeof(head), "POST /quote HTTP/1.1\r\nContent-Length: %zu\r\n\r\n", bytes);
    for (unsigned i = 0; i < count; i++) {
        http_rig_send(fd, head);
        http_rig_send(fd, text);
    }
    free(text);
}

/* The length of an error, which is all of the letter a. */
static size_t read_quote(int fd)
{
    char head[1024], text[65536];
    assert_int_equal(http_rig_head(fd, head), 400);
    size_t n = strtoul(strstr(head, "Content-Length: ") + 16, NULL, 10);
    assert_true(n < sizeof(text));
    http_rig_read(fd, text, n);
    assert_memory_equal(text, "{\"error\":\"a", 11);
    return n - strlen("{\"error\":\"\"}");
}

/* Whoever makes the server quote much and reads nothing is bounded by the budget; past it the
 * quotes are short. */
static void errors_that_quote_much_are_charged(void **state)
{
    (void)state;
    struct http_rig *r = http_rig_new(0);
    size_t before = budget_limit();
    int fd = http_rig_dial(r);
    ask_for_quotes(fd, 1, 5000);
    assert_int_equal(read_quote(fd), 5000);
    ask_for_quotes(fd, 1, 100000);
    assert_int_equal(read_quote(fd), 32768);
    budget_set_limit((size_t)64 << 10); /* room for what is asked, not for what is answered */
    ask_for_quotes(fd, 1, 20000);
    assert_int_equal(read_quote(fd), 4096);
    ask_for_quotes(fd, 1, 100);
    assert_int_equal(read_quote(fd), 100);
    close(fd);
    http_rig_free(r);
    assert_int_equal(budget_in_use(), 0);
    budget_set_limit(before);
}

UNIT_MAIN(UNIT(answers_come_in_order), UNIT(a_long_pipeline_is_served_in_pieces),
          UNIT(no_more_than_the_limit_is_in_flight),
          UNIT(a_client_that_closes_its_side_gets_its_answers),
          UNIT(a_client_that_closed_its_side_is_asked_once),
          UNIT(a_client_that_is_gone_is_found_out), UNIT(a_closed_side_holds_nothing_back),
          UNIT(a_slow_reader_gets_everything), UNIT(bodies_arrive_in_any_pieces),
          UNIT(one_request_of_some_kilobytes_is_not_busy), UNIT(who_waits_for_a_turn_is_busy),
          UNIT(large_bodies_put_the_first_tensor_on_64_bytes),
          UNIT(a_body_is_asked_for_when_the_peer_waits), UNIT(bodies_that_nobody_wants_are_dropped),
          UNIT(a_spent_budget_is_an_answer), UNIT(errors_that_quote_much_are_charged))
