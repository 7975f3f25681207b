/* Paths of the HTTP protocol: what each means, and what means nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "http/api/http_route.h"

struct expectation {
    const char *target;
    enum http_route_kind kind;
    const char *model;
    const char *version;
    const char *repository;
};

static void assert_part(struct http_route_part part, const char *expected, const char *target)
{
    size_t len = expected ? strlen(expected) : 0;
    if (part.len != len || (len && memcmp(target + part.at, expected, len) != 0))
        fail_msg("%s: '%.*s' instead of '%s'", target, (int)part.len, target + part.at,
                 expected ? expected : "");
}

static void paths_have_their_meaning(void **state)
{
    (void)state;
    static const struct expectation cases[] = {
        {"/v2", HTTP_ROUTE_SERVER, NULL, NULL, NULL},
        {"/v2?a=b", HTTP_ROUTE_SERVER, NULL, NULL, NULL},
        {"/v2/health/live", HTTP_ROUTE_LIVE, NULL, NULL, NULL},
        {"/v2/health/ready?x", HTTP_ROUTE_READY, NULL, NULL, NULL},
        {"/v2/models/stats", HTTP_ROUTE_ALL_STATS, NULL, NULL, NULL},
        {"/v2/models/stats/stats", HTTP_ROUTE_MODEL_STATS, "stats", NULL, NULL},
        {"/v2/models/m", HTTP_ROUTE_MODEL, "m", NULL, NULL},
        {"/v2/models/a%20b", HTTP_ROUTE_MODEL, "a%20b", NULL, NULL},
        {"/v2/models/m/versions/12", HTTP_ROUTE_MODEL, "m", "12", NULL},
        {"/v2/models/m/infer", HTTP_ROUTE_MODEL_INFER, "m", NULL, NULL},
        {"/v2/models/m/versions/1/infer?q", HTTP_ROUTE_MODEL_INFER, "m", "1", NULL},
        {"/v2/models/m/ready", HTTP_ROUTE_MODEL_READY, "m", NULL, NULL},
        {"/v2/models/m/config", HTTP_ROUTE_MODEL_CONFIG, "m", NULL, NULL},
        {"/v2/models/m/versions/3/stats", HTTP_ROUTE_MODEL_STATS, "m", "3", NULL},
        {"/v2/models/m/generate", HTTP_ROUTE_MODEL_GENERATE, "m", NULL, NULL},
        {"/v2/models/m/generate_stream", HTTP_ROUTE_MODEL_GENERATE_STREAM, "m", NULL, NULL},
        {"/v2/models/m/trace/setting", HTTP_ROUTE_MODEL_TRACE, "m", NULL, NULL},
        {"/v2/repository/index", HTTP_ROUTE_INDEX, NULL, NULL, NULL},
        {"/v2/repository/r/index", HTTP_ROUTE_INDEX, NULL, NULL, "r"},
        {"/v2/repository/index/index", HTTP_ROUTE_INDEX, NULL, NULL, "index"},
        {"/v2/repository/models/m/load", HTTP_ROUTE_CONTROL, "m", NULL, NULL},
        {"/v2/repository/r/models/m/unload", HTTP_ROUTE_CONTROL, "m", NULL, "r"},
        {"/v2/systemsharedmemory/status", HTTP_ROUTE_SHARED_MEMORY, NULL, NULL, NULL},
        {"/v2/cudasharedmemory/region/x/register", HTTP_ROUTE_SHARED_MEMORY, NULL, NULL, NULL},
        {"/v2/trace/setting", HTTP_ROUTE_TRACE, NULL, NULL, NULL},
        {"/v2/logging", HTTP_ROUTE_LOGGING, NULL, NULL, NULL},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct http_route r = http_route_find(cases[i].target, strlen(cases[i].target));
        if (r.kind != cases[i].kind)
            fail_msg("%s is taken as %u", cases[i].target, r.kind);
        assert_int_equal(r.status,
                         r.kind == HTTP_ROUTE_SHARED_MEMORY && strstr(cases[i].target, "status"));
        assert_int_equal(r.cuda, strstr(cases[i].target, "/v2/cuda") != NULL);
        if (strstr(cases[i].target, "/region/"))
            assert_part(r.region, "x", cases[i].target);
        assert_part(r.model, cases[i].model, cases[i].target);
        assert_part(r.version, cases[i].version, cases[i].target);
        assert_part(r.repository, cases[i].repository, cases[i].target);
    }
}

static void other_paths_mean_nothing(void **state)
{
    (void)state;
    static const char *const cases[] = {
        "",
        "*",
        "/",
        "/v2/",
        "/v1",
        "/v22",
        "v2",
        "//v2",
        "/v2#x",
        "/v2/health",
        "/v2/health/live/",
        "/v2/h%65alth/live",
        "/v2/models",
        "/v2/models/",
        "/v2/models//infer",
        "/v2/models/m/",
        "/v2/models/m/infer/",
        "/v2/models/m/other",
        "/v2/models/m/versions",
        "/v2/models/m/versions/",
        "/v2/models/m/versions/x",
        "/v2/models/m/versions/1x/infer",
        "/v2/models/m/versions/-1",
        "/v2/models/m/versions/1/trace/setting",
        "/v2/repository",
        "/v2/repository/r",
        "/v2/repository/r/s/index",
        "/v2/repository/models/m",
        "/v2/repository/models/m/other",
        "/v2/systemsharedmemory",
        "/v2/systemsharedmemory/region/status",
        "/v2/systemsharedmemory/region//status",
        "/metrics",
        "http://host",
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
        if (http_route_find(cases[i], strlen(cases[i])).kind != HTTP_ROUTE_NONE)
            fail_msg("%s has a meaning", cases[i]);
}

/* What lies behind the end makes no difference; and none of it is read, as the instrumented
 * build would tell. */
static void cut_paths_are_read_within_their_bounds(void **state)
{
    (void)state;
    static const char whole[] = "/v2/repository/r/models/m/versions/1/trace/setting";
    for (size_t len = 0; len < sizeof(whole); len++) {
        char *exact = malloc(len + !len);
        memcpy(exact, whole, len);
        struct http_route cut = http_route_find(exact, len);
        struct http_route goes_on = http_route_find(whole, len);
        assert_int_equal(cut.kind, goes_on.kind);
        assert_int_equal(cut.model.len, goes_on.model.len);
        assert_int_equal(cut.version.len, goes_on.version.len);
        assert_int_equal(cut.repository.len, goes_on.repository.len);
        free(exact);
    }
}

/* The path of an operation with something for each {name}. */
static void fill(char *to, const char *path)
{
    while (*path) {
        if (*path != '{') {
            *to++ = *path++;
            continue;
        }
        *to++ = '1';
        path += strcspn(path, "}") + 1;
    }
    *to = '\0';
}

static void operations_are_routes(void **state)
{
    (void)state;
    static const struct {
        enum http_route_kind kind;
        const char *path;
    } operations[] = {
#define HTTP_OPERATION(kind, method, path, id, summary, request, yes, no) {HTTP_ROUTE_##kind, path},
#include "http/api/http_route.def"
    };
    unsigned seen = 1u << HTTP_ROUTE_NONE, all = 0;
    for (size_t i = 0; i < sizeof(operations) / sizeof(*operations); i++) {
        char target[256];
        fill(target, operations[i].path);
        if (http_route_find(target, strlen(target)).kind != operations[i].kind)
            fail_msg("%s is another route", target);
        seen |= 1u << operations[i].kind;
    }
#define HTTP_ROUTE(kind, name, slot, methods, category, tells) all |= 1u << HTTP_ROUTE_##kind;
#include "http/api/http_route.def"
    assert_int_equal(seen, all);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(paths_have_their_meaning),
        cmocka_unit_test(other_paths_mean_nothing),
        cmocka_unit_test(cut_paths_are_read_within_their_bounds),
        cmocka_unit_test(operations_are_routes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
