/* TRITONSERVER_Server functions: starting and stopping, health, and information about the server
 * and its models. */
#include "plugin/handle.h"
#include "base/mem.h"
#include "codec/pb_json.h"
#include "abi/draft.h"
#include "infer/trace.h"
#include "model/config.h"
#include "plugin/message.h"
#include "abi/call.h"
#include "serve/version.h"
#include "server/control/describe.h"
#include "server/server_metadata.h"
#include "server/embed.h"
#include "server/server.h"

#include <string.h>

#define METRICS_MAGIC 0x4d534e50u

static const char type[] = "TRITONSERVER_Server";

/* The JSON style in which the reference prints such information. */
static const struct pb_json_style whole = {.plain_int64 = true, .defaults = true};
static const struct pb_json_style sparse = {.plain_int64 = true};

/* The TRITONSERVER_Metrics: the metrics page at one moment. */
struct metrics {
    uint32_t magic;
    char *text;
    size_t len;
};

/* Opens a view of the models for one call. */
static void open_view(struct table_view *view, struct server *s)
{
    table_view_open(view, s->table, NULL);
}

static TRITONSERVER_Error *give_text(struct strbuf *sb, TRITONSERVER_Message **ret)
{
    size_t len = sb->len;
    *ret = (TRITONSERVER_Message *)message_new(strbuf_take(sb), len);
    return NULL;
}

/* Prints a message as JSON, then frees its owner. */
static TRITONSERVER_Error *give_message(const ProtobufCMessage *shown, ProtobufCMessage *owner,
                                        TRITONSERVER_Message **ret)
{
    struct strbuf sb = STRBUF_INIT;
    pb_json_print(shown, whole, &sb);
    protobuf_c_message_free_unpacked(owner, NULL);
    return give_text(&sb, ret);
}

TRITONSERVER_Error *TRITONSERVER_ServerNew(TRITONSERVER_Server **server,
                                           TRITONSERVER_ServerOptions *options)
{
    const struct embed_options *o = embed_options_of(options);
    if (!o)
        return handle_invalid("TRITONSERVER_ServerOptions");
    struct server *s;
    struct err *e = embed_new(o, &s);
    if (!e)
        *server = (TRITONSERVER_Server *)s;
    return handle_error(e);
}

TRITONSERVER_Error *TRITONSERVER_ServerDelete(TRITONSERVER_Server *server)
{
    struct server *s = embed_server_of(server);
    return server && !s ? handle_invalid(type) : handle_error(embed_free(s));
}

TRITONSERVER_Error *TRITONSERVER_ServerStop(TRITONSERVER_Server *server)
{
    struct server *s = embed_server_of(server);
    return s ? handle_error(embed_stop(s)) : handle_invalid(type);
}

TRITONSERVER_Error *TRITONSERVER_ServerSetExitTimeout(TRITONSERVER_Server *server,
                                                      unsigned int timeout)
{
    struct server *s = embed_server_of(server);
    return s ? handle_error(embed_set_exit_timeout(s, timeout)) : handle_invalid(type);
}

TRITONSERVER_Error *TRITONSERVER_ServerIsLive(TRITONSERVER_Server *server, bool *live)
{
    const struct server *s = embed_server_of(server);
    if (!s)
        return handle_invalid(type);
    *live = server_live(s);
    return NULL;
}

TRITONSERVER_Error *TRITONSERVER_ServerIsReady(TRITONSERVER_Server *server, bool *ready)
{
    struct server *s = embed_server_of(server);
    if (!s)
        return handle_invalid(type);
    struct table_view view;
    open_view(&view, s);
    *ready = server_ready(s, &view);
    table_view_close(&view);
    return NULL;
}

TRITONSERVER_Error *TRITONSERVER_ServerModelIsReady(TRITONSERVER_Server *server,
                                                    const char *model_name,
                                                    const int64_t model_version, bool *ready)
{
    struct server *s = embed_server_of(server);
    if (!s || !model_name)
        return s ? HANDLE_NULL("model_name") : handle_invalid(type);
    struct table_view view;
    open_view(&view, s);
    *ready = false;
    struct err *e =
        describe_model_ready(&view, model_name, strlen(model_name), model_version, ready);
    table_view_close(&view);
    return handle_error(e);
}

/* The version that a call names, pinned for the call. */
static TRITONSERVER_Error *server_abi_find_version(const char *function,
                                                   TRITONSERVER_Server *server, const char *name,
                                                   int64_t number, struct serve_version **ret)
{
    struct server *s = embed_server_of(server);
    if (!s || !name)
        return s ? handle_null(function, "model_name") : handle_invalid(type);
    struct table_view view;
    open_view(&view, s);
    struct err *e = table_find(&view, name, strlen(name), number, ret);
    table_view_close(&view);
    return handle_error(e);
}

TRITONSERVER_Error *TRITONSERVER_ServerModelBatchProperties(TRITONSERVER_Server *server,
                                                            const char *model_name,
                                                            const int64_t model_version,
                                                            uint32_t *flags, void **voidp)
{
    if (voidp)
        *voidp = NULL;
    struct serve_version *v;
    TRITONSERVER_Error *e =
        server_abi_find_version(__func__, server, model_name, model_version, &v);
    if (e)
        return e;
    *flags =
        v->config->max_batch_size > 0 ? TRITONSERVER_BATCH_FIRST_DIM : TRITONSERVER_BATCH_UNKNOWN;
    version_unpin(v);
    return NULL;
}

TRITONSERVER_Error *TRITONSERVER_ServerModelTransactionProperties(TRITONSERVER_Server *server,
                                                                  const char *model_name,
                                                                  const int64_t model_version,
                                                                  uint32_t *txn_flags, void **voidp)
{
    if (voidp)
        *voidp = NULL;
    struct serve_version *v;
    TRITONSERVER_Error *e =
        server_abi_find_version(__func__, server, model_name, model_version, &v);
    if (e)
        return e;
    *txn_flags = v->config->decoupled ? TRITONSERVER_TXN_DECOUPLED : TRITONSERVER_TXN_ONE_TO_ONE;
    version_unpin(v);
    return NULL;
}

TRITONSERVER_Error *TRITONSERVER_ServerMetadata(TRITONSERVER_Server *server,
                                                TRITONSERVER_Message **server_metadata)
{
    const struct server *s = embed_server_of(server);
    if (!s)
        return handle_invalid(type);
    Inference__ServerMetadataResponse *m = server_metadata_new(s);
    return give_message(&m->base, &m->base, server_metadata);
}

TRITONSERVER_Error *TRITONSERVER_ServerModelMetadata(TRITONSERVER_Server *server,
                                                     const char *model_name,
                                                     const int64_t model_version,
                                                     TRITONSERVER_Message **model_metadata)
{
    struct server *s = embed_server_of(server);
    if (!s || !model_name)
        return s ? HANDLE_NULL("model_name") : handle_invalid(type);
    struct table_view view;
    open_view(&view, s);
    Inference__ModelMetadataResponse *m;
    struct err *e = describe_model(&view, model_name, strlen(model_name), model_version, &m);
    table_view_close(&view);
    return e ? handle_error(e) : give_message(&m->base, &m->base, model_metadata);
}

TRITONSERVER_Error *TRITONSERVER_ServerModelStatistics(TRITONSERVER_Server *server,
                                                       const char *model_name,
                                                       const int64_t model_version,
                                                       TRITONSERVER_Message **model_stats)
{
    struct server *s = embed_server_of(server);
    if (!s || !model_name)
        return s ? HANDLE_NULL("model_name") : handle_invalid(type);
    struct table_view view;
    open_view(&view, s);
    Inference__ModelStatisticsResponse *m;
    struct err *e = describe_statistics(&view, model_name, strlen(model_name), model_version, &m);
    table_view_close(&view);
    return e ? handle_error(e) : give_message(&m->base, &m->base, model_stats);
}

TRITONSERVER_Error *TRITONSERVER_ServerModelConfig(TRITONSERVER_Server *server,
                                                   const char *model_name,
                                                   const int64_t model_version,
                                                   const uint32_t config_version,
                                                   TRITONSERVER_Message **model_config)
{
    struct serve_version *v;
    TRITONSERVER_Error *e =
        server_abi_find_version(__func__, server, model_name, model_version, &v);
    if (e)
        return e;
    struct err *bad =
        config_version == 1
            ? NULL
            : err_new(STATUS_INVALID_ARG,
                      "model configuration version %u not supported, supported versions are: 1",
                      config_version);
    if (!bad) {
        size_t len;
        struct model_config *shown = version_shown(v);
        char *json = config_print_json(shown->proto, &len);
        config_unref(shown);
        *model_config = (TRITONSERVER_Message *)message_new(json, len);
    }
    version_unpin(v);
    return handle_error(bad);
}

TRITONSERVER_Error *TRITONSERVER_ServerModelIndex(TRITONSERVER_Server *server, uint32_t flags,
                                                  TRITONSERVER_Message **model_index)
{
    struct server *s = embed_server_of(server);
    if (!s)
        return handle_invalid(type);
    struct table_view view;
    open_view(&view, s);
    Inference__RepositoryIndexResponse *index =
        describe_index(&view, flags & TRITONSERVER_INDEX_FLAG_READY);
    table_view_close(&view);
    struct strbuf sb = STRBUF_INIT;
    strbuf_putc(&sb, '[');
    for (size_t i = 0; i < index->n_models; i++) {
        if (i)
            strbuf_putc(&sb, ',');
        pb_json_print(&index->models[i]->base, sparse, &sb);
    }
    strbuf_putc(&sb, ']');
    protobuf_c_message_free_unpacked(&index->base, NULL);
    return give_text(&sb, model_index);
}

TRITONSERVER_Error *TRITONSERVER_ServerMetrics(TRITONSERVER_Server *server,
                                               TRITONSERVER_Metrics **metrics)
{
    struct server *s = embed_server_of(server);
    if (!s)
        return handle_invalid(type);
    if (!s->options->allow_metrics)
        return handle_error(
            err_new(STATUS_UNSUPPORTED, "metrics were switched off when the server was made"));
    struct metrics *m = MEM_NEW(struct metrics);
    m->magic = METRICS_MAGIC;
    struct table_view view;
    open_view(&view, s);
    m->text = describe_metrics(s, &view, &m->len);
    table_view_close(&view);
    *metrics = (TRITONSERVER_Metrics *)m;
    return NULL;
}

static struct metrics *metrics_of(TRITONSERVER_Metrics *handle)
{
    struct metrics *m = (struct metrics *)handle;
    return m && m->magic == METRICS_MAGIC ? m : NULL;
}

TRITONSERVER_Error *TRITONSERVER_MetricsDelete(TRITONSERVER_Metrics *metrics)
{
    struct metrics *m = metrics_of(metrics);
    if (metrics && !m)
        return handle_invalid("TRITONSERVER_Metrics");
    if (m) {
        m->magic = 0;
        mem_free(m->text);
        mem_free(m);
    }
    return NULL;
}

TRITONSERVER_Error *TRITONSERVER_MetricsFormatted(TRITONSERVER_Metrics *metrics,
                                                  TRITONSERVER_MetricFormat format,
                                                  const char **base, size_t *byte_size)
{
    const struct metrics *m = metrics_of(metrics);
    if (!m)
        return handle_invalid("TRITONSERVER_Metrics");
    if (format != TRITONSERVER_METRIC_PROMETHEUS)
        return handle_error(
            err_new(STATUS_INVALID_ARG, "unknown metrics format '%d'", (int)format));
    *base = m->text;
    *byte_size = m->len;
    return NULL;
}

TRITONSERVER_Error *TRITONSERVER_ServerInferAsync(TRITONSERVER_Server *server,
                                                  TRITONSERVER_InferenceRequest *inference_request,
                                                  TRITONSERVER_InferenceTrace *trace)
{
    struct server *s = embed_server_of(server);
    struct draft *d = draft_of(inference_request);
    struct trace *t = trace_of(trace);
    if (trace && !t)
        return handle_invalid("TRITONSERVER_InferenceTrace");
    if (s && d)
        return handle_error(call_start(s->table, d, t));
    if (t)
        trace_release(t);
    return handle_invalid(s ? "TRITONSERVER_InferenceRequest" : type);
}
