/* cloud/provider/sigv4: the test suite of Signature Version 4 and the examples of the S3
 * documentation. */
#include "cloud/provider/sigv4.h"

#include "support/unit.h"
#include "cloud/web/module.h"

#include <stdio.h>
#include <string.h>

#define EMPTY "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

static const struct cloud_abi *abi;

/* The suite: one key, one time, a service called "service". */
static const struct sigv4_key suite_key = {"AKIDEXAMPLE",
                                           "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"};

struct vector {
    const char *name;
    const char *method;
    const char *path;
    struct sigv4_pair query[4];
    struct sigv4_pair headers[5];
    const char *signed_headers;
    const char *signature;
};

#define HOST                            \
    {                                   \
        "Host", "example.amazonaws.com" \
    }
#define DATE                             \
    {                                    \
        "X-Amz-Date", "20150830T123600Z" \
    }

static const struct vector suite[] = {
    {"get-vanilla",
     "GET",
     "/",
     {{0}},
     {HOST, DATE},
     "host;x-amz-date",
     "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"},
    {"get-vanilla-query-order-key-case",
     "GET",
     "/",
     {{"Param2", "value2"}, {"Param1", "value1"}},
     {HOST, DATE},
     "host;x-amz-date",
     "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500"},
    {"get-vanilla-empty-query-key",
     "GET",
     "/",
     {{"Param1", "value1"}},
     {HOST, DATE},
     "host;x-amz-date",
     "a67d582fa61cc504c4bae71f336f98b97f1ea3c7a6bfe1b6e45aec72011b9aeb"},
    {"get-vanilla-utf8-query",
     "GET",
     "/",
     {{"\xe1\x88\xb4", "bar"}},
     {HOST, DATE},
     "host;x-amz-date",
     "2cdec8eed098649ff3a119c94853b13c643bcf08f8b0a1d91e12c9027818dd04"},
    {"get-utf8",
     "GET",
     "/%E1%88%B4",
     {{0}},
     {HOST, DATE},
     "host;x-amz-date",
     "8318018e0b0f223aa2bbf98705b62bb787dc9c0e678f255a891fd03141be5d85"},
    {"post-vanilla",
     "POST",
     "/",
     {{0}},
     {HOST, DATE},
     "host;x-amz-date",
     "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b"},
    {"get-header-value-trim",
     "GET",
     "/",
     {{0}},
     {HOST, {"My-Header1", " value1"}, {"My-Header2", " \"a   b   c\""}, DATE},
     "host;my-header1;my-header2;x-amz-date",
     "acc3ed3afb60bb290fc8d2dd0098b9911fcaa05412b367055dee359757a9c736"},
};

static size_t count_of(const struct sigv4_pair *pairs, size_t max)
{
    size_t n = 0;
    while (n < max && pairs[n].name)
        n++;
    return n;
}

static void the_suite(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(suite) / sizeof(suite[0]); i++) {
        const struct vector *v = &suite[i];
        const struct sigv4_request r = {.method = v->method,
                                        .path = v->path,
                                        .query = v->query,
                                        .query_count = count_of(v->query, 4),
                                        .headers = v->headers,
                                        .header_count = count_of(v->headers, 5),
                                        .payload_hash = EMPTY,
                                        .region = "us-east-1",
                                        .service = "service",
                                        .date = "20150830T123600Z"};
        struct strbuf expected = STRBUF_INIT;
        struct strbuf found = STRBUF_INIT;
        strbuf_printf(&expected,
                      "AWS4-HMAC-SHA256 "
                      "Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, "
                      "SignedHeaders=%s, Signature=%s",
                      v->signed_headers, v->signature);
        sigv4_authorization(abi, &r, &suite_key, &found);
        if (strcmp(strbuf_str(&found), strbuf_str(&expected)) != 0)
            fail_msg("%s: %s", v->name, strbuf_str(&found));
        strbuf_fini(&found);
        strbuf_fini(&expected);
    }
}

static void check_s3(const struct sigv4_request *given, const char *signature)
{
    const struct sigv4_key key = {"AKIAIOSFODNN7EXAMPLE",
                                  "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"};
    struct sigv4_request r = *given;
    r.payload_hash = r.payload_hash ? r.payload_hash : EMPTY;
    r.region = "us-east-1";
    r.service = "s3";
    r.date = "20130524T000000Z";
    struct strbuf found = STRBUF_INIT;
    sigv4_authorization(abi, &r, &key, &found);
    assert_string_equal(strstr(strbuf_str(&found), "Signature=") + 10, signature);
    strbuf_fini(&found);
}

static void the_examples_of_s3(void **state)
{
    (void)state;
    const struct sigv4_pair get[] = {{"host", "examplebucket.s3.amazonaws.com"},
                                     {"range", "bytes=0-9"},
                                     {"x-amz-content-sha256", EMPTY},
                                     {"x-amz-date", "20130524T000000Z"}};
    check_s3(
        &(struct sigv4_request){
            .method = "GET", .path = "/test.txt", .headers = get, .header_count = 4},
        "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41");
    static const char body[] = "44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072";
    const struct sigv4_pair put[] = {{"x-amz-date", "20130524T000000Z"},
                                     {"x-amz-storage-class", "REDUCED_REDUNDANCY"},
                                     {"Host", "examplebucket.s3.amazonaws.com"},
                                     {"Date", "Fri, 24 May 2013 00:00:00 GMT"},
                                     {"x-amz-content-sha256", body}};
    check_s3(&(struct sigv4_request){.method = "PUT",
                                     .path = "/test%24file.text",
                                     .payload_hash = body,
                                     .headers = put,
                                     .header_count = 5},
             "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd");
    const struct sigv4_pair plain[] = {{"host", "examplebucket.s3.amazonaws.com"},
                                       {"x-amz-content-sha256", EMPTY},
                                       {"x-amz-date", "20130524T000000Z"}};
    const struct sigv4_pair life[] = {{"lifecycle", ""}};
    check_s3(&(struct sigv4_request){.method = "GET",
                                     .path = "/",
                                     .query = life,
                                     .query_count = 1,
                                     .headers = plain,
                                     .header_count = 3},
             "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543");
    const struct sigv4_pair list[] = {{"prefix", "J"}, {"max-keys", "2"}};
    check_s3(&(struct sigv4_request){.method = "GET",
                                     .path = "/",
                                     .query = list,
                                     .query_count = 2,
                                     .headers = plain,
                                     .header_count = 3},
             "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7");
}

static void dates(void **state)
{
    (void)state;
    char date[SIGV4_DATE_CHARS + 1];
    sigv4_date(UINT64_C(1369353600) * 1000000000u, date);
    assert_string_equal(date, "20130524T000000Z");
}

int main(void)
{
    struct err *e = module_get(&abi);
    if (e) {
        fprintf(stderr, "%s\n", err_message(e));
        err_free(e);
        return 1;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_suite),
        cmocka_unit_test(the_examples_of_s3),
        cmocka_unit_test(dates),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
