/* codec/http2_head: the fields of a request as a head of HTTP/1.1. */
#include "codec/http2_head.h"

#include "support/unit.h"

#include <string.h>

static void field(struct http2_head *h, const char *name, const char *value)
{
    http2_head_field(h, name, strlen(name), value, strlen(value));
}

static void begin(struct http2_head *h, bool collect)
{
    http2_head_init(h, collect);
    field(h, ":method", "POST");
    field(h, ":scheme", "http");
    field(h, ":path", "/v2?a=b");
    field(h, ":authority", "here:8000");
}

static void a_head_is_as_of_http1(void **state)
{
    (void)state;
    struct http2_head h;
    begin(&h, true);
    field(&h, "content-length", "42");
    field(&h, "content-encoding", "gzip");
    field(&h, "accept-encoding", "deflate;q=0.5, zstd");
    field(&h, "expect", "100-continue");
    field(&h, "inference-header-content-length", "7");
    assert_true(http2_head_end(&h, false));
    assert_int_equal(h.head.method, HTTP1_POST);
    assert_int_equal(h.head.url_len, 7);
    assert_memory_equal(h.head.url, "/v2?a=b", 7);
    assert_int_equal(h.head.content_length, 42);
    assert_false(h.head.chunked);
    assert_true(h.head.keep_alive);
    assert_true(h.head.expect_continue);
    assert_int_equal(h.head.content_coding, CODING_GZIP);
    assert_int_equal(h.head.accept_coding, CODING_ZSTD);
    assert_string_equal(h.head.tensor_header.text, "7");
    assert_string_equal(http1_header(&h.head, "Host", NULL), "here:8000");
    assert_string_equal(http1_header(&h.head, "Expect", NULL), "100-continue");
    http2_head_fini(&h);
}

/* Whether all are kept or not. */
static void who_asks_is_kept(void **state)
{
    (void)state;
    struct http2_head h;
    for (unsigned i = 0; i < 8; i++) {
        bool collect = i & 1, origin = i & 2, site = i & 4;
        begin(&h, collect);
        field(&h, "accept", "*/*");
        if (origin)
            field(&h, "origin", "https://a");
        if (site)
            field(&h, "sec-fetch-site", "none");
        assert_true(http2_head_end(&h, true));
        assert_int_equal(h.head.browser, origin || site);
        assert_string_equal(http1_header(&h.head, "Host", NULL), "here:8000");
        assert_int_equal(http1_header(&h.head, "Origin", NULL) != NULL, origin);
        assert_int_equal(http1_header(&h.head, "Sec-Fetch-Site", NULL) != NULL, site);
        assert_int_equal(http1_header(&h.head, "Accept", NULL) != NULL, collect);
        http2_head_fini(&h);
    }
}

static void the_end_says_whether_a_body_follows(void **state)
{
    (void)state;
    struct http2_head h;
    for (int ends = 0; ends < 2; ends++) {
        begin(&h, false);
        assert_true(http2_head_end(&h, ends));
        assert_int_equal(h.head.chunked, !ends);
        assert_int_equal(h.head.headers_len, sizeof("host\0here:8000"));
        http2_head_fini(&h);
    }
}

static void bytes_of_a_path_are_those_of_http1(void **state)
{
    (void)state;
    for (int c = 1; c < 256; c++) {
        struct http2_head h;
        char path[] = {'/', (char)c, '\0'};
        http2_head_init(&h, false);
        field(&h, ":path", path);
        assert_int_equal(http2_head_end(&h, true), c > ' ' && c < 0x7f);
        assert_int_equal(h.error_status, c > ' ' && c < 0x7f ? 0 : 400);
        http2_head_fini(&h);
    }
}

static void methods_are_known(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        enum http1_method method;
    } of[] = {{"GET", HTTP1_GET},       {"HEAD", HTTP1_HEAD_METHOD}, {"OPTIONS", HTTP1_OPTIONS},
              {"DELETE", HTTP1_DELETE}, {"PUT", HTTP1_OTHER},        {"get", HTTP1_OTHER},
              {"", HTTP1_OTHER}};
    for (size_t i = 0; i < sizeof(of) / sizeof(*of); i++) {
        struct http2_head h;
        http2_head_init(&h, false);
        field(&h, ":method", of[i].name);
        assert_true(http2_head_end(&h, true));
        assert_int_equal(h.head.method, of[i].method);
        assert_string_equal(h.head.url, "");
        http2_head_fini(&h);
    }
}

static void refused(struct http2_head *h, int status)
{
    assert_false(http2_head_end(h, true));
    assert_int_equal(h->error_status, status);
    assert_non_null(h->error_reason);
    http2_head_fini(h);
}

static void limits_are_those_of_http1(void **state)
{
    (void)state;
    struct http2_head h;
    static char path[HTTP1_MAX_URL_BYTES + 1];
    memset(path, '/', sizeof(path));
    http2_head_init(&h, false);
    http2_head_field(&h, ":path", 5, path, sizeof(path));
    refused(&h, 414);
    begin(&h, false);
    for (unsigned i = 0; i <= HTTP1_MAX_HEADERS; i++)
        field(&h, "a", "b");
    refused(&h, 431);
    begin(&h, true);
    for (unsigned i = 0; i < 4; i++)
        http2_head_field(&h, "a", 1, path, sizeof(path));
    assert_true(h.all.len < HTTP2_HEAD_BYTES);
    refused(&h, 431);
}

static void lengths_are_one_number(void **state)
{
    (void)state;
    static const char *const wrong[] = {"", "-1", "1 ", "1,1", "0x1", "99999999999999999999"};
    struct http2_head h;
    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
        begin(&h, false);
        field(&h, "content-length", wrong[i]);
        refused(&h, 400);
    }
    begin(&h, false);
    field(&h, "content-length", "1");
    field(&h, "content-length", "2");
    refused(&h, 400);
    begin(&h, false);
    field(&h, "inference-header-content-length", "1");
    field(&h, "inference-header-content-length", "1");
    refused(&h, 400);
}

static void long_values_are_cut(void **state)
{
    (void)state;
    struct http2_head h;
    char text[HTTP1_VALUE_BYTES + 1];
    memset(text, '1', sizeof(text));
    begin(&h, false);
    http2_head_field(&h, "inference-header-content-length", 31, text, sizeof(text));
    http2_head_field(&h, "content-encoding", 16, text, sizeof(text));
    assert_true(http2_head_end(&h, true));
    assert_true(h.head.tensor_header.cut);
    assert_int_equal(strlen(h.head.tensor_header.text), HTTP1_VALUE_BYTES - 1);
    assert_int_equal(h.head.content_coding, CODING_UNKNOWN);
    http2_head_fini(&h);
}

UNIT_MAIN(UNIT(a_head_is_as_of_http1), UNIT(who_asks_is_kept),
          UNIT(the_end_says_whether_a_body_follows), UNIT(bytes_of_a_path_are_those_of_http1),
          UNIT(methods_are_known), UNIT(limits_are_those_of_http1), UNIT(lengths_are_one_number),
          UNIT(long_values_are_cut))
