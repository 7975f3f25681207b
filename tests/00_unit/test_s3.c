/* cloud/provider/s3: what a store says of its region goes no further than a region may. */
#include "cloud/provider/kind.h"
#include "support/unit.h"
#include "cloud/web/call.h"
#include "cloud/web/module.h"

#include <stdlib.h>
#include <string.h>

static struct call_net net;
static void *site;

static int setup(void **state)
{
    (void)state;
    const struct cloud_abi *abi;
    setenv("AWS_ACCESS_KEY_ID", "key", 1);
    setenv("AWS_SECRET_ACCESS_KEY", "secret", 1);
    static const char *const unwanted[] = {
        "AWS_REGION",  "AWS_DEFAULT_REGION",           "AWS_ENDPOINT_URL",    "AWS_ENDPOINT_URL_S3",
        "AWS_PROFILE", "TRITON_CLOUD_CREDENTIAL_PATH", "NEREID_S3_ADDRESSING"};
    for (size_t i = 0; i < sizeof(unwanted) / sizeof(unwanted[0]); i++)
        unsetenv(unwanted[i]);
    setenv("AWS_CONFIG_FILE", "/dev/null", 1);
    unit_succeeds(module_get(&abi));
    call_net_init(&net, abi, TIME_S(1), NULL);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    call_net_fini(&net);
    return 0;
}

static void expect_host(const char *host)
{
    struct call_request r = {.method = "GET"};
    unit_succeeds(s3_kind.list(site, NULL, NULL, NULL, &r));
    assert_null(r.bad);
    assert_memory_equal(strbuf_str(&r.url), host, strlen(host));
    call_request_fini(&r);
}

static bool redirects(const char *region)
{
    struct call_answer a = {.status = 301};
    strbuf_printf(&a.headers, "x-amz-bucket-region: %s\n", region);
    bool again = s3_kind.renew(site, &a);
    strbuf_fini(&a.headers);
    return again;
}

static void regions_of_answers(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "",
        "evil.example/x?",
        "eu.west",
        "eu@x",
        "a:80",
        "a b",
        "x#",
        "\\",
        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"};
    unit_succeeds(s3_kind.open("s3://bucket/models", &net, &site));
    expect_host("https://bucket.s3.us-east-1.amazonaws.com/");
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_false(redirects(bad[i]));
        expect_host("https://bucket.s3.us-east-1.amazonaws.com/");
    }
    assert_true(redirects("eu-west-1"));
    expect_host("https://bucket.s3.eu-west-1.amazonaws.com/");
    assert_false(redirects("eu-west-1"));
    s3_kind.close(site);
}

static void regions_of_settings(void **state)
{
    (void)state;
    setenv("AWS_REGION", "evil.example/x", 1);
    unit_fails(s3_kind.open("s3://bucket/models", &net, &site), STATUS_INVALID_ARG,
               "expected a region of letters");
    unsetenv("AWS_REGION");
}

static void lines_that_cannot_be_sent(void **state)
{
    (void)state;
    struct call_request r = {.method = "GET"};
    char *long_one = calloc(1, CALL_MAX_LINE_BYTES + 1);
    memset(long_one, 'x', CALL_MAX_LINE_BYTES);
    long_one[20000] = '\0';
    call_header(&r, "Authorization: Bearer %s", long_one);
    assert_null(r.bad);
    assert_int_equal(strlen(r.headers[0]), 20000 + strlen("Authorization: Bearer "));
    long_one[20000] = 'x';
    call_header(&r, "Authorization: Bearer %s", long_one);
    unit_fails(r.bad, STATUS_INVALID_ARG, "'Authorization' has 65558 bytes");
    r.bad = NULL;
    call_header(&r, "A: b\r\nc: d");
    unit_fails(r.bad, STATUS_INVALID_ARG, "'A' holds the end of a line");
    r.bad = NULL;
    while (!r.bad)
        call_header(&r, "B: c");
    assert_int_equal(r.header_count, CALL_MAX_HEADERS);
    free(long_one);
    call_request_fini(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(regions_of_answers),
        cmocka_unit_test(regions_of_settings),
        cmocka_unit_test(lines_that_cannot_be_sent),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
