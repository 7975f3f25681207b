/* cloud/web/url, cloud/web/text, cloud/provider/ini: paths of repositories, escapes, files of
 * `aws configure`. */
#include "cloud/web/url.h"

#include "base/mem.h"
#include "cloud/provider/ini.h"
#include "support/unit.h"
#include "cloud/web/text.h"

#include <string.h>

/* MR-08, MR-09, X-01. */
static void parses(void **state)
{
    (void)state;
    static const struct {
        const char *rest;
        const char *endpoint;
        const char *bucket;
        const char *prefix;
    } good[] = {
        {"bucket", NULL, "bucket", ""},
        {"bucket/", NULL, "bucket", ""},
        {"bucket/a//b/", NULL, "bucket", "a/b/"},
        {"host:9000/bucket/a", "http://host:9000", "bucket", "a/"},
        {"http://host/bucket", "http://host", "bucket", ""},
        {"https://h.x:443//bucket/a", "https://h.x:443", "bucket", "a/"},
        {"[::1]:9000/bucket", "http://[::1]:9000", "bucket", ""},
    };
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        struct url_parts p;
        unit_succeeds(url_parse(good[i].rest, good[i].rest, &p));
        if (good[i].endpoint)
            assert_string_equal(p.endpoint, good[i].endpoint);
        else
            assert_null(p.endpoint);
        assert_string_equal(p.bucket, good[i].bucket);
        assert_string_equal(p.prefix, good[i].prefix);
        url_parts_fini(&p);
    }
    static const char *const bad[] = {"",          "/",          "host:1/",       "host:0/b",
                                      "h:65536/b", "http:///b",  "h:x/b",         "ho st:80/b",
                                      "h:/b",      "[::1:80/b/", "https://h:80/", "h:123456/b"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct url_parts p;
        unit_fails(url_parse(bad[i], bad[i], &p), STATUS_INVALID_ARG, "model repository '");
    }
}

static void escapes(void **state)
{
    (void)state;
    struct strbuf sb = STRBUF_INIT;
    url_escape(&sb, "a/b ~-._+%\xc3\xa9", 12, true);
    assert_string_equal(strbuf_str(&sb), "a/b%20~-._%2B%25%C3%A9");
    strbuf_fini(&sb);
    url_escape(&sb, "a/b", 3, false);
    assert_string_equal(strbuf_str(&sb), "a%2Fb");
    strbuf_fini(&sb);
    static const struct {
        const char *text;
        bool plus;
        const char *result;
    } cases[] = {{"a%20b+c", true, "a b c"},
                 {"a%20b+c", false, "a b+c"},
                 {"%2e%2E/%", false, "../%"},
                 {"%zz%4", false, "%zz%4"},
                 {"", true, ""}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char *text = mem_strdup(cases[i].text);
        text[url_unescape(text, strlen(text), cases[i].plus)] = '\0';
        assert_string_equal(text, cases[i].result);
        mem_free(text);
    }
}

static void what_everybody_may_read(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"http://h:1/p", "http://h:1/p"},
        {"https://me:se@same@h/p@q?token=x", "https://h/p@q"},
        {"http://me@h", "http://h"},
        {"http://h?a=me@h", "http://h"},
        {"me:sesame@h", "h"},
        {"", ""},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct strbuf sb = STRBUF_INIT;
        url_for_all(&sb, cases[i][0]);
        assert_string_equal(strbuf_str(&sb), cases[i][1]);
        strbuf_fini(&sb);
    }
}

static void bytes_as_text(void **state)
{
    (void)state;
    static const char *const vectors[][3] = {{"", "", ""},
                                             {"f", "Zg==", "Zg"},
                                             {"fo", "Zm8=", "Zm8"},
                                             {"foo", "Zm9v", "Zm9v"},
                                             {"foobar", "Zm9vYmFy", "Zm9vYmFy"},
                                             {"\xfb\xff\xfe", "+//+", "-__-"}};
    for (size_t i = 0; i < sizeof(vectors) / sizeof(vectors[0]); i++)
        for (int url = 0; url < 2; url++) {
            struct strbuf sb = STRBUF_INIT;
            text_base64(&sb, vectors[i][0], strlen(vectors[i][0]), url);
            assert_string_equal(strbuf_str(&sb), vectors[i][1 + url]);
            strbuf_fini(&sb);
        }
    struct strbuf sb = STRBUF_INIT;
    text_hex(&sb, "\x00\x7f\xff", 3);
    assert_string_equal(strbuf_str(&sb), "007fff");
    strbuf_fini(&sb);
}

static const char file[] = "# comment\n"
                           "loose = 1\n"
                           "[default]\r\n"
                           "key = first\r\n"
                           "key=second \r\n"
                           "s3 =\n"
                           "  key = nested\n"
                           "; other comment\n"
                           "[ profile   two ]\n"
                           "key = a = b\n"
                           "empty =\n"
                           "[profile three";

static void check_ini(const char *section, const char *name, const char *expected)
{
    char *found = ini_find(file, section, name);
    if (expected)
        assert_string_equal(found, expected);
    else
        assert_null(found);
    mem_free(found);
}

/* reads MR-10. */
static void finds_in_sections(void **state)
{
    (void)state;
    check_ini("default", "key", "second");
    check_ini("default", "loose", NULL);
    check_ini("default", NULL, "");
    check_ini("profile two", "key", "a = b");
    check_ini("profile two", "empty", "");
    check_ini("profile three", NULL, NULL);
    check_ini("two", "key", NULL);
    check_ini("nobody", NULL, NULL);
}

UNIT_MAIN(UNIT(parses), UNIT(escapes), UNIT(what_everybody_may_read), UNIT(bytes_as_text),
          UNIT(finds_in_sections))
