#include "http/live/live_http.h"

#include "base/err.h"
#include "codec/http1.h"
#include "http/api/http_api.h"
#include "http/api/http_route.h"
#include "http/http_exchange.h"
#include "http/http_shard.h"
#include "http/live/live_errors.h"
#include "http/live/live_files.h"
#include "http/live/live_numbers.h"
#include "metrics/front_metrics.h"
#include "server/server.h"
#include "server/worker.h"

#include <string.h>

enum live_route {
    LIVE_ROUTE_FILE = HTTP_ROUTE_COUNT, /* what all may see: it says nothing about the server */
    LIVE_ROUTE_NUMBERS,
    LIVE_ROUTE_ERRORS,
};

#define NUMBERS_PATH "/nereid/live"
#define ERRORS_PATH  "/nereid/errors"

/* The path of a request, without its query. Most requests are for models. */
static size_t live_path_len(const struct http1_head *head)
{
    const char *query = memchr(head->url, '?', head->url_len);
    return query ? (size_t)(query - head->url) : head->url_len;
}

static struct http_route live_http_route(const struct http_front *f, struct http1_head *head)
{
    if (head->url_len > 3 && memcmp(head->url, "/v2", 3) == 0)
        return http_api_service.route(f, head);
    size_t len = live_path_len(head);
    const struct live_file *file = live_files_find(head->url, len);
    if (file)
        return (struct http_route){.kind = LIVE_ROUTE_FILE};
    if (len == sizeof(NUMBERS_PATH) - 1 && memcmp(head->url, NUMBERS_PATH, len) == 0)
        return (struct http_route){.kind = LIVE_ROUTE_NUMBERS};
    if (len == sizeof(ERRORS_PATH) - 1 && memcmp(head->url, ERRORS_PATH, len) == 0)
        return (struct http_route){.kind = LIVE_ROUTE_ERRORS};
    return http_api_service.route(f, head);
}

static enum options_category live_http_category(const struct http_route *route)
{
    if (route->kind == LIVE_ROUTE_FILE)
        return OPTIONS_CATEGORY_OPEN;
    if (route->kind == LIVE_ROUTE_NUMBERS)
        return OPTIONS_CATEGORY_STATISTICS;
    if (route->kind == LIVE_ROUTE_ERRORS)
        return OPTIONS_CATEGORY_LOGGING;
    return http_api_service.category(route);
}

static struct err *live_http_admit(const struct http_front *f, const struct http1_head *head,
                                   const struct http_route *route, uint64_t *ret_max)
{
    *ret_max = 0;
    return route->kind < HTTP_ROUTE_COUNT ? http_api_service.admit(f, head, route, ret_max) : NULL;
}

/* The value of the query `model=...`, as sent. */
static struct http_route_part model_asked(const struct http1_head *head)
{
    static const char key[] = "?model=";
    size_t at = live_path_len(head), skip = sizeof(key) - 1;
    if (head->url_len - at < skip || memcmp(head->url + at, key, skip) != 0)
        return (struct http_route_part){0};
    return (struct http_route_part){(uint32_t)(at + skip), (uint32_t)(head->url_len - at - skip)};
}

static void live_http_serve(struct http_exchange *x, struct http_message *m)
{
    x->route = (uint8_t)m->route->kind;
    if (m->route->kind < HTTP_ROUTE_COUNT) {
        http_api_service.serve(x, m);
        return;
    }
    if (!http1_reads(m->head->method)) {
        http_exchange_fault(x, 405, "Method Not Allowed");
        return;
    }
    if (m->route->kind == LIVE_ROUTE_FILE) {
        live_files_answer(x, live_files_find(m->head->url, live_path_len(m->head)));
        return;
    }
    struct server *server = x->shard->front->server;
    struct http_route_part model = model_asked(m->head);
    size_t len;
    char *text = m->route->kind == LIVE_ROUTE_ERRORS
                     ? live_errors_new(server->recent, &len)
                     : live_numbers_new(server, &x->shard->worker->view, m->head->url + model.at,
                                        model.len, &len);
    x->extra = "Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n";
    http_exchange_text(x, 200, HTTP_JSON, text, len);
}

static const struct front_metrics_route routes[] = {
#define HTTP_ROUTE(kind, name, slot, methods, category, tells) [HTTP_ROUTE_##kind] = {name, slot},
#include "http/api/http_route.def"
    [LIVE_ROUTE_FILE] = {"page", -1},
    [LIVE_ROUTE_NUMBERS] = {"live_numbers", -1},
    [LIVE_ROUTE_ERRORS] = {"live_errors", -1},
};
static const struct front_metrics_kind metrics = {
    .protocol = "http", .routes = routes, .route_count = sizeof(routes) / sizeof(*routes)};

const struct http_service live_http_service = {
    .metrics = &metrics,
    .inference = true,
    .route = live_http_route,
    .category = live_http_category,
    .admit = live_http_admit,
    .tells = HTTP_ROUTE_TELLS | 1u << LIVE_ROUTE_FILE | 1u << LIVE_ROUTE_NUMBERS |
             1u << LIVE_ROUTE_ERRORS,
    .serve = live_http_serve,
};
