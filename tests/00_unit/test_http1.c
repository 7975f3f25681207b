/* The HTTP/1.1 parser: what a head means, chunked bodies, what is refused - each however the
 * bytes are cut. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/strbuf.h"
#include "codec/http1.h"

/* What came of a message. */
struct outcome {
    enum http1_event event;
    struct http1_head head;
    char url[256];
    struct strbuf body;
    uint16_t status;
    size_t used; /* of the text, up to the end of the message */
};

static bool collect(void *owner, const char *bytes, size_t len)
{
    strbuf_append(owner, bytes, len);
    return true;
}

static bool refuse(void *owner, const char *bytes, size_t len)
{
    (void)owner;
    (void)bytes;
    (void)len;
    return false;
}

static void note_head(struct outcome *o, struct http1_parser *p)
{
    o->head = p->head;
    assert_true(p->head.url_len < sizeof(o->url));
    memcpy(o->url, p->head.url, p->head.url_len);
    o->url[p->head.url_len] = '\0';
}

/* Parses one message given in pieces of `step` bytes, each in memory of its own that is gone
 * afterwards. The parser is at the begin of a message. */
static void parse_with(struct http1_parser *p, const char *text, size_t len, size_t step,
                       struct outcome *o)
{
    *o = (struct outcome){.body = STRBUF_INIT};
    p->owner = &o->body;
    enum http1_event e = HTTP1_MORE;
    bool done = false;
    for (size_t at = 0; at < len && !done;) {
        size_t n = len - at < step ? len - at : step;
        char *piece = malloc(n);
        memcpy(piece, text + at, n);
        size_t used = 0;
        for (size_t in = 0; in < n && !done; in += used) {
            e = http1_parse(p, piece + in, n - in, &used);
            assert_true(used <= n - in);
            o->used += used;
            if (e == HTTP1_HEAD)
                note_head(o, p);
            done = e == HTTP1_ERROR || e == HTTP1_END || (e == HTTP1_HEAD && !p->head.chunked);
            if (e == HTTP1_MORE)
                assert_int_equal(used, n - in);
            if (e == HTTP1_HEAD && p->head.chunked)
                http1_keep(p);
        }
        free(piece);
        at += n;
    }
    o->event = e;
    o->status = p->error_status;
}

static void parse(const char *text, size_t len, size_t step, struct outcome *o)
{
    struct http1_parser p;
    http1_init(&p, collect, NULL);
    parse_with(&p, text, len, step, o);
    http1_fini(&p);
}

static void assert_same(const struct outcome *o, const struct outcome *whole)
{
    assert_int_equal(o->event, whole->event);
    assert_int_equal(o->status, whole->status);
    if (o->event != HTTP1_ERROR) {
        assert_string_equal(o->url, whole->url);
        assert_int_equal(o->used, whole->used);
        assert_int_equal(o->head.method, whole->head.method);
        assert_int_equal(o->head.minor, whole->head.minor);
        assert_int_equal(o->head.chunked, whole->head.chunked);
        assert_int_equal(o->head.content_length, whole->head.content_length);
        assert_int_equal(o->head.keep_alive, whole->head.keep_alive);
        assert_int_equal(o->head.expect_continue, whole->head.expect_continue);
        assert_int_equal(o->head.browser, whole->head.browser);
        assert_int_equal(o->head.content_coding, whole->head.content_coding);
        assert_int_equal(o->head.accept_coding, whole->head.accept_coding);
        assert_string_equal(o->head.tensor_header.text, whole->head.tensor_header.text);
    }
    if (o->event == HTTP1_END) {
        assert_int_equal(o->body.len, whole->body.len);
        assert_string_equal(strbuf_str(&o->body), strbuf_str(&whole->body));
    }
}

/* Every way of cutting the text into two, and every fixed step, gives what the whole gives. */
static void parse_every_way(const char *text, struct outcome *whole)
{
    size_t len = strlen(text);
    parse(text, len, len, whole);
    for (size_t step = 1; step < len; step++) {
        struct outcome o;
        parse(text, len, step, &o);
        assert_same(&o, whole);
        strbuf_fini(&o.body);
    }
}

static void head_is_read(void **state)
{
    (void)state;
    struct outcome o;
    parse_every_way(
        "POST /v2/models/m/infer?x=1 HTTP/1.1\r\nHost: a\r\ninference-HEADER-content-length: 7\r\n"
        "Content-Length: 12\r\nExpect: 100-Continue\r\nAccept-Encoding: gzip;q=0.1, "
        "deflate;q=0.9\r\n"
        "Content-Encoding: gzip\r\n\r\nabc",
        &o);
    assert_int_equal(o.event, HTTP1_HEAD);
    assert_int_equal(o.head.method, HTTP1_POST);
    assert_string_equal(o.url, "/v2/models/m/infer?x=1");
    assert_int_equal(o.head.content_length, 12);
    assert_int_equal(o.head.minor, 1);
    assert_true(o.head.keep_alive);
    assert_true(o.head.expect_continue);
    assert_true(o.head.tensor_header.given);
    assert_string_equal(o.head.tensor_header.text, "7");
    assert_int_equal(o.head.content_coding, CODING_GZIP);
    assert_int_equal(o.head.accept_coding, CODING_DEFLATE);
}

static void of_a_proxys_target_the_path_is_kept(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"http://host:80/v2?a=http://b/c", "/v2?a=http://b/c"},
        {"HTTPS://user@[::1]/", "/"},
        {"http://host", "/"},
        {"https://host?a/b", "/?a/b"},
        {"/http://host/", "/http://host/"},
        {"ftp://host/v2", "ftp://host/v2"},
        {"*", "*"},
    };
    struct http1_parser p;
    http1_init(&p, collect, NULL);
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        char text[256];
        struct outcome o;
        snprintf(text, sizeof(text), "OPTIONS %s HTTP/1.1\r\n\r\n", cases[i][0]);
        parse_every_way(text, &o);
        assert_string_equal(o.url, cases[i][1]);
        for (int again = 0; again < 2; again++) {
            size_t used;
            snprintf(text, sizeof(text), "OPTIONS %s HTTP/1.1\r\n\r\n", cases[i][0]);
            assert_int_equal(http1_parse(&p, text, strlen(text), &used), HTTP1_HEAD);
            http1_keep(&p);
            memset(text, 'x', used); /* as if its memory had been given back */
            note_head(&o, &p);
            assert_string_equal(o.url, cases[i][1]);
            http1_next(&p);
        }
    }
    http1_fini(&p);
}

/* However the head is cut, whatever stands between them, and also where it comes again. */
static void who_asks_is_kept(void **state)
{
    (void)state;
    static const char text[] = "POST / HTTP/1.1\r\nAccept-Encoding: gzip\r\nHOST: here:8000\r\n"
                               "Expect: x\r\nAccept: */*\r\nOrigin:\r\nX-Origin: a\r\n"
                               "Sec-Fetch-Site: cross-site\r\nOrigin: https://a\r\n\r\n";
    const size_t len = sizeof(text) - 1;
    struct http1_parser p;
    size_t used;
    for (size_t cut = 0; cut < len; cut++) {
        http1_init(&p, collect, NULL);
        for (int again = 0; again < 2; again++) {
            if (cut)
                assert_int_equal(http1_parse(&p, text, cut, &used), HTTP1_MORE);
            assert_int_equal(http1_parse(&p, text + cut, len - cut, &used), HTTP1_HEAD);
            assert_true(p.head.browser);
            assert_true(p.head.expect_continue);
            assert_int_equal(p.head.accept_coding, CODING_GZIP);
            assert_string_equal(http1_header(&p.head, "Host", NULL), "here:8000");
            const char *first = http1_header(&p.head, "Origin", NULL);
            assert_string_equal(first, "");
            assert_string_equal(http1_header(&p.head, "Origin", first), "https://a");
            assert_string_equal(http1_header(&p.head, "Sec-Fetch-Site", NULL), "cross-site");
            assert_null(http1_header(&p.head, "Accept", NULL));
            http1_next(&p);
        }
        static const char plain[] = "GET / HTTP/1.1\r\nHost: here\r\n\r\n";
        for (int again = 0; again < 2; again++) {
            assert_int_equal(http1_parse(&p, plain, sizeof(plain) - 1, &used), HTTP1_HEAD);
            assert_false(p.head.browser);
            assert_null(http1_header(&p.head, "Origin", NULL));
            http1_next(&p);
        }
        http1_fini(&p);
    }
}

/* Blanks around a value are none of it. */
static void blanks_around_values_are_dropped(void **state)
{
    (void)state;
    struct outcome o;
    parse_every_way(
        "POST / HTTP/1.1\r\nInference-Header-Content-Length: \t 7 \t\r\n"
        "Content-Length: 12 \r\nExpect:100-continue  \r\nContent-Encoding:\tgzip\t\r\n\r\n",
        &o);
    assert_int_equal(o.event, HTTP1_HEAD);
    assert_string_equal(o.head.tensor_header.text, "7");
    assert_int_equal(o.head.tensor_header.len, 1);
    assert_int_equal(o.head.content_length, 12);
    assert_true(o.head.expect_continue);
    assert_int_equal(o.head.content_coding, CODING_GZIP);
    parse_every_way("GET / HTTP/1.1\r\nContent-Encoding: \t \r\nAccept-Encoding: gzip \r\n\r\n",
                    &o);
    assert_int_equal(o.event, HTTP1_HEAD);
    assert_int_equal(o.head.content_coding, CODING_IDENTITY);
    assert_int_equal(o.head.accept_coding, CODING_GZIP);

    struct http1_parser p;
    size_t used;
    static const char text[] =
        "GET / HTTP/1.1\r\nkey:  a b\t \r\nnone: \r\nend:  x\r\nEND:y \r\n\r\n";
    for (size_t cut = 1; cut < sizeof(text) - 1; cut++) {
        http1_init(&p, collect, NULL);
        http1_collect(&p);
        enum http1_event e = http1_parse(&p, text, cut, &used);
        if (e == HTTP1_MORE)
            e = http1_parse(&p, text + cut, sizeof(text) - 1 - cut, &used);
        assert_int_equal(e, HTTP1_HEAD);
        assert_string_equal(http1_header(&p.head, "key", NULL), "a b\t ");
        assert_string_equal(http1_header(&p.head, "none", NULL), "");
        const char *first = http1_header(&p.head, "end", NULL);
        assert_string_equal(first, "x");
        assert_string_equal(http1_header(&p.head, "end", first), "y ");
        assert_null(http1_header(&p.head, "end", http1_header(&p.head, "end", first)));
        assert_null(http1_header(&p.head, "key", first));
        http1_fini(&p);
    }
}

static void connection_is_kept_by_version_and_header(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool kept;
    } cases[] = {
        {"GET / HTTP/1.1\r\n\r\n", true},
        {"GET / HTTP/1.1\r\nConnection: close\r\n\r\n", false},
        {"GET / HTTP/1.1\r\nConnection: Keep-Alive\r\n\r\n", true},
        {"GET / HTTP/1.0\r\n\r\n", false},
        {"GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", true},
        {"CONNECT a:1 HTTP/1.1\r\n\r\n", false},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct outcome o;
        parse_every_way(cases[i].text, &o);
        assert_int_equal(o.event, HTTP1_HEAD);
        assert_int_equal(o.head.keep_alive, cases[i].kept);
    }
}

static void chunked_body_is_put_together(void **state)
{
    (void)state;
    struct outcome o;
    static const char text[] =
        "POST /u HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"
        "4\r\nabcd\r\n1;ext=\"x\"\r\ne\r\nA\r\n0123456789\r\n0\r\nTrailer: t\r\n\r\nGET";
    parse_every_way(text, &o);
    assert_int_equal(o.event, HTTP1_END);
    assert_true(o.head.chunked);
    assert_int_equal(o.head.content_length, 0);
    assert_string_equal(strbuf_str(&o.body), "abcde0123456789");
    assert_int_equal(o.used, sizeof(text) - 1 - 3);
    strbuf_fini(&o.body);
}

static void trailers_do_not_change_the_head(void **state)
{
    (void)state;
    struct outcome o;
    static const char *const trailers[] = {
        "Expect: nonsense",
        "Inference-Header-Content-Length: 1",
        "Inference-Header-Content-Length: 1\r\nInference-Header-Content-Length: 2",
        "Content-Encoding: gzip\r\nAccept-Encoding: gzip",
        "Connection: close",
        "A: b",
    };
    for (size_t i = 0; i < sizeof(trailers) / sizeof(*trailers); i++) {
        for (unsigned collecting = 0; collecting < 2; collecting++) {
            struct http1_parser p;
            char text[512];
            size_t len = (size_t)snprintf(
                text, sizeof(text),
                "POST /u HTTP/1.1\r\nTransfer-Encoding: chunked\r\n%s\r\n1\r\na\r\n0\r\n%s\r\n\r\n",
                i % 2 ? "Inference-Header-Content-Length: 7\r\n" : "", trailers[i]);
            for (size_t step = 1; step <= len; step++) {
                http1_init(&p, collect, NULL);
                if (collecting)
                    http1_collect(&p);
                parse_with(&p, text, len, step, &o);
                assert_int_equal(o.event, HTTP1_END);
                assert_string_equal(p.head.tensor_header.text, i % 2 ? "7" : "");
                assert_int_equal(p.head.tensor_header.given, i % 2);
                assert_false(p.head.expect_continue);
                assert_int_equal(p.head.content_coding, CODING_IDENTITY);
                assert_int_equal(p.head.accept_coding, CODING_IDENTITY);
                assert_true(p.head.keep_alive);
                strbuf_fini(&o.body);
                http1_fini(&p);
            }
        }
    }
}

static void what_two_peers_could_read_differently_is_refused(void **state)
{
    (void)state;
    static const char *const cases[] = {
        "POST / HTTP/1.1\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n",
        "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n",
        "POST / HTTP/1.1\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\n",
        "POST / HTTP/1.1\r\nContent-Length: 3\r\nContent-Length: 3\r\n\r\n",
        "POST / HTTP/1.1\r\nContent-Length: 3, 3\r\n\r\n",
        "POST / HTTP/1.1\r\nContent-Length: +3\r\n\r\n",
        "POST / HTTP/1.1\r\nContent-Length: -3\r\n\r\n",
        "POST / HTTP/1.1\r\nContent-Length: 0x3\r\n\r\n",
        "POST / HTTP/1.1\r\nContent-Length: 12abc\r\n\r\n",
        "POST / HTTP/1.1\r\nContent-Length: 99999999999999999999\r\n\r\n",
        "POST / HTTP/1.1\r\nTransfer-Encoding:\r\nContent-Length: 3\r\n\r\n",
        "POST / HTTP/1.1\r\nContent-Length: 3\r\nTransfer-Encoding: \t \r\n\r\n",
        "POST / HTTP/1.1\r\nTransfer-Encoding:\r\n\r\n",
        "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n",
        "POST / HTTP/1.0\r\nTransfer-Encoding: chunked, identity\r\n\r\n",
        "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nTransfer-Encoding: gzip\r\n\r\n",
        "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nContent-Length: 5\r\n\r\n",
        "POST / HTTP/1.0\r\nTransfer-Encoding: identity\r\nConnection: keep-alive\r\n\r\n",
        "GET / HTTP/1.1\r\nA: b\r\n c\r\n\r\n",
        "GET / HTTP/1.1\r\nA : b\r\n\r\n",
        "GET / HTTP/1.1\r\n A: b\r\n\r\n",
        "GET / HTTP/1.1\nA: b\n\n",
        "GET / HTTP/1.1\r\nA: \x01\r\n\r\n",
        "GET / HTTP/1.1\r\nA\r\n\r\n",
        "GET /a b HTTP/1.1\r\n\r\n",
        "GET / HTTP/1.2\r\n\r\n",
        "get / HTTP/1.1\r\n\r\n",
        "GE T / HTTP/1.1\r\n\r\n",
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        "\x16\x03\x01\x02\r\n\r\n",
        "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3 \r\nabc\r\n0\r\n\r\n",
        "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabcd\r\n0\r\n\r\n",
        "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nx\r\nabc\r\n0\r\n\r\n",
        "POST / HTTP/1.1\r\nTransfer-Encoding: "
        "chunked\r\n\r\n11111111111111111\r\nabc\r\n0\r\n\r\n",
        "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3\nabc\r\n0\r\n\r\n",
        "POST / HTTP/1.1\r\nInference-Header-Content-Length: 1\r\nInference-Header-Content-Length: "
        "2\r\n\r\n",
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct outcome o;
        parse_every_way(cases[i], &o);
        if (o.event != HTTP1_ERROR || o.status != 400)
            fail_msg("accepted, or status %u: %s", o.status, cases[i]);
        strbuf_fini(&o.body);
    }
}

static void what_is_not_spoken_has_its_own_status(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        uint16_t status;
    } cases[] = {
        {"GET / HTTP/2.0\r\n\r\n", 505},
        {"GET /\r\n\r\n", 505},
        {"POST / HTTP/1.1\r\nTransfer-Encoding: gzip\r\n\r\n", 501},
        {"POST / HTTP/1.1\r\nTransfer-Encoding: xchunked\r\n\r\n", 501},
        {"POST / HTTP/1.1\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", 501},
        {"POST / HTTP/1.1\r\nTransfer-Encoding: foo,chunked\r\n\r\n", 501},
        {"POST / HTTP/1.1\r\nTransfer-Encoding: identity, chunked\r\n\r\n", 501},
        {"POST / HTTP/1.1\r\nTransfer-Encoding: , chunked\r\n\r\n", 501},
        {"POST / HTTP/1.1\r\nTransfer-Encoding: chunked,\r\n\r\n", 501},
        {"POST / HTTP/1.1\r\nTransfer-Encoding: chunked;a=b\r\n\r\n", 501},
        {"POST / HTTP/1.1\r\nTransfer-Encoding: chunked, identity\r\n\r\n", 501},
        {"POST / HTTP/1.1\r\nTransfer-Encoding: chunked, chunked\r\n\r\n", 501},
        {"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: "
         "chunked\r\n\r\n",
         501},
        {"POST / HTTP/1.1\r\nTransfer-Encoding: identity\r\nTransfer-Encoding: "
         "chunked\r\n\r\n",
         501},
        {"POST / HTTP/1.1\r\nTransfer-Encoding:\r\nTransfer-Encoding: chunked\r\n\r\n", 501},
        {"NONSENSE / HTTP/1.1\r\n\r\n", 405},
        {"FOO / HTTP/1.1\r\n\r\n", 405},
        {"GETS / HTTP/1.1\r\n\r\n", 405},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct outcome o;
        parse_every_way(cases[i].text, &o);
        assert_int_equal(o.event, HTTP1_ERROR);
        assert_int_equal(o.status, cases[i].status);
    }
}

static char *repeat(const char *before, char c, size_t n, const char *after)
{
    char *text = malloc(strlen(before) + n + strlen(after) + 1);
    memcpy(text, before, strlen(before));
    memset(text + strlen(before), c, n);
    memcpy(text + strlen(before) + n, after, strlen(after) + 1);
    return text;
}

static void assert_status(char *text, size_t step, uint16_t status)
{
    struct outcome o;
    parse(text, strlen(text), step ? step : strlen(text), &o);
    assert_int_equal(o.event, HTTP1_ERROR);
    assert_int_equal(o.status, status);
    strbuf_fini(&o.body);
    free(text);
}

static void sizes_are_limited(void **state)
{
    (void)state;
    for (size_t step = 0; step < 2000; step += 977) {
        assert_status(repeat("GET /", 'a', HTTP1_MAX_URL_BYTES, " HTTP/1.1\r\n\r\n"), step, 414);
        assert_status(repeat("GET / HTTP/1.1\r\nA: ", 'a', HTTP1_MAX_HEAD_BYTES, "\r\n\r\n"), step,
                      431);
    }
    struct strbuf sb = STRBUF_INIT;
    strbuf_puts(&sb, "GET / HTTP/1.1\r\n");
    for (unsigned i = 0; i <= HTTP1_MAX_HEADERS; i++)
        strbuf_puts(&sb, "A: b\r\n");
    strbuf_puts(&sb, "\r\n");
    assert_status(strdup(strbuf_str(&sb)), 0, 431);
    strbuf_fini(&sb);
}

static void chunks_are_limited(void **state)
{
    (void)state;
    struct strbuf sb = STRBUF_INIT;
    strbuf_puts(&sb, "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n");
    for (unsigned i = 0; i < HTTP1_MAX_CHUNKS; i++)
        strbuf_puts(&sb, "1\r\na\r\n");
    struct outcome o;
    size_t most = sb.len;
    strbuf_puts(&sb, "0\r\n\r\n");
    parse(strbuf_str(&sb), sb.len, 5000, &o);
    assert_int_equal(o.event, HTTP1_END);
    assert_int_equal(o.body.len, HTTP1_MAX_CHUNKS);
    strbuf_fini(&o.body);
    sb.len = most;
    strbuf_puts(&sb, "1\r\na\r\n0\r\n\r\n");
    assert_status(strdup(strbuf_str(&sb)), 5000, 400);
    strbuf_fini(&sb);
    assert_status(repeat("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1;", 'x',
                         HTTP1_MAX_CHUNK_LINES, "\r\na\r\n0\r\n\r\n"),
                  60000, 431);
}

static void a_refused_piece_stops_the_parse(void **state)
{
    (void)state;
    struct http1_parser p;
    http1_init(&p, refuse, NULL);
    static const char text[] =
        "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n";
    size_t used;
    assert_int_equal(http1_parse(&p, text, sizeof(text) - 1, &used), HTTP1_HEAD);
    size_t rest;
    assert_int_equal(http1_parse(&p, text + used, sizeof(text) - 1 - used, &rest), HTTP1_ERROR);
    assert_null(p.error_reason);
    http1_fini(&p);
}

static void messages_follow_each_other(void **state)
{
    (void)state;
    static const char text[] =
        "GET /1 HTTP/1.1\r\nInference-Header-Content-Length: 5\r\n\r\n\r\nPOST /2 HTTP/1.1\r\n"
        "Content-Length: 2\r\n\r\nxxGET /3 HTTP/1.1\r\nUpgrade: h2c\r\nConnection: upgrade\r\n\r\n";
    static const char *const urls[] = {"/1", "/2", "/3"};
    struct http1_parser p;
    http1_init(&p, collect, NULL);
    assert_true(http1_idle(&p));
    size_t at = 0;
    for (int i = 0; i < 3; i++) {
        size_t used;
        assert_int_equal(http1_parse(&p, text + at, sizeof(text) - 1 - at, &used), HTTP1_HEAD);
        assert_int_equal(p.head.url_len, 2);
        assert_memory_equal(p.head.url, urls[i], 2);
        assert_int_equal(p.head.tensor_header.given, i == 0);
        assert_false(http1_idle(&p));
        at += used + (size_t)p.head.content_length;
        http1_next(&p);
    }
    assert_int_equal(at, sizeof(text) - 1);
    http1_fini(&p);
}

/* They are not the begin of a message: what waits for one goes on waiting. */
static void blank_lines_are_no_message(void **state)
{
    (void)state;
    struct http1_parser p;
    http1_init(&p, collect, NULL);
    size_t used;
    for (int i = 0; i < 3; i++) {
        assert_int_equal(http1_parse(&p, "\r\n\r\n", 4, &used), HTTP1_MORE);
        assert_int_equal(used, 4);
        assert_true(http1_idle(&p));
    }
    assert_int_equal(http1_parse(&p, "\r\nG", 3, &used), HTTP1_MORE);
    assert_false(http1_idle(&p));
    assert_int_equal(http1_parse(&p, "ET / HTTP/1.1\r\n\r\n", 18, &used), HTTP1_HEAD);
    http1_next(&p);
    char blanks[1024];
    memset(blanks, '\n', sizeof(blanks));
    for (size_t sent = 0; sent < HTTP1_MAX_HEAD_BYTES; sent += sizeof(blanks))
        assert_int_equal(http1_parse(&p, blanks, sizeof(blanks), &used), HTTP1_MORE);
    assert_int_equal(http1_parse(&p, "\n", 1, &used), HTTP1_ERROR);
    assert_int_equal(p.error_status, 431);
    http1_fini(&p);
}

/* One connection sends these one after the other; whatever came before, each means what it means
 * alone. */
static void what_a_head_means_does_not_depend_on_the_last(void **state)
{
    (void)state;
    char large[1024];
    snprintf(large, sizeof(large), "POST /large HTTP/1.1\r\nContent-Length: 9\r\nX: %0700d\r\n\r\n",
             0);
    const char *const messages[] = {
        "POST /1 HTTP/1.1\r\nContent-Length: 5\r\n\r\n",
        "POST /1 HTTP/1.1\r\nContent-Length: 6\r\n\r\n",
        "\r\nPOST /1 HTTP/1.1\r\nContent-Length: 6\r\n\r\n",
        "POST /1 HTTP/1.1\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n",
        "POST /2 HTTP/1.1\r\nInference-Header-Content-Length: 7\r\nContent-Length: 70\r\n\r\n",
        "GET /2 HTTP/1.0\r\nAccept-Encoding: gzip\r\n\r\n",
        "POST /1 HTTP/1.1\r\nContent-Length: 5\r\nOrigin: https://a\r\n\r\n",
        "POST /3 HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n",
        "POST /3 HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nc\r\n0\r\n\r\n",
        large,
    };
    const size_t count = sizeof(messages) / sizeof(*messages);
    struct http1_parser p;
    http1_init(&p, collect, NULL);
    for (size_t i = 0; i < count * count * 8; i++) {
        const char *text = messages[i / 8 % count];
        const char *next = messages[i / 8 / count];
        /* Twice whole, then with another between them, then in two pieces and whole again. */
        const char *now = i % 8 == 3 || i % 8 == 7 ? next : text;
        size_t len = strlen(now);
        struct outcome alone, o;
        parse(now, len, len, &alone);
        parse_with(&p, now, len, i % 8 == 5 ? len / 2 + 1 : len, &o);
        assert_same(&o, &alone);
        strbuf_fini(&alone.body);
        strbuf_fini(&o.body);
        http1_next(&p);
    }
    http1_fini(&p);
}

static void accept_encoding_follows_the_weights(void **state)
{
    (void)state;
    static const struct {
        const char *value;
        enum coding coding;
    } cases[] = {
        {"", CODING_IDENTITY},
        {"gzip", CODING_GZIP},
        {"deflate, gzip", CODING_DEFLATE},
        {"deflate;q=0.5, gzip;q=0.8", CODING_GZIP},
        {"gzip;q=0, identity", CODING_IDENTITY},
        {"br, compress", CODING_IDENTITY},
        {"br, zstd", CODING_ZSTD},
        {"gzip, zstd", CODING_GZIP},
        {"gzip;q=0.9, ZSTD", CODING_ZSTD},
        {"br, gzip;q=0.001", CODING_GZIP},
        {"identity;q=1.0, gzip;q=0.5", CODING_IDENTITY},
        {" gzip ; q=1", CODING_GZIP},
        {",,;q=1,", CODING_IDENTITY},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
        assert_int_equal(http1_accept_coding(cases[i].value, strlen(cases[i].value)),
                         cases[i].coding);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(head_is_read),
        cmocka_unit_test(of_a_proxys_target_the_path_is_kept),
        cmocka_unit_test(who_asks_is_kept),
        cmocka_unit_test(blanks_around_values_are_dropped),
        cmocka_unit_test(connection_is_kept_by_version_and_header),
        cmocka_unit_test(chunked_body_is_put_together),
        cmocka_unit_test(trailers_do_not_change_the_head),
        cmocka_unit_test(what_two_peers_could_read_differently_is_refused),
        cmocka_unit_test(what_is_not_spoken_has_its_own_status),
        cmocka_unit_test(sizes_are_limited),
        cmocka_unit_test(chunks_are_limited),
        cmocka_unit_test(a_refused_piece_stops_the_parse),
        cmocka_unit_test(blank_lines_are_no_message),
        cmocka_unit_test(messages_follow_each_other),
        cmocka_unit_test(what_a_head_means_does_not_depend_on_the_last),
        cmocka_unit_test(accept_encoding_follows_the_weights),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
