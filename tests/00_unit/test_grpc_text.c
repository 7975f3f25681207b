/* codec/grpc_text: time-outs, messages and content types as gRPC's HTTP/2 mapping writes them. */
#include "codec/grpc_text.h"

#include "support/unit.h"

#include <string.h>

static void timeouts(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        time_ns ns;
    } good[] = {
        {"1n", 1},
        {"5u", 5000},
        {"20m", TIME_MS(20)},
        {"3S", TIME_S(3)},
        {"2M", TIME_S(120)},
        {"1H", TIME_S(3600)},
        {"87599H", TIME_S(3600) * 87599u},
        {"87601H", GRPC_TEXT_MAX_TIMEOUT},
        {"5124096H", GRPC_TEXT_MAX_TIMEOUT}, /* in ns just over 64 bits */
        {"99999999M", GRPC_TEXT_MAX_TIMEOUT},
        {"99999999H", GRPC_TEXT_MAX_TIMEOUT},
        {"0S", 0},
    };
    for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++) {
        time_ns ns = 7;
        assert_true(grpc_text_timeout(good[i].text, strlen(good[i].text), &ns));
        assert_true(ns == good[i].ns);
    }
    static const char *const bad[] = {"",    "S",          "1",    "1s", "-1S",
                                      "1 S", "123456789S", "1.5S", "S1", "0x1S"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        time_ns ns = 7;
        assert_false(grpc_text_timeout(bad[i], strlen(bad[i]), &ns));
        assert_true(ns == 7);
    }
}

static void encodes(const char *message, const char *expected)
{
    char to[100];
    size_t n = grpc_text_encode(message, to, sizeof(to));
    assert_int_equal(n, strlen(expected));
    assert_memory_equal(to, expected, n);
}

static void messages(void **state)
{
    (void)state;
    encodes("", "");
    encodes("plain text, 'quoted' ~", "plain text, 'quoted' ~");
    encodes("100%", "100%25");
    encodes("a\nb\x7f", "a%0Ab%7F");
    encodes("ü", "%C3%BC");
    encodes(" got [3]. ", "%20got [3].%20");
    encodes(" ", "%20");
    encodes("\xff", "%FF");
}

static void decodes(const char *text, const char *expected)
{
    char to[64];
    size_t n = grpc_text_decode(text, to, sizeof(to));
    assert_int_equal(n, strlen(expected));
    assert_memory_equal(to, expected, n);
}

static void messages_that_came(void **state)
{
    (void)state;
    char to[2];
    decodes("", "");
    decodes("plain", "plain");
    decodes("100%25 %C3%bc%0A", "100% ü\n");
    decodes("%", "%");
    decodes("%4", "%4");
    decodes("%zz%4g", "%zz%4g");
    assert_int_equal(grpc_text_decode("%41BC", to, sizeof(to)), 2);
    assert_memory_equal(to, "AB", 2);
}

static void messages_are_cut_between_characters(void **state)
{
    (void)state;
    char to[100];
    assert_int_equal(grpc_text_encode("aü", to, 7), 7);
    assert_int_equal(grpc_text_encode("aü", to, 6), 1);
    assert_int_equal(grpc_text_encode("abc", to, 2), 2);
    assert_int_equal(grpc_text_encode("abc", to, 0), 0);
    assert_int_equal(grpc_text_encode("模", to, 8), 0);
}

static void content_types(void **state)
{
    (void)state;
    static const char *const good[] = {"application/grpc", "application/grpc+proto",
                                       "application/grpc; charset=utf-8",
                                       "application/grpc+proto;x"};
    static const char *const bad[] = {"",
                                      "application/json",
                                      "application/grpc-web",
                                      "application/grpc+json",
                                      "application/grpcx",
                                      "text/application/grpc"};
    for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++)
        assert_true(grpc_text_is_grpc(good[i], strlen(good[i])));
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
        assert_false(grpc_text_is_grpc(bad[i], strlen(bad[i])));
}

static void codings(void **state)
{
    (void)state;
    assert_int_equal(grpc_text_coding("identity", 8), CODING_IDENTITY);
    assert_int_equal(grpc_text_coding("gzip", 4), CODING_GZIP);
    assert_int_equal(grpc_text_coding("deflate", 7), CODING_DEFLATE);
    assert_int_equal(grpc_text_coding("deflate, gzip", 7), CODING_DEFLATE);
    assert_int_equal(grpc_text_coding("deflate, gzip", 8), CODING_UNKNOWN);
    assert_int_equal(grpc_text_coding("snappy", 6), CODING_UNKNOWN);
    assert_int_equal(grpc_text_coding("", 0), CODING_IDENTITY);
    assert_int_equal(grpc_text_coding("GZIP", 4), CODING_UNKNOWN);
    assert_int_equal(grpc_text_coding("zstd", 4), CODING_UNKNOWN);
}

UNIT_MAIN(UNIT(timeouts), UNIT(messages), UNIT(messages_that_came),
          UNIT(messages_are_cut_between_characters), UNIT(content_types), UNIT(codings))
