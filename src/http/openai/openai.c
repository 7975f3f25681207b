#include "http/openai/openai.h"

#include "base/err.h"
#include "base/mem.h"
#include "codec/http1.h"
#include "codec/json_out.h"
#include "http/api/http_infer.h"
#include "http/api/metrics_http.h"
#include "http/http_exchange.h"
#include "http/http_shard.h"
#include "http/openai/openai_call.h"
#include "http/openai/openai_models.h"
#include "model/config_openai.h"
#include "os/clock.h"
#include "server/server.h"

#include <string.h>

enum openai_route {
    OPENAI_ROUTE_UNKNOWN,
    OPENAI_ROUTE_COMPLETIONS,
    OPENAI_ROUTE_CHAT,
    OPENAI_ROUTE_EMBEDDINGS,
    OPENAI_ROUTE_MODELS,
    OPENAI_ROUTE_MODEL,
    OPENAI_ROUTE_READY,
    OPENAI_ROUTE_METRICS,
};

struct openai_route_row {
    const char *path;
    enum openai_route kind;
    enum http1_method method;
    enum options_category category;
};

static const struct openai_route_row rows[] = {
    [OPENAI_ROUTE_UNKNOWN] = {"", OPENAI_ROUTE_UNKNOWN, HTTP1_GET, OPTIONS_CATEGORY_NONE},
    {"/v1/completions", OPENAI_ROUTE_COMPLETIONS, HTTP1_POST, OPTIONS_CATEGORY_INFERENCE},
    {"/v1/chat/completions", OPENAI_ROUTE_CHAT, HTTP1_POST, OPTIONS_CATEGORY_INFERENCE},
    {"/v1/embeddings", OPENAI_ROUTE_EMBEDDINGS, HTTP1_POST, OPTIONS_CATEGORY_INFERENCE},
    {"/v1/models", OPENAI_ROUTE_MODELS, HTTP1_GET, OPTIONS_CATEGORY_METADATA},
    {"/v1/models/", OPENAI_ROUTE_MODEL, HTTP1_GET, OPTIONS_CATEGORY_METADATA},
    {"/health/ready", OPENAI_ROUTE_READY, HTTP1_GET, OPTIONS_CATEGORY_HEALTH},
    {"/metrics", OPENAI_ROUTE_METRICS, HTTP1_GET, OPTIONS_CATEGORY_METRICS},
};

/* What a front end has of its own. */
struct openai {
    time_ns opened; /* since 1970 */
};

static void openai_open(struct http_front *f)
{
    struct openai *o = f->own = MEM_NEW(struct openai);
    o->opened = clock_wall_ns();
}

static void openai_close(struct http_front *f)
{
    mem_free(f->own);
}

static struct http_route openai_find(const struct http_front *f, struct http1_head *head)
{
    (void)f;
    const char *query = memchr(head->url, '?', head->url_len);
    size_t len = query ? (size_t)(query - head->url) : head->url_len;
    for (size_t i = 1; i < sizeof(rows) / sizeof(*rows); i++) {
        size_t path = strlen(rows[i].path);
        bool rest = rows[i].kind == OPENAI_ROUTE_MODEL;
        if (len < path || memcmp(head->url, rows[i].path, path) != 0)
            continue;
        if (rest ? len > path : len == path)
            return (struct http_route){
                .kind = rows[i].kind,
                .model = {rest ? (uint32_t)path : 0, rest ? (uint32_t)(len - path) : 0}};
    }
    return (struct http_route){.kind = OPENAI_ROUTE_UNKNOWN};
}

static enum options_category openai_category(const struct http_route *route)
{
    return rows[route->kind].category;
}

static bool openai_is_call(const struct http_route *route, const struct http1_head *head)
{
    return rows[route->kind].method == HTTP1_POST && head->method == HTTP1_POST;
}

static struct err *openai_admit(const struct http_front *f, const struct http1_head *head,
                                const struct http_route *route, uint64_t *ret_max)
{
    *ret_max = openai_is_call(route, head) ? f->server->options->http_max_input_bytes : 0;
    return *ret_max && head->content_length > *ret_max
               ? http_infer_too_large(head->content_length, *ret_max)
               : NULL;
}

static uint16_t openai_status(const struct http_exchange *x, const struct err *e)
{
    (void)x;
    switch (err_code(e)) {
    case STATUS_UNKNOWN:
        return 500;
    case STATUS_ALREADY_EXISTS:
        return 409;
    case STATUS_CANCELLED:
        return 499;
    case STATUS_INTERNAL:
    case STATUS_NOT_FOUND:
    case STATUS_INVALID_ARG:
    case STATUS_UNAVAILABLE:
    case STATUS_UNSUPPORTED:
    default:
        return (uint16_t)status_http(err_code(e));
    }
}

static const char *fault_type(uint16_t status)
{
    if (status == 401)
        return "authentication_error";
    if (status == 403)
        return "permission_error";
    return status >= 500 ? "server_error" : "invalid_request_error";
}

static const char *fault_code(const struct http_exchange *x, uint16_t status)
{
    if (status == 401)
        return "\"invalid_api_key\"";
    bool model = x->param && strcmp(x->param, "model") == 0;
    return status == 404 && model ? "\"model_not_found\"" : "null";
}

#define PARAM_BYTES ((size_t)64)

static char *openai_fault(const struct http_exchange *x, uint16_t status, const char *message,
                          size_t len, char *to)
{
    to = JSON_OUT_LITERAL(to, "{\"error\":{\"message\":");
    to = json_out_string(to, message, len);
    to = JSON_OUT_LITERAL(to, ",\"type\":\"");
    to = json_out_text(to, fault_type(status), strlen(fault_type(status)));
    to = JSON_OUT_LITERAL(to, "\",\"param\":");
    if (x->param)
        to = json_out_string(to, x->param, strnlen(x->param, PARAM_BYTES));
    else
        to = JSON_OUT_LITERAL(to, "null");
    to = JSON_OUT_LITERAL(to, ",\"code\":");
    to = json_out_text(to, fault_code(x, status), strlen(fault_code(x, status)));
    return JSON_OUT_LITERAL(to, "}}");
}

_Static_assert(PARAM_BYTES * 6 + 256 < HTTP_SERVICE_FAULT_BYTES, "what is around a message");

static void tell_ready(struct http_exchange *x)
{
    bool ready = server_ready(x->shard->front->server, &x->shard->worker->view);
    http_exchange_static(x, ready ? 200 : 503, NULL, NULL, 0);
}

static bool fits(enum openai_route kind, enum http1_method method)
{
    return rows[kind].method == method || (rows[kind].method == HTTP1_GET && http1_reads(method));
}

static void openai_serve(struct http_exchange *x, struct http_message *m)
{
    const struct openai *o = x->shard->front->own;
    enum openai_route kind = m->route->kind;
    x->route = (uint8_t)kind;
    if (kind != OPENAI_ROUTE_UNKNOWN && !fits(kind, m->head->method)) {
        http_exchange_fault(x, 405, "Method Not Allowed");
        return;
    }
    switch (kind) {
    case OPENAI_ROUTE_UNKNOWN:
        http_exchange_fault(x, 404,
                            "this port serves /v1/models, /v1/completions, /v1/chat/completions, "
                            "/v1/embeddings, /health/ready and /metrics");
        break;
    case OPENAI_ROUTE_COMPLETIONS:
        openai_call_serve(x, m, CONFIG_OPENAI_COMPLETIONS);
        break;
    case OPENAI_ROUTE_CHAT:
        openai_call_serve(x, m, CONFIG_OPENAI_CHAT);
        break;
    case OPENAI_ROUTE_EMBEDDINGS:
        openai_call_serve(x, m, CONFIG_OPENAI_EMBEDDINGS);
        break;
    case OPENAI_ROUTE_MODELS:
        openai_models_list(x, o->opened);
        break;
    case OPENAI_ROUTE_MODEL:
        openai_models_tell(x, http_message_part(m, m->route->model), m->route->model.len,
                           o->opened);
        break;
    case OPENAI_ROUTE_READY:
        tell_ready(x);
        break;
    case OPENAI_ROUTE_METRICS:
        metrics_http_page(x);
        break;
    }
}

static const struct front_metrics_route openai_routes[] = {
    [OPENAI_ROUTE_UNKNOWN] = {"unknown", -1},    [OPENAI_ROUTE_COMPLETIONS] = {"completions", 0},
    [OPENAI_ROUTE_CHAT] = {"chat", 1},           [OPENAI_ROUTE_EMBEDDINGS] = {"embeddings", 2},
    [OPENAI_ROUTE_MODELS] = {"models", -1},      [OPENAI_ROUTE_MODEL] = {"model", -1},
    [OPENAI_ROUTE_READY] = {"health_ready", -1}, [OPENAI_ROUTE_METRICS] = {"metrics", -1},
};
static const struct front_metrics_kind openai_metrics = {.protocol = "openai",
                                                         .routes = openai_routes,
                                                         .route_count = sizeof(openai_routes) /
                                                                        sizeof(*openai_routes)};

const struct http_service openai_service = {
    .metrics = &openai_metrics,
    .inference = true,
    .open = openai_open,
    .close = openai_close,
    .route = openai_find,
    .category = openai_category,
    .admit = openai_admit,
    .tells = 1u << OPENAI_ROUTE_MODELS | 1u << OPENAI_ROUTE_METRICS,
    .status = openai_status,
    .fault = openai_fault,
    .serve = openai_serve,
};
