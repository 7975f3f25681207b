#include "http/clouds/sagemaker.h"

#include "base/err.h"
#include "base/mem.h"
#include "http/api/http_api.h"
#include "http/clouds/clouds.h"
#include "http/http_exchange.h"
#include "http/http_shard.h"
#include "server/server.h"

#include <string.h>

#define SIZE_TYPE "application/vnd.sagemaker-triton.binary+json;json-header-size="

enum sagemaker_route {
    SAGEMAKER_ROUTE_UNKNOWN = HTTP_ROUTE_COUNT,
};

struct sagemaker {
    struct clouds_target target; /* of /invocations */
};

static enum http_route_kind inference_of(const char *type)
{
    if (strcmp(type, "generate") == 0)
        return HTTP_ROUTE_MODEL_GENERATE;
    return strcmp(type, "infer") == 0 ? HTTP_ROUTE_MODEL_INFER : HTTP_ROUTE_MODEL_GENERATE_STREAM;
}

static struct err *sagemaker_open(struct http_front *f)
{
    const struct options_sagemaker *o = &f->server->options.sagemaker;
    struct sagemaker *s = f->own = MEM_NEW(struct sagemaker);
    clouds_target_init(&s->target, o->model, o->inference, inference_of(o->inference));
    return NULL;
}

static void sagemaker_close(struct http_front *f)
{
    struct sagemaker *s = f->own;
    clouds_target_fini(&s->target);
    mem_free(s);
}

static struct http_route sagemaker_route(const struct http_front *f, struct http1_head *head)
{
    const struct sagemaker *s = f->own;
    clouds_head(head, SIZE_TYPE);
    if (clouds_path_is(head, "/ping")) {
        bool live = strcmp(f->server->options.sagemaker.ping, "live") == 0;
        return (struct http_route){.kind = live ? HTTP_ROUTE_LIVE : HTTP_ROUTE_READY};
    }
    if (clouds_path_is(head, "/invocations"))
        return s->target.route;
    return (struct http_route){.kind = SAGEMAKER_ROUTE_UNKNOWN};
}

static enum options_category sagemaker_category(const struct http_route *route)
{
    return route->kind < HTTP_ROUTE_COUNT ? http_api_service.category(route)
                                          : OPTIONS_CATEGORY_NONE;
}

static void sagemaker_serve(struct http_exchange *x, struct http_message *m)
{
    x->route = (uint8_t)m->route->kind;
    if (m->route->kind < HTTP_ROUTE_COUNT)
        http_api_service.serve(x, m);
    else
        http_exchange_fault(x, 400, "this port serves /ping, /invocations and /models");
}

static const struct front_metrics_route sagemaker_routes[] = {
#define HTTP_ROUTE(kind, name, slot, methods, category, tells) [HTTP_ROUTE_##kind] = {name, slot},
#include "http/api/http_route.def"
    [SAGEMAKER_ROUTE_UNKNOWN] = {"unknown", -1},
};
static const struct front_metrics_kind sagemaker_metrics = {
    .protocol = "sagemaker",
    .routes = sagemaker_routes,
    .route_count = sizeof(sagemaker_routes) / sizeof(*sagemaker_routes)};

const struct http_service sagemaker_service = {
    .metrics = &sagemaker_metrics,
    .inference = true,
    .open = sagemaker_open,
    .close = sagemaker_close,
    .size_type = SIZE_TYPE,
    .answer_type = SIZE_TYPE,
    .route = sagemaker_route,
    .category = sagemaker_category,
    .admit = clouds_admit,
    .tells = HTTP_ROUTE_TELLS,
    .serve = sagemaker_serve,
};
