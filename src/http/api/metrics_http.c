#include "http/api/metrics_http.h"

#include "http/api/http_route.h"
#include "http/http_exchange.h"
#include "http/http_shard.h"
#include "server/control/describe.h"

#include <string.h>

static struct err *metrics_http_admit(const struct http_front *f, const struct http1_head *head,
                                      const struct http_route *route, uint64_t *ret_max)
{
    (void)f;
    (void)head;
    (void)route;
    *ret_max = 0;
    return NULL;
}

static bool is_metrics(const struct http1_head *h)
{
    const char *query = memchr(h->url, '?', h->url_len);
    size_t len = query ? (size_t)(query - h->url) : h->url_len;
    return (len == 8 || len == 9) && memcmp(h->url, "/metrics/", len) == 0;
}

static struct http_route metrics_http_route(const struct http_front *f, struct http1_head *head)
{
    (void)f;
    return (struct http_route){.kind = is_metrics(head)};
}

static enum options_category metrics_http_category(const struct http_route *route)
{
    return route->kind ? OPTIONS_CATEGORY_METRICS : OPTIONS_CATEGORY_NONE;
}

void metrics_http_page(struct http_exchange *x)
{
    size_t len;
    char *page = describe_metrics(x->shard->front->server, &x->shard->worker->view, &len);
    http_exchange_text(x, 200, "text/plain; charset=utf-8", page, len);
}

static void metrics_http_serve(struct http_exchange *x, struct http_message *m)
{
    if (!m->route->kind) {
        http_exchange_fault(x, 404, "Not Found");
        return;
    }
    if (!http1_reads(m->head->method)) {
        http_exchange_fault(x, 405, "Method Not Allowed");
        return;
    }
    x->route = (uint8_t)m->route->kind;
    metrics_http_page(x);
}

static const struct front_metrics_route routes[] = {{"other", -1}, {"metrics", -1}};
static const struct front_metrics_kind kind = {
    .protocol = "metrics", .routes = routes, .route_count = sizeof(routes) / sizeof(*routes)};

const struct http_service metrics_http_service = {.metrics = &kind,
                                                  .route = metrics_http_route,
                                                  .category = metrics_http_category,
                                                  .admit = metrics_http_admit,
                                                  .tells = 1u << 1,
                                                  .serve = metrics_http_serve};
