#include "http/api/http_trace.h"

#include "base/mem.h"
#include "base/strbuf.h"
#include "codec/json_out.h"
#include "http/api/http_json.h"
#include "http/api/http_trace_read.h"
#include "http/http_exchange.h"
#include "http/http_service.h"
#include "http/http_shard.h"
#include "server/control/describe.h"
#include "server/worker.h"
#include "tracing/tracing.h"
#include "triton/core/tritonserver.h"

#include <inttypes.h>
#include <string.h>

/* Of a model that is served the name, else an error; without a model "". The caller's. */
static struct err *model_of(struct http_exchange *x, const struct http_message *m, char **ret)
{
    const char *name = http_message_part(m, m->route->model);
    size_t len = m->route->model.len;
    bool ready = false;
    *ret = NULL;
    if (len)
        err_free(describe_model_ready(&x->shard->worker->view, name, len, -1, &ready));
    if (len && !ready)
        return err_new(STATUS_INVALID_ARG, "Request for unknown model : %.*s", (int)len, name);
    *ret = mem_strndup(name, len);
    return NULL;
}

static struct err *http_trace_change(struct http_exchange *x, const struct http_message *m,
                                     const char *model)
{
    struct http_json json;
    struct err *e = http_json_parse_body(x->shard, m, &json);
    if (e)
        return e;
    struct tracing_change c = {0};
    e = http_trace_read(yyjson_doc_get_root(json.doc), &c);
    http_json_end(&json);
    return e ? e : tracing_change(x->shard->worker->tracing, model, &c);
}

static void http_trace_put(struct strbuf *sb, const char *key, const char *value)
{
    strbuf_printf(sb, ",\"%s\":", key);
    json_out_put(sb, value);
}

/* The values of a key: an array where it was given more than once. */
static void http_trace_put_more(struct strbuf *sb, const struct tracing_told *told, size_t i)
{
    size_t next = tracing_told_next(told, i);
    if (next == told->more_count) {
        http_trace_put(sb, told->more[i].key, told->more[i].value);
        return;
    }
    strbuf_printf(sb, ",\"%s\":[", told->more[i].key);
    json_out_put(sb, told->more[i].value);
    for (; next < told->more_count; next = tracing_told_next(told, next)) {
        strbuf_putc(sb, ',');
        json_out_put(sb, told->more[next].value);
    }
    strbuf_putc(sb, ']');
}

static void http_trace_tell(struct http_exchange *x, const char *model)
{
    struct tracing_told told;
    struct strbuf sb = STRBUF_INIT;
    tracing_tell(x->shard->worker->tracing, model, &told);
    uint32_t level = told.values.level;
    bool times = level & TRITONSERVER_TRACE_LEVEL_TIMESTAMPS;
    bool tensors = level & TRITONSERVER_TRACE_LEVEL_TENSORS;
    strbuf_printf(&sb, "{\"trace_level\":[%s%s%s]", times ? "\"TIMESTAMPS\"" : "",
                  times && tensors ? "," : "",
                  tensors  ? "\"TENSORS\""
                  : !times ? "\"OFF\""
                           : "");
    strbuf_printf(&sb, ",\"trace_rate\":\"%" PRIu32 "\",\"trace_count\":\"%" PRId32 "\"",
                  told.values.rate, told.values.count);
    if (told.file) {
        strbuf_printf(&sb, ",\"log_frequency\":\"%" PRIu32 "\"", told.values.frequency);
        http_trace_put(&sb, "trace_file", told.file);
    }
    http_trace_put(&sb, "trace_mode", told.mode);
    for (size_t i = 0; i < told.more_count; i++)
        if (tracing_told_first(&told, i))
            http_trace_put_more(&sb, &told, i);
    strbuf_putc(&sb, '}');
    size_t len = sb.len;
    http_exchange_text(x, 200, HTTP_JSON, strbuf_take(&sb), len);
}

struct err *http_trace_serve(struct http_exchange *x, struct http_message *m)
{
    char *model;
    struct err *e = model_of(x, m, &model);
    if (!e && m->head->method == HTTP1_POST)
        e = http_trace_change(x, m, model);
    if (!e)
        http_trace_tell(x, model);
    mem_free(model);
    return e;
}
