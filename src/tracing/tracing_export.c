#include "tracing/tracing_export.h"

#include "base/list.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/strbuf.h"
#include "cloud/web/call.h"
#include "cloud/web/cloud_abi.h"
#include "cloud/web/module.h"
#include "os/crew.h"
#include "os/entropy.h"
#include "os/mutex.h"
#include "tracing/tracing_list.h"
#include "tracing/tracing_otlp.h"
#include "tracing/tracing_record.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT_IDLE TIME_S(10)

/* A collector that says nothing for so long has lost what it was sent. */
#define EXPORT_LIMIT TIME_S(10)

#define ANSWER_BYTES ((size_t)65536)

#define HEADERS_OF_TRACES "OTEL_EXPORTER_OTLP_TRACES_HEADERS"
#define HEADERS_OF_ALL    "OTEL_EXPORTER_OTLP_HEADERS"

struct tracing_export {
    char *url;
    struct tracing_list headers; /* that OpenTelemetry's variables want sent along */
    struct strbuf resource;      /* attributes, encoded */
    uint32_t most_spans;
    uint32_t batch;
    time_ns delay;
    struct crew *crew;
    struct crew_job job;
    struct call_net net;
    struct mutex lock; /* rank LEAF; guards what follows */
    struct mutex_cond changed;
    struct list records;
    uint64_t spans; /* of these */
    bool sending;   /* the job is under way, or about to be */
    bool stopping;
    uint64_t refused;   /* spans that there was no place for, since it was said last */
    uint64_t too_large; /* those of traces that there never is place for */
};

/* The thread's. */
static void *export_begin(void *owner)
{
    struct tracing_export *x = owner;
    return x->net.abi->session_new();
}

static void export_end(void *owner, void *own)
{
    struct tracing_export *x = owner;
    x->net.abi->session_free(own);
}

struct export_body {
    const struct tracing_export *export;
    struct strbuf message;
};

static struct err *export_build(void *owner, void *session, struct call_request *r)
{
    (void)session;
    const struct export_body *b = owner;
    r->method = "POST";
    strbuf_puts(&r->url, b->export->url);
    call_header(r, "Content-Type: application/x-protobuf");
    const struct tracing_list *headers = &b->export->headers;
    for (size_t i = 0; i < headers->count; i++) {
        const char *one = headers->entries[i];
        size_t len = strcspn(one, "=");
        call_header(r, "%.*s: %s", (int)len, one, one + len + 1);
    }
    strbuf_append(&r->body, b->message.data, b->message.len);
    return NULL;
}

/* A batch of records, which are freed. */
static void export_send(struct tracing_export *x, void *session, struct list *records)
{
    struct export_body body = {x, STRBUF_INIT};
    struct strbuf spans = STRBUF_INIT;
    uint64_t count = 0;
    struct list *node;
    while ((node = list_pop(records))) {
        struct tracing_record *r = LIST_ITEM(node, struct tracing_record, node);
        tracing_otlp_spans(r, entropy_bytes, &spans);
        count += r->spans;
        tracing_record_free(r);
    }
    tracing_otlp_request(&x->resource, &spans, &body.message);
    strbuf_fini(&spans);
    struct call c = {
        .what = "sending traces", .build = export_build, .max_body = ANSWER_BYTES, .owner = &body};
    struct err *e = call_run(&x->net, session, &c);
    if (e)
        LOG_WARN("%" PRIu64 " spans are thrown away: %s", count, err_message(e));
    err_free(e);
    call_fini(&c);
    strbuf_fini(&body.message);
}

/* Up to a batch of what waits; false, and the job is over, when nothing does. */
static bool take_spans(struct tracing_export *x, struct list *ret)
{
    mutex_lock(&x->lock);
    time_ns until = time_later(clock_now_ns(), x->delay);
    while (!x->stopping && x->spans < x->batch && clock_now_ns() < until)
        mutex_cond_wait_until(&x->changed, &x->lock, until);
    uint64_t taken = 0;
    while (taken < x->batch && !list_empty(&x->records)) {
        struct tracing_record *r = LIST_ITEM(list_pop(&x->records), struct tracing_record, node);
        taken += r->spans;
        list_append(ret, &r->node);
    }
    x->spans -= taken;
    x->sending = taken > 0;
    uint64_t refused = x->refused, too_large = x->too_large;
    x->refused = x->too_large = 0;
    mutex_cond_broadcast(&x->changed);
    mutex_unlock(&x->lock);
    if (refused)
        LOG_WARN("%" PRIu64 " spans are thrown away: %u wait for the collector already; "
                 "bsp_max_queue_size lets more wait",
                 refused, x->most_spans);
    if (too_large)
        LOG_WARN("%" PRIu64 " spans are thrown away: their traces have more than %u each, which "
                 "is all that may wait; raise bsp_max_queue_size",
                 too_large, x->most_spans);
    return taken > 0;
}

static void export_run(struct crew_job *job, void *session)
{
    struct tracing_export *x = LIST_ITEM(job, struct tracing_export, job);
    struct list batch;
    list_init(&batch);
    while (take_spans(x, &batch))
        export_send(x, session, &batch);
}

static void export_resource(struct tracing_export *x, const struct tracing_export_settings *s)
{
    for (size_t i = 0; i < s->resource_count; i++) {
        const char *one = s->resource[i];
        size_t len = strcspn(one, "=");
        bool last = true;
        for (size_t k = i + 1; k < s->resource_count; k++)
            last &= strncmp(s->resource[k], one, len + 1) != 0;
        if (last)
            tracing_otlp_attribute(&x->resource, one, len, one[len] ? one + len + 1 : "");
    }
}

struct err *tracing_export_new(const struct tracing_export_settings *s, struct tracing_export **ret)
{
    static const struct crew_kind kind = {
        .name = "tracer", .most = 1, .idle = EXPORT_IDLE, .begin = export_begin, .end = export_end};
    const struct cloud_abi *abi;
    struct err *e = module_get(&abi);
    if (e)
        return e;
    struct tracing_export *x = MEM_NEW(struct tracing_export);
    x->url = mem_strdup(s->url);
    tracing_list_read(&x->headers, getenv(HEADERS_OF_TRACES) ? HEADERS_OF_TRACES : HEADERS_OF_ALL);
    x->most_spans = s->queue;
    x->batch = s->batch ? s->batch : 1;
    x->delay = s->delay;
    export_resource(x, s);
    call_net_init(&x->net, abi, EXPORT_LIMIT, NULL);
    mutex_init(&x->lock, MUTEX_RANK_LEAF);
    mutex_cond_init(&x->changed);
    list_init(&x->records);
    x->job.run = export_run;
    x->crew = crew_new(&kind, x);
    *ret = x;
    return NULL;
}

void tracing_export_push(struct tracing_export *x, struct tracing_record *r)
{
    mutex_lock(&x->lock);
    bool room = x->spans + r->spans <= x->most_spans;
    if (room) {
        x->spans += r->spans;
        list_append(&x->records, &r->node);
    } else if (r->spans > x->most_spans) {
        x->too_large += r->spans;
    } else {
        x->refused += r->spans;
    }
    bool begin = !x->sending; /* also to say what there is no place for */
    x->sending = true;
    if (x->spans >= x->batch)
        mutex_cond_signal(&x->changed);
    mutex_unlock(&x->lock);
    if (!room)
        tracing_record_free(r);
    if (!begin || crew_add(x->crew, &x->job))
        return;
    /* No thread to be had: said by the crew. The next trace asks again. */
    mutex_lock(&x->lock);
    x->sending = false;
    mutex_unlock(&x->lock);
}

void tracing_export_free(struct tracing_export *x, time_ns most)
{
    if (!x)
        return;
    time_ns until = time_later(clock_now_ns(), most);
    mutex_lock(&x->lock);
    x->stopping = true;
    mutex_cond_broadcast(&x->changed);
    while (x->sending && clock_now_ns() < until)
        mutex_cond_wait_until(&x->changed, &x->lock, until);
    mutex_unlock(&x->lock);
    call_net_cancel(&x->net);
    crew_free(x->crew);
    struct list *node;
    while ((node = list_pop(&x->records)))
        tracing_record_free(LIST_ITEM(node, struct tracing_record, node));
    call_net_fini(&x->net);
    mutex_cond_fini(&x->changed);
    mutex_fini(&x->lock);
    strbuf_fini(&x->resource);
    tracing_list_fini(&x->headers);
    mem_free(x->url);
    mem_free(x);
}
