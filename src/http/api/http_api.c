#include "http/api/http_api.h"

#include "base/mem.h"
#include "base/strbuf.h"
#include "codec/json_out.h"
#include "codec/pb_json.h"
#include "http/api/http_generate.h"
#include "http/api/http_infer.h"
#include "http/api/http_logging.h"
#include "http/api/http_openapi.h"
#include "http/api/http_regions.h"
#include "http/api/http_repository.h"
#include "http/api/http_route.h"
#include "http/api/http_trace.h"
#include "http/http_decode.h"
#include "http/http_exchange.h"
#include "http/http_shard.h"
#include "model/config.h"
#include "server/control/describe.h"
#include "server/server_metadata.h"

#include <string.h>

/* The JSON style in which the reference prints such information. */
static const struct pb_json_style style = {.plain_int64 = true, .defaults = true};

/* Of each kind of route. */
#define HTTP_ROUTE(kind, name, slot, methods, category, tells) [HTTP_ROUTE_##kind] = (methods),
static const unsigned methods_of[] = {
#include "http/api/http_route.def"
};
#define HTTP_ROUTE(kind, name, slot, methods, category, tells) \
    [HTTP_ROUTE_##kind] = OPTIONS_CATEGORY_##category,
static const uint8_t categories[] = {
#include "http/api/http_route.def"
};

static bool method_fits(const struct http_route *route, const struct http1_head *h)
{
    if (route->kind == HTTP_ROUTE_SHARED_MEMORY)
        return route->status ? http1_reads(h->method) : h->method == HTTP1_POST;
    return methods_of[route->kind] >> h->method & 1;
}

static enum options_category http_api_category(const struct http_route *route)
{
    return (enum options_category)categories[route->kind];
}

static bool is_generate(enum http_route_kind kind)
{
    return kind == HTTP_ROUTE_MODEL_GENERATE || kind == HTTP_ROUTE_MODEL_GENERATE_STREAM;
}

static bool takes_body(enum http_route_kind kind)
{
    return kind == HTTP_ROUTE_MODEL_INFER || kind == HTTP_ROUTE_INDEX || kind == HTTP_ROUTE_CONTROL;
}

/* Limits the JSON part of the body; the tensors after it are only limited by the budget. */
static struct err *admit_infer(const struct http_front *f, const struct http1_head *head,
                               uint64_t *ret_max)
{
    uint64_t max = f->server->options->http_max_input_bytes;
    uint64_t json = head->content_length;
    *ret_max =
        head->tensor_header.given && head->content_coding == CODING_IDENTITY ? SIZE_MAX / 4 : max;
    if (head->chunked)
        return NULL;
    if (head->content_coding != CODING_IDENTITY) { /* the length of the JSON is not known yet */
        *ret_max = max;
        return json <= max ? NULL : http_infer_too_large(json, max);
    }
    struct err *e = http_infer_json_bytes(f->service, head, head->content_length, &json);
    return e || json <= max ? e : http_infer_too_large(json, max);
}

static struct err *http_api_admit(const struct http_front *f, const struct http1_head *head,
                                  const struct http_route *route, uint64_t *ret_max)
{
    *ret_max = 0;
    if (!method_fits(route, head))
        return NULL;
    if (route->kind == HTTP_ROUTE_MODEL_INFER)
        return admit_infer(f, head, ret_max);
    if (route->kind != HTTP_ROUTE_INDEX && route->kind != HTTP_ROUTE_CONTROL &&
        route->kind != HTTP_ROUTE_LOGGING && route->kind != HTTP_ROUTE_SHARED_MEMORY &&
        route->kind != HTTP_ROUTE_TRACE && route->kind != HTTP_ROUTE_MODEL_TRACE &&
        !is_generate(route->kind))
        return NULL;
    *ret_max = f->server->options->http_max_input_bytes;
    return head->content_length > *ret_max ? http_infer_too_large(head->content_length, *ret_max)
                                           : NULL;
}

static void answer_text(struct http_exchange *x, struct strbuf *sb)
{
    size_t len = sb->len;
    http_exchange_text(x, 200, HTTP_JSON, strbuf_take(sb), len);
}

/* Answers with a message as JSON, and frees it. */
static void answer_message(struct http_exchange *x, ProtobufCMessage *m)
{
    struct strbuf sb = STRBUF_INIT;
    pb_json_print(m, style, &sb);
    answer_text(x, &sb);
    protobuf_c_message_free_unpacked(m, NULL);
}

/* Answers a health request, in the words of the Open Inference Protocol. */
static void answer_health(struct http_exchange *x, const char *what, bool yes)
{
    struct strbuf sb = STRBUF_INIT;
    strbuf_printf(&sb, "{\"%s\":%s}", what, yes ? "true" : "false");
    size_t len = sb.len;
    http_exchange_text(x, yes ? 200 : 400, HTTP_JSON, strbuf_take(&sb), len);
}

static void answer_model_health(struct http_exchange *x, const char *name, size_t len, bool ready)
{
    if (!ready) {
        http_exchange_fault(x, 400, "Model version not ready");
        return;
    }
    char *text = mem_alloc(json_out_string_bytes(len) + 32);
    char *to = JSON_OUT_LITERAL(text, "{\"name\":");
    to = json_out_string(to, name, len);
    to = JSON_OUT_LITERAL(to, ",\"ready\":true}");
    http_exchange_text(x, 200, HTTP_JSON, text, (size_t)(to - text));
}

static struct err *serve_model(struct http_exchange *x, const struct http_message *m)
{
    const struct http_route *route = m->route;
    struct table_view *view = &x->shard->worker->view;
    int64_t version;
    struct err *e =
        describe_parse_version(http_message_part(m, route->version), route->version.len, &version);
    if (e)
        return e;
    const char *name = http_message_part(m, route->model);
    size_t len = route->model.len;
    if (route->kind == HTTP_ROUTE_MODEL) {
        Inference__ModelMetadataResponse *told;
        e = describe_model(view, name, len, version, &told);
        if (!e)
            answer_message(x, &told->base);
    } else if (route->kind == HTTP_ROUTE_MODEL_CONFIG) {
        struct model_config *shown;
        e = describe_config(view, name, len, version, &shown);
        if (!e) {
            http_exchange_shared(x, 200, HTTP_JSON, config_text(shown));
            config_unref(shown);
        }
    } else if (route->kind == HTTP_ROUTE_MODEL_STATS) {
        Inference__ModelStatisticsResponse *told;
        e = describe_statistics(view, name, len, version, &told);
        if (!e)
            answer_message(x, &told->base);
    } else {
        bool ready;
        e = describe_model_ready(view, name, len, version, &ready);
        if (!e)
            answer_model_health(x, name, len, ready);
    }
    return e;
}

static struct err *serve_all_stats(struct http_exchange *x)
{
    Inference__ModelStatisticsResponse *m;
    struct err *e = describe_statistics(&x->shard->worker->view, "", 0, -1, &m);
    if (!e)
        answer_message(x, &m->base);
    return e;
}

/* Serves every route except inference. Returns NULL if x was answered. */
static struct err *serve_route(struct http_exchange *x, struct http_message *m)
{
    struct server *s = x->shard->front->server;
    switch ((enum http_route_kind)m->route->kind) {
    case HTTP_ROUTE_NONE:
    case HTTP_ROUTE_MODEL_INFER:
    case HTTP_ROUTE_MODEL_GENERATE:
    case HTTP_ROUTE_MODEL_GENERATE_STREAM:
        http_exchange_fault(x, 404, "Not Found");
        return NULL;
    case HTTP_ROUTE_LIVE:
        answer_health(x, "live", server_live(s));
        return NULL;
    case HTTP_ROUTE_READY:
        answer_health(x, "ready", server_ready(s, &x->shard->worker->view));
        return NULL;
    case HTTP_ROUTE_SERVER: {
        Inference__ServerMetadataResponse *metadata = server_metadata_new(s);
        answer_message(x, &metadata->base);
        return NULL;
    }
    case HTTP_ROUTE_OPENAPI: {
        struct strbuf sb = STRBUF_INIT;
        http_openapi_put(&sb);
        answer_text(x, &sb);
        return NULL;
    }
    case HTTP_ROUTE_ALL_STATS:
        return serve_all_stats(x);
    case HTTP_ROUTE_MODEL:
    case HTTP_ROUTE_MODEL_READY:
    case HTTP_ROUTE_MODEL_CONFIG:
    case HTTP_ROUTE_MODEL_STATS:
        return serve_model(x, m);
    case HTTP_ROUTE_INDEX:
        return http_repository_index(x, m);
    case HTTP_ROUTE_CONTROL:
        return http_repository_control(x, m);
    case HTTP_ROUTE_SHARED_MEMORY:
        return http_regions_serve(x, m);
    case HTTP_ROUTE_MODEL_TRACE:
    case HTTP_ROUTE_TRACE:
        return http_trace_serve(x, m);
    case HTTP_ROUTE_LOGGING:
        return http_logging_serve(x, m);
    }
    return NULL;
}

/* True if the body must be decompressed. As in the reference, a control request with an unknown
 * coding is read unchanged. */
static bool is_packed(const struct http1_head *h)
{
    return h->content_coding != CODING_IDENTITY && h->content_coding != CODING_UNKNOWN;
}

static void http_api_serve(struct http_exchange *x, struct http_message *m)
{
    enum http_route_kind kind = m->route->kind;
    x->route = (uint8_t)kind;
    if (!method_fits(m->route, m->head)) {
        http_exchange_fault(x, 405, "Method Not Allowed");
        return;
    }
    if (m->head->content_coding == CODING_UNKNOWN && kind == HTTP_ROUTE_MODEL_INFER) {
        x->extra = "Accept-Encoding: gzip, deflate, zstd\r\n";
        http_exchange_error(x, err_new(STATUS_UNSUPPORTED, "Unsupported compression type"));
        return;
    }
    if (kind == HTTP_ROUTE_MODEL_INFER) {
        http_infer_serve(x, m);
        return;
    }
    if (is_generate(kind)) {
        http_generate_serve(x, m, kind == HTTP_ROUTE_MODEL_GENERATE_STREAM);
        return;
    }
    if (is_packed(m->head) && takes_body(kind) && m->body_len) {
        http_decode(x, m);
        return;
    }
    struct err *e = serve_route(x, m);
    if (e)
        http_exchange_error(x, e);
}

static struct http_route http_api_route(const struct http_front *f, struct http1_head *head)
{
    (void)f;
    return http_route_find(head->url, head->url_len);
}

#define HTTP_ROUTE(kind, name, slot, methods, category, tells) [HTTP_ROUTE_##kind] = {name, slot},
static const struct front_metrics_route routes[] = {
#include "http/api/http_route.def"
};
static const struct front_metrics_kind metrics = {
    .protocol = "http", .routes = routes, .route_count = sizeof(routes) / sizeof(*routes)};

const struct http_service http_api_service = {.metrics = &metrics,
                                              .inference = true,
                                              .route = http_api_route,
                                              .category = http_api_category,
                                              .admit = http_api_admit,
                                              .tells = HTTP_ROUTE_TELLS,
                                              .serve = http_api_serve};
