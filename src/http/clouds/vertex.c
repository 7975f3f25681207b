#include "http/clouds/vertex.h"

#include "base/err.h"
#include "base/mem.h"
#include "codec/http1.h"
#include "http/api/http_api.h"
#include "http/api/metrics_http.h"
#include "http/clouds/clouds.h"
#include "http/http_exchange.h"
#include "http/http_shard.h"
#include "serve/table.h"
#include "server/server.h"

#include <stdatomic.h>
#include <string.h>

#define SIZE_TYPE "application/vnd.vertex-ai-triton.binary+json;json-header-size="

enum vertex_route {
    VERTEX_ROUTE_UNKNOWN = HTTP_ROUTE_COUNT,
    VERTEX_ROUTE_NOT_POST, /* sent to another route, with another method than POST */
    VERTEX_ROUTE_BLOCKED,  /* a route that nobody is sent to */
    VERTEX_ROUTE_EARLY,    /* the model is not chosen yet */
    VERTEX_ROUTE_METRICS,
};

struct vertex {
    struct clouds_target target;
    atomic_bool settled; /* released after `target` was set, acquired before it is read */
};

static void vertex_open(struct http_front *f)
{
    f->own = MEM_NEW(struct vertex);
}

static void vertex_close(struct http_front *f)
{
    struct vertex *v = f->own;
    clouds_target_fini(&v->target);
    mem_free(v);
}

static bool vertex_serves(const struct table_model *m)
{
    for (uint32_t i = 0; i < m->entry_count; i++)
        if (m->entries[i].state == TABLE_READY)
            return true;
    return false;
}

/* The model to choose: the one named, or the only one. NULL with the reason. */
static const char *chosen(const char *named, struct table_view *view, struct err **ret)
{
    uint32_t count;
    const struct table_model *models = table_models(view, &count);
    const char *only = NULL;
    unsigned serving = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (!vertex_serves(&models[i]))
            continue;
        if (named && strcmp(named, models[i].name) == 0)
            return named;
        only = models[i].name;
        serving++;
    }
    if (named)
        *ret = err_new(STATUS_INVALID_ARG, "Expect the default model '%s' is loaded", named);
    else if (serving != 1)
        *ret = err_new(STATUS_INVALID_ARG,
                       "Expect the model repository contains only a single model if default model "
                       "is not specified: %u are loaded, see --vertex-ai-default-model",
                       serving);
    return *ret ? NULL : only;
}

struct err *vertex_settle(struct http_front *f)
{
    struct vertex *v = f->own;
    struct table_view view;
    struct err *e = NULL;
    table_view_open(&view, f->server->table, NULL);
    const char *named = f->server->options->vertex.model;
    const char *model = chosen(named && *named ? named : NULL, &view, &e);
    if (!e) {
        clouds_target_init(&v->target, model, "infer", HTTP_ROUTE_MODEL_INFER);
        atomic_store_explicit(&v->settled, true, memory_order_release);
    }
    table_view_close(&view);
    return e;
}

/* What a prediction is for that the header sends to a path of the inference port. Operations that
 * change the server stay there. */
static struct http_route redirected(struct http1_head *head, const char *path)
{
    struct http_route r = http_route_find_bare(path, strlen(path));
    r.target = path;
    if (head->method != HTTP1_POST)
        return (struct http_route){.kind = VERTEX_ROUTE_NOT_POST};
    switch ((enum http_route_kind)r.kind) {
    case HTTP_ROUTE_SERVER:
    case HTTP_ROUTE_LIVE:
    case HTTP_ROUTE_READY:
    case HTTP_ROUTE_ALL_STATS:
    case HTTP_ROUTE_MODEL:
    case HTTP_ROUTE_MODEL_READY:
    case HTTP_ROUTE_MODEL_CONFIG:
    case HTTP_ROUTE_MODEL_STATS:
        head->method = HTTP1_GET;
        return r;
    case HTTP_ROUTE_SHARED_MEMORY:
        head->method = HTTP1_GET;
        return r.status ? r : (struct http_route){.kind = VERTEX_ROUTE_BLOCKED};
    case HTTP_ROUTE_MODEL_INFER:
    case HTTP_ROUTE_INDEX:
        return r;
    case HTTP_ROUTE_CONTROL:
        return (struct http_route){.kind = VERTEX_ROUTE_BLOCKED};
    case HTTP_ROUTE_NONE:
    case HTTP_ROUTE_OPENAPI:
    case HTTP_ROUTE_MODEL_GENERATE:
    case HTTP_ROUTE_MODEL_GENERATE_STREAM:
    case HTTP_ROUTE_MODEL_TRACE:
    case HTTP_ROUTE_TRACE:
    case HTTP_ROUTE_LOGGING:
        break;
    }
    bool metrics = strcmp(path, "metrics") == 0;
    return (struct http_route){.kind = metrics ? VERTEX_ROUTE_METRICS : VERTEX_ROUTE_UNKNOWN};
}

static struct http_route vertex_route(const struct http_front *f, struct http1_head *head)
{
    const struct options_vertex *o = &f->server->options->vertex;
    const struct vertex *v = f->own;
    clouds_head(head, SIZE_TYPE);
    if (clouds_path_is(head, o->health))
        return (struct http_route){.kind = HTTP_ROUTE_READY};
    if (!clouds_path_is(head, o->predict))
        return (struct http_route){.kind = VERTEX_ROUTE_UNKNOWN};
    const char *to = http1_header(head, "X-Vertex-Ai-Triton-Redirect", NULL);
    if (to)
        return redirected(head, to);
    if (!atomic_load_explicit(&v->settled, memory_order_acquire))
        return (struct http_route){.kind = VERTEX_ROUTE_EARLY};
    return v->target.route;
}

static enum options_category vertex_category(const struct http_route *route)
{
    if (route->kind < HTTP_ROUTE_COUNT)
        return http_api_service.category(route);
    if (route->kind == VERTEX_ROUTE_EARLY)
        return OPTIONS_CATEGORY_INFERENCE;
    return route->kind == VERTEX_ROUTE_METRICS ? OPTIONS_CATEGORY_METRICS : OPTIONS_CATEGORY_NONE;
}

static void vertex_serve_own(struct http_exchange *x, enum vertex_route route)
{
    switch (route) {
    case VERTEX_ROUTE_UNKNOWN:
        http_exchange_fault(x, 400,
                            "this port serves predictions and health: see "
                            "AIP_PREDICT_ROUTE and AIP_HEALTH_ROUTE");
        break;
    case VERTEX_ROUTE_NOT_POST:
        http_exchange_fault(x, 405, "Method Not Allowed");
        break;
    case VERTEX_ROUTE_BLOCKED:
        http_exchange_fault(x, 403, "a prediction cannot be sent there: use the HTTP or gRPC port");
        break;
    case VERTEX_ROUTE_EARLY:
        http_exchange_error(x, err_busy("the models are still being loaded"));
        break;
    case VERTEX_ROUTE_METRICS:
        metrics_http_page(x);
        break;
    }
}

static void vertex_serve(struct http_exchange *x, struct http_message *m)
{
    x->route = (uint8_t)m->route->kind;
    if (m->route->kind < HTTP_ROUTE_COUNT)
        http_api_service.serve(x, m);
    else
        vertex_serve_own(x, m->route->kind);
}

static const struct front_metrics_route vertex_routes[] = {
#define HTTP_ROUTE(kind, name, slot, methods, category, tells) [HTTP_ROUTE_##kind] = {name, slot},
#include "http/api/http_route.def"
    [VERTEX_ROUTE_UNKNOWN] = {"unknown", -1}, [VERTEX_ROUTE_NOT_POST] = {"not_post", -1},
    [VERTEX_ROUTE_BLOCKED] = {"blocked", -1}, [VERTEX_ROUTE_EARLY] = {"early", -1},
    [VERTEX_ROUTE_METRICS] = {"metrics", -1},
};
static const struct front_metrics_kind vertex_metrics = {.protocol = "vertex",
                                                         .routes = vertex_routes,
                                                         .route_count = sizeof(vertex_routes) /
                                                                        sizeof(*vertex_routes)};

const struct http_service vertex_service = {
    .metrics = &vertex_metrics,
    .inference = true,
    .open = vertex_open,
    .close = vertex_close,
    .size_type = SIZE_TYPE,
    .route = vertex_route,
    .category = vertex_category,
    .admit = clouds_admit,
    .tells = HTTP_ROUTE_TELLS | 1u << VERTEX_ROUTE_METRICS,
    .serve = vertex_serve,
};
