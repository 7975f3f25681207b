/* cloud/provider/azure_key: the string to sign, as the description of Shared Key builds it. */
#include "cloud/provider/azure_key.h"

#include "support/unit.h"

static void a_listing(void **state)
{
    (void)state;
    const struct azure_key_pair headers[] = {{"x-ms-date", "Fri, 26 Jun 2015 23:39:12 GMT"},
                                             {"x-ms-version", "2015-02-21"}};
    const struct azure_key_pair query[] = {
        {"comp", "list"}, {"prefix", "a b/"}, {"restype", "container"}};
    struct strbuf sb = STRBUF_INIT;
    azure_key_to_sign(&(struct azure_key_request){.account = "myaccount",
                                                  .path = "/mycontainer",
                                                  .query = query,
                                                  .query_count = 3,
                                                  .headers = headers,
                                                  .header_count = 2,
                                                  .if_match = "",
                                                  .range = ""},
                      &sb);
    assert_string_equal(strbuf_str(&sb), "GET\n\n\n\n\n\n\n\n\n\n\n\n"
                                         "x-ms-date:Fri, 26 Jun 2015 23:39:12 GMT\n"
                                         "x-ms-version:2015-02-21\n"
                                         "/myaccount/mycontainer\ncomp:list\nprefix:a b/\n"
                                         "restype:container");
    strbuf_fini(&sb);
}

static void a_range(void **state)
{
    (void)state;
    struct strbuf sb = STRBUF_INIT;
    azure_key_to_sign(
        &(struct azure_key_request){
            .account = "a", .path = "/c/b%20x", .if_match = "\"0x1\"", .range = "bytes=0-9"},
        &sb);
    assert_string_equal(strbuf_str(&sb), "GET\n\n\n\n\n\n\n\n\"0x1\"\n\n\nbytes=0-9\n/a/c/b%20x");
    strbuf_fini(&sb);
}

UNIT_MAIN(UNIT(a_listing), UNIT(a_range))
