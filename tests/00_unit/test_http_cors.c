/* http/http_cors: which requests of pages are refused. */
#include "http/http_cors.h"

#include "codec/http1.h"

#include "support/unit.h"

#include <stdio.h>
#include <string.h>

struct asked {
    const char *method;
    const char *lines; /* besides Host */
    bool refused;      /* where the origin is not allowed */
};

static bool asks(const struct http_cors *c, const struct asked *a)
{
    char text[512];
    int len = snprintf(text, sizeof(text), "%s / HTTP/1.1\r\nHost: [::1]:8000\r\n%s\r\n", a->method,
                       a->lines);
    struct http1_parser p;
    http1_init(&p, NULL, NULL);
    if (c)
        http1_collect(&p);
    size_t used;
    assert_int_equal(http1_parse(&p, text, (size_t)len, &used), HTTP1_HEAD);
    bool refused = http_cors_refuses(c, &p.head);
    http1_fini(&p);
    return refused;
}

#define EVIL "Origin: https://evil.example\r\n"
#define GOOD "Origin: https://app.example\r\n"
#define OWN  "Origin: http://[::1]:8000\r\n"

static void pages_of_other_origins_are_refused(void **state)
{
    (void)state;
    static const struct asked all[] = {
        {"POST", "", false},
        {"POST", "Origin: \r\nSec-Fetch-Site: \r\n", false},
        {"POST", "Sec-Fetch-Mode: cors\r\n", false}, /* of a program that has fetch() */
        {"POST", EVIL, true},
        {"DELETE", EVIL, true},
        {"PUT", EVIL, true},
        {"GET", EVIL, false},
        {"HEAD", EVIL "Sec-Fetch-Site: cross-site\r\n", false},
        {"OPTIONS", EVIL, false},
        {"POST", "Origin: null\r\n", true},
        {"POST", "Origin: [::1]:8000\r\n", true},
        {"POST", OWN, false},
        {"POST", "Origin: https://[::1]:8000\r\n", false}, /* a proxy speaks TLS */
        {"POST", "Origin: http://[::1]:80\r\n", true},
        {"POST", "Origin: http://[::1]\r\n", true},
        {"POST", "Origin: http://[::1]:8000.evil.example\r\n", true},
        {"POST", "Origin: http://evil.example/[::1]:8000\r\n", true},
        {"POST", EVIL "Sec-Fetch-Site: same-origin\r\n", false}, /* a proxy changed Host */
        {"POST", "Sec-Fetch-Site: none\r\n", false},
        {"POST", "Sec-Fetch-Site: cross-site\r\n", true},
        {"POST", "sec-fetch-site: same-site\r\n" OWN, true},
        {"POST", OWN "Sec-Fetch-Site: Same-Origin\r\n", true},
        {"POST", GOOD, true},
    };
    static const char *const listed[] = {"http://localhost:3000", "https://app.example"};
    static const char *const every[] = {"*"};
    struct http_cors *some = http_cors_new(listed, 2);
    struct http_cors *any = http_cors_new(every, 1);
    for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
        assert_int_equal(asks(NULL, &all[i]), all[i].refused);
        assert_int_equal(asks(some, &all[i]), all[i].refused && !strstr(all[i].lines, GOOD));
        assert_false(asks(any, &all[i]));
    }
    assert_false(asks(some, &(struct asked){"POST", GOOD "Sec-Fetch-Site: cross-site\r\n", 0}));
    http_cors_free(some);
    http_cors_free(any);
}

static void a_head_without_host_is_of_no_origin(void **state)
{
    (void)state;
    struct http1_head head = {.method = HTTP1_POST, .browser = true};
    static const char origin[] = "Origin\0http://\0";
    head.headers = origin;
    head.headers_len = sizeof(origin) - 1;
    assert_true(http_cors_refuses(NULL, &head));
}

UNIT_MAIN(UNIT(pages_of_other_origins_are_refused), UNIT(a_head_without_host_is_of_no_origin))
