#include "http/clouds/sagemaker.h"

#include "base/err.h"
#include "base/mem.h"
#include "base/strbuf.h"
#include "http/api/http_api.h"
#include "http/api/http_infer.h"
#include "http/clouds/clouds.h"
#include "http/clouds/sagemaker_control.h"
#include "http/clouds/sagemaker_models.h"
#include "http/http_exchange.h"
#include "http/http_shard.h"
#include "server/server.h"

#include <ctype.h>
#include <string.h>

#define SIZE_TYPE "application/vnd.sagemaker-triton.binary+json;json-header-size="

enum sagemaker_route {
    SAGEMAKER_ROUTE_UNKNOWN = HTTP_ROUTE_COUNT,
    SAGEMAKER_ROUTE_LIST,   /* GET /models */
    SAGEMAKER_ROUTE_LOAD,   /* POST /models */
    SAGEMAKER_ROUTE_GET,    /* GET /models/NAME */
    SAGEMAKER_ROUTE_UNLOAD, /* DELETE /models/NAME */
    SAGEMAKER_ROUTE_INVOKE, /* POST /models/NAME/invoke */
};

struct sagemaker {
    struct clouds_target target; /* of /invocations */
    struct sagemaker_models *models;
};

static enum http_route_kind inference_of(const char *type)
{
    if (strcmp(type, "generate") == 0)
        return HTTP_ROUTE_MODEL_GENERATE;
    return strcmp(type, "infer") == 0 ? HTTP_ROUTE_MODEL_INFER : HTTP_ROUTE_MODEL_GENERATE_STREAM;
}

static void sagemaker_open(struct http_front *f)
{
    const struct options_sagemaker *o = &f->server->options->sagemaker;
    struct sagemaker *s = f->own = MEM_NEW(struct sagemaker);
    clouds_target_init(&s->target, o->model, o->inference, inference_of(o->inference));
    s->models = sagemaker_models_new();
}

static void sagemaker_close(struct http_front *f)
{
    struct sagemaker *s = f->own;
    clouds_target_fini(&s->target);
    sagemaker_models_free(s->models);
    mem_free(s);
}

#define MODELS "/models"

/* True if the rest of a path is this. */
static bool sagemaker_ends(const char *rest, size_t len, const char *literal)
{
    return strlen(literal) == len && memcmp(rest, literal, len) == 0;
}

/* A path below MODELS, which is another if nothing of it is a route. */
static struct http_route models_route(const struct http1_head *head)
{
    struct http_route r = {.kind = SAGEMAKER_ROUTE_UNKNOWN};
    const size_t prefix = sizeof(MODELS) - 1;
    size_t len = clouds_path(head).len;
    const char *name = head->url + prefix + 1;
    bool get = http1_reads(head->method);
    if (len < prefix || memcmp(head->url, MODELS, prefix) != 0)
        return r;
    if (len == prefix || (len == prefix + 1 && name[-1] == '/')) {
        r.kind = get                          ? SAGEMAKER_ROUTE_LIST
                 : head->method == HTTP1_POST ? SAGEMAKER_ROUTE_LOAD
                                              : SAGEMAKER_ROUTE_UNKNOWN;
        return r;
    }
    if (name[-1] != '/' || *name == '/')
        return r;
    size_t left = len - prefix - 1;
    const char *slash = memchr(name, '/', left);
    size_t name_len = slash ? (size_t)(slash - name) : left;
    r.model = (struct http_route_part){(uint32_t)prefix + 1, (uint32_t)name_len};
    if (sagemaker_ends(name + name_len, left - name_len, "/invoke") && head->method == HTTP1_POST)
        r.kind = SAGEMAKER_ROUTE_INVOKE;
    else if (name_len == left && head->method == HTTP1_DELETE)
        r.kind = SAGEMAKER_ROUTE_UNLOAD;
    else if (name_len == left && get)
        r.kind = SAGEMAKER_ROUTE_GET;
    return r;
}

static struct http_route sagemaker_route(const struct http_front *f, struct http1_head *head)
{
    const struct sagemaker *s = f->own;
    clouds_head(head, SIZE_TYPE);
    if (clouds_path_is(head, "/ping")) {
        bool live = strcmp(f->server->options->sagemaker.ping, "live") == 0;
        return (struct http_route){.kind = live ? HTTP_ROUTE_LIVE : HTTP_ROUTE_READY};
    }
    if (clouds_path_is(head, "/invocations"))
        return s->target.route;
    return models_route(head);
}

static enum options_category sagemaker_category(const struct http_route *route)
{
    if (route->kind < HTTP_ROUTE_COUNT)
        return http_api_service.category(route);
    switch ((enum sagemaker_route)route->kind) {
    case SAGEMAKER_ROUTE_UNKNOWN:
        return OPTIONS_CATEGORY_NONE;
    case SAGEMAKER_ROUTE_INVOKE:
        return OPTIONS_CATEGORY_INFERENCE;
    case SAGEMAKER_ROUTE_LIST:
    case SAGEMAKER_ROUTE_LOAD:
    case SAGEMAKER_ROUTE_GET:
    case SAGEMAKER_ROUTE_UNLOAD:
        return OPTIONS_CATEGORY_MODEL_REPOSITORY;
    }
    return OPTIONS_CATEGORY_NONE;
}

/* The bodies that there are: requests for inference, and what to load. */
static struct err *sagemaker_admit(const struct http_front *f, const struct http1_head *head,
                                   const struct http_route *route, uint64_t *ret_max)
{
    struct http_route like = *route;
    if (route->kind == SAGEMAKER_ROUTE_INVOKE)
        like.kind = HTTP_ROUTE_MODEL_INFER;
    else if (route->kind == SAGEMAKER_ROUTE_LOAD)
        like.kind = HTTP_ROUTE_CONTROL;
    return clouds_admit(f, head, &like, ret_max);
}

/* OOM as a word: not in the name of a classroom. */
static bool names_oom(const char *message)
{
    for (const char *at = message; (at = strstr(at, "OOM")); at++)
        if ((at == message || !isalpha((unsigned char)at[-1])) && !isalpha((unsigned char)at[3]))
            return true;
    return false;
}

/* How backends say that there is no memory: SageMaker then unloads other models, and tries again.
 * As in the reference, in any message. */
static bool tells_of_memory(const char *message)
{
    static const char *const words[] = {
        "out of memory",
        "OUT_OF_MEMORY",
        "OutOfMemory",
        "MemoryError",
        "tensor is not initialized",
        "CUDNN_STATUS_NOT_INITIALIZED",
        "CUBLAS_STATUS_ALLOC_FAILED",
        "CUBLAS_STATUS_NOT_INITIALIZED",
        "failed to allocate memory",
        "No space left on device",
    };
    for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
        if (strcasestr(message, words[i]))
            return true;
    return names_oom(message);
}

static uint16_t sagemaker_status(const struct http_exchange *x, const struct err *e)
{
    if (x->route < HTTP_ROUTE_COUNT || err_code(e) == STATUS_UNAVAILABLE)
        return (uint16_t)status_http(err_code(e));
    if (err_code(e) == STATUS_ALREADY_EXISTS)
        return 409;
    if (err_code(e) == STATUS_NOT_FOUND && x->route == SAGEMAKER_ROUTE_UNLOAD)
        return 404;
    return tells_of_memory(err_message(e)) ? 507 : 400;
}

static void sagemaker_not_loaded(struct http_exchange *x)
{
    http_exchange_fault(x, 404, "this model is not loaded");
}

static void sagemaker_tell(struct http_exchange *x, const struct http_message *m,
                           struct sagemaker_models *models)
{
    struct strbuf text = STRBUF_INIT;
    if (m->route->kind == SAGEMAKER_ROUTE_LIST) {
        sagemaker_models_list(models, &text);
    } else if (!sagemaker_models_tell(models, http_message_part(m, m->route->model),
                                      m->route->model.len, &text)) {
        sagemaker_not_loaded(x);
        return;
    }
    size_t len = text.len;
    http_exchange_text(x, 200, HTTP_JSON, strbuf_take(&text), len);
}

/* The model is what was loaded under the name, whatever X-Amzn-SageMaker-Target-Model says. */
static void sagemaker_invoke(struct http_exchange *x, const struct http_message *m,
                             struct sagemaker_models *models)
{
    char target[SAGEMAKER_MODELS_NAME_BYTES];
    if (!sagemaker_models_target(models, http_message_part(m, m->route->model), m->route->model.len,
                                 false, target)) {
        sagemaker_not_loaded(x);
        return;
    }
    struct http_route route = {
        .kind = HTTP_ROUTE_MODEL_INFER, .target = target, .model = {0, (uint32_t)strlen(target)}};
    struct http_message asked = *m;
    asked.route = &route;
    http_infer_serve(x, &asked);
}

static void sagemaker_serve_own(struct http_exchange *x, struct http_message *m)
{
    struct sagemaker_models *models = ((struct sagemaker *)x->shard->front->own)->models;
    struct err *e = NULL;
    switch ((enum sagemaker_route)m->route->kind) {
    case SAGEMAKER_ROUTE_UNKNOWN:
        http_exchange_fault(x, 400, "this port serves /ping, /invocations and /models");
        break;
    case SAGEMAKER_ROUTE_LIST:
    case SAGEMAKER_ROUTE_GET:
        sagemaker_tell(x, m, models);
        break;
    case SAGEMAKER_ROUTE_LOAD:
        e = sagemaker_control_load(x, m, models);
        break;
    case SAGEMAKER_ROUTE_UNLOAD:
        e = sagemaker_control_unload(x, m, models);
        break;
    case SAGEMAKER_ROUTE_INVOKE:
        sagemaker_invoke(x, m, models);
        break;
    }
    if (e)
        http_exchange_error(x, e);
}

static void sagemaker_serve(struct http_exchange *x, struct http_message *m)
{
    x->route = (uint8_t)m->route->kind;
    if (m->route->kind < HTTP_ROUTE_COUNT)
        http_api_service.serve(x, m);
    else
        sagemaker_serve_own(x, m);
}

static const struct front_metrics_route sagemaker_routes[] = {
#define HTTP_ROUTE(kind, name, slot, methods, category, tells) [HTTP_ROUTE_##kind] = {name, slot},
#include "http/api/http_route.def"
    [SAGEMAKER_ROUTE_UNKNOWN] = {"unknown", -1},   [SAGEMAKER_ROUTE_LIST] = {"mme_list", -1},
    [SAGEMAKER_ROUTE_LOAD] = {"mme_load", -1},     [SAGEMAKER_ROUTE_GET] = {"mme_get", -1},
    [SAGEMAKER_ROUTE_UNLOAD] = {"mme_unload", -1}, [SAGEMAKER_ROUTE_INVOKE] = {"mme_invoke", -1},
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
    .admit = sagemaker_admit,
    .tells = HTTP_ROUTE_TELLS | 1u << SAGEMAKER_ROUTE_LIST,
    .status = sagemaker_status,
    .serve = sagemaker_serve,
};
