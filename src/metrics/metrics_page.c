#include "metrics/metrics_page.h"

#include "base/mem.h"
#include "metrics/prometheus.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const uint64_t metrics_page_bounds_us[METRICS_PAGE_BOUNDS] = {
    64,    128,   256,    512,    1024,   2048,    4096,    8192,    16384,
    32768, 65536, 131072, 262144, 524288, 1048576, 4194304, 8388608, 16777216};

static const char *const reasons[METRICS_PAGE_REASONS] = {"REJECTED", "CANCELED", "BACKEND",
                                                          "OTHER"};

enum kind {
    KIND_MODEL,
    KIND_REASON,
    KIND_HISTOGRAM,
    KIND_SUMMARY,
    KIND_BOUNDED,
    KIND_BATCHES,
    KIND_CACHE,
    KIND_FRONT,
    KIND_REQUESTS,
    KIND_PROCESS,
    KIND_GPU,
    KIND_BUILD,
};
enum unit { COUNT, SECONDS, RATIO, MILLI };

struct family {
    enum kind kind;
    enum unit unit;
    size_t at; /* offset of the field, or index of the histogram */
    const char *name;
    const char *type;
    const char *help;
};

static const struct family families[] = {
#define METRIC_MODEL(type, name, unit, field, help) \
    {KIND_MODEL, unit, offsetof(struct metrics_model, field), #name, #type, help},
#define METRIC_REASON(name, help) {KIND_REASON, COUNT, 0, #name, "counter", help},
#define METRIC_HISTOGRAM(name, index, help) \
    {KIND_HISTOGRAM, COUNT, (index), #name, "histogram", help},
#define METRIC_SUMMARY(name, index, help) {KIND_SUMMARY, COUNT, (index), #name, "summary", help},
#define METRIC_BOUNDED(name, field, help) \
    {KIND_BOUNDED, COUNT, offsetof(struct metrics_model, field), #name, "histogram", help},
#define METRIC_BATCHES(name, help) {KIND_BATCHES, COUNT, 0, #name, "histogram", help},
#define METRIC_CACHE(name, field, help) \
    {KIND_CACHE, COUNT, offsetof(struct metrics_model, field), #name, "counter", help},
#define METRIC_FRONT(type, name, field, help) \
    {KIND_FRONT, COUNT, offsetof(struct metrics_front, field), #name, #type, help},
#define METRIC_REQUESTS(name, help) {KIND_REQUESTS, COUNT, 0, #name, "counter", help},
#define METRIC_PROCESS(type, name, unit, field, help) \
    {KIND_PROCESS, unit, offsetof(struct metrics_process, field), #name, #type, help},
#define METRIC_GPU(type, name, unit, field, help) \
    {KIND_GPU, unit, offsetof(struct metrics_gpu, field), #name, #type, help},
#define METRIC_BUILD(name, help) {KIND_BUILD, COUNT, 0, #name, "gauge", help},
#include "metrics/metric.def"
};

/* The labels of a model as text, made once: all of them, and with "reason" at its place in the
 * alphabet. */
struct labels {
    struct strbuf all;
    struct strbuf failure[METRICS_PAGE_REASONS];
};

static int metrics_page_by_name(const void *a, const void *b)
{
    char *const *x = a; /* a name, followed by its value */
    char *const *y = b;
    int order = strcmp(x[0], y[0]);
    return order ? order : strcmp(x[1], y[1]);
}

/* Writes tags as _key. If two keys give the same label name, only one is written: a name must
 * not occur twice. */
static void put_tags(struct strbuf *out, const struct metrics_model *m)
{
    /* for each tag its name, then its value */
    char **names = mem_zalloc(m->tag_count * 2 * sizeof(char *));
    for (size_t i = 0; i < m->tag_count; i++) {
        struct strbuf name = STRBUF_INIT;
        strbuf_putc(&name, '_');
        prometheus_label_name(&name, m->tags[i].key);
        names[2 * i] = strbuf_take(&name);
        names[2 * i + 1] = mem_strdup(m->tags[i].value);
    }
    qsort(names, m->tag_count, 2 * sizeof(char *), metrics_page_by_name);
    for (size_t i = 0; i < m->tag_count; i++)
        if (i == 0 || strcmp(names[2 * i], names[2 * i - 2]) != 0)
            prometheus_label(out, names[2 * i], names[2 * i + 1]);
    for (size_t i = 0; i < m->tag_count * 2; i++)
        mem_free(names[i]);
    mem_free(names);
}

static void make_labels(const struct metrics_model *m, struct labels *l)
{
    char version[24];
    snprintf(version, sizeof(version), "%" PRId64, m->version);
    *l = (struct labels){0};
    put_tags(&l->all, m);
    prometheus_label(&l->all, "model", m->name);
    if (m->space)
        prometheus_label(&l->all, "namespace", m->space);
    for (size_t i = 0; i < METRICS_PAGE_REASONS; i++) {
        strbuf_append(&l->failure[i], l->all.data, l->all.len);
        prometheus_label(&l->failure[i], "reason", reasons[i]);
        prometheus_label(&l->failure[i], "version", version);
    }
    prometheus_label(&l->all, "version", version);
}

static void free_labels(struct labels *l)
{
    strbuf_fini(&l->all);
    for (size_t i = 0; i < METRICS_PAGE_REASONS; i++)
        strbuf_fini(&l->failure[i]);
}

void metrics_page_hist(const struct histogram_counts *c, uint64_t sum_ns, struct metrics_hist *ret)
{
    for (size_t i = 0; i < METRICS_PAGE_BOUNDS; i++)
        ret->at_most[i] = histogram_at_most(c, metrics_page_bounds_us[i]);
    ret->count = c->total;
    ret->sum_us = sum_ns / 1000;
}

static void metrics_page_put_value(struct strbuf *out, const struct family *f, const char *labels,
                                   uint64_t value)
{
    switch (f->unit) {
    case COUNT:
        if (value == UINT64_MAX)
            strbuf_printf(out, "%s +Inf\n", f->name);
        else
            prometheus_sample(out, f->name, "", labels, value);
        break;
    case SECONDS:
        prometheus_sample_parts(out, f->name, "", labels, value / 1000000000u, value % 1000000000u,
                                1000000000u);
        break;
    case RATIO:
        prometheus_sample_parts(out, f->name, "", labels, value / 1000000u, value % 1000000u,
                                1000000u);
        break;
    case MILLI:
        prometheus_sample_parts(out, f->name, "", labels, value / 1000u, value % 1000u, 1000u);
        break;
    }
}

static uint64_t field(const void *object, size_t at)
{
    uint64_t value;
    memcpy(&value, (const char *)object + at, sizeof(value));
    return value;
}

/* Shortens the text to n bytes. */
static void cut(struct strbuf *sb, size_t n)
{
    sb->len = n;
    sb->data[n] = '\0';
}

static void metrics_page_put_hist(struct strbuf *out, const struct family *f,
                                  const struct metrics_hist *h, struct strbuf *labels)
{
    size_t plain = labels->len;
    for (size_t i = 0; i < METRICS_PAGE_BOUNDS; i++) {
        struct strbuf le = STRBUF_INIT;
        uint64_t us = metrics_page_bounds_us[i];
        prometheus_parts(&le, us / 1000000u, us % 1000000u, 1000000u);
        prometheus_label(labels, "le", le.data);
        strbuf_fini(&le);
        prometheus_sample(out, f->name, "_bucket", labels->data, h->at_most[i]);
        cut(labels, plain);
    }
    prometheus_label(labels, "le", "+Inf");
    prometheus_sample(out, f->name, "_bucket", labels->data, h->count);
    cut(labels, plain);
    prometheus_sample_parts(out, f->name, "_sum", labels->data, h->sum_us / 1000000u,
                            h->sum_us % 1000000u, 1000000u);
    prometheus_sample(out, f->name, "_count", labels->data, h->count);
}

void metrics_page_summary(const struct histogram_counts *c, uint64_t sum_ns,
                          const double *quantiles, size_t count, struct metrics_summary *ret)
{
    ret->count = c->total;
    ret->sum_us = sum_ns / 1000;
    for (size_t i = 0; i < count; i++)
        ret->us[i] = histogram_percentile_us(c, quantiles[i]);
}

static void put_summary(struct strbuf *out, const struct family *f, const struct metrics_summary *s,
                        const struct metrics_process *p, struct strbuf *labels)
{
    size_t plain = labels->len;
    for (size_t i = 0; i < p->quantile_count; i++) {
        char quantile[32], value[32] = "NaN";
        snprintf(quantile, sizeof(quantile), "%.15g", p->quantiles[i]);
        if (s->count)
            snprintf(value, sizeof(value), "%.15g", s->us[i]);
        prometheus_label(labels, "quantile", quantile);
        strbuf_printf(out, "%s{%s} %s\n", f->name, labels->data, value);
        cut(labels, plain);
    }
    prometheus_sample(out, f->name, "_sum", labels->data, s->sum_us);
    prometheus_sample(out, f->name, "_count", labels->data, s->count);
}

/* Prints the shortest text that reads back as the same value. */
static void print_bound(double v, char *text, size_t size)
{
    for (int digits = 6; digits <= 17; digits++) {
        snprintf(text, size, "%.*g", digits, v);
        if (strtod(text, NULL) == v)
            break;
    }
}

static void put_bounded(struct strbuf *out, const struct family *f, const struct metrics_model *m,
                        struct strbuf *labels)
{
    struct metrics_bounded b;
    memcpy(&b, (const char *)m + f->at, sizeof(b));
    size_t plain = labels->len;
    uint64_t at_most = 0;
    for (size_t i = 0; b.counts && i <= b.bound_count; i++) {
        char le[32] = "+Inf";
        if (i < b.bound_count)
            print_bound(b.bounds[i], le, sizeof(le));
        at_most += b.counts[i];
        prometheus_label(labels, "le", le);
        prometheus_sample(out, f->name, "_bucket", labels->data, at_most);
        cut(labels, plain);
    }
    if (!b.counts)
        return;
    prometheus_sample(out, f->name, "_sum", labels->data, b.sum);
    prometheus_sample(out, f->name, "_count", labels->data, at_most);
}

void metrics_page_batch(struct metrics_batches *b, uint64_t size, uint64_t times)
{
    for (size_t i = 0; i < METRICS_PAGE_BATCH_BOUNDS; i++)
        if (size <= 1ull << i)
            b->at_most[i] += times;
    b->count += times;
    b->sum += size * times;
}

static void metrics_page_put_batches(struct strbuf *out, const struct family *f,
                                     const struct metrics_batches *b, struct strbuf *labels)
{
    size_t plain = labels->len;
    for (size_t i = 0; i <= METRICS_PAGE_BATCH_BOUNDS; i++) {
        char le[24] = "+Inf";
        bool last = i == METRICS_PAGE_BATCH_BOUNDS;
        if (!last)
            snprintf(le, sizeof(le), "%llu", 1ull << i);
        prometheus_label(labels, "le", le);
        prometheus_sample(out, f->name, "_bucket", labels->data, last ? b->count : b->at_most[i]);
        cut(labels, plain);
    }
    prometheus_sample(out, f->name, "_sum", labels->data, b->sum);
    prometheus_sample(out, f->name, "_count", labels->data, b->count);
}

static void put_fronts(struct strbuf *out, const struct family *f, const struct metrics_process *p)
{
    for (size_t i = 0; i < p->front_count; i++) {
        struct strbuf labels = STRBUF_INIT;
        prometheus_label(&labels, "protocol", p->fronts[i].protocol);
        prometheus_sample(out, f->name, "", labels.data, field(&p->fronts[i], f->at));
        strbuf_fini(&labels);
    }
}

static void put_requests(struct strbuf *out, const struct family *f,
                         const struct metrics_process *p)
{
    for (size_t i = 0; i < p->request_count; i++) {
        const struct metrics_requests *r = &p->requests[i];
        struct strbuf labels = STRBUF_INIT;
        prometheus_label(&labels, "code", r->code);
        if (r->model)
            prometheus_label(&labels, "model", r->model);
        prometheus_label(&labels, "protocol", r->protocol);
        prometheus_label(&labels, "route", r->route);
        prometheus_sample(out, f->name, "", labels.data, r->count);
        strbuf_fini(&labels);
    }
}

static void put_gpus(struct strbuf *out, const struct family *f, const struct metrics_process *p)
{
    for (size_t i = 0; i < p->gpu_count; i++) {
        uint64_t value = field(&p->gpus[i], f->at);
        if (value == METRICS_PAGE_UNKNOWN)
            continue;
        struct strbuf labels = STRBUF_INIT;
        prometheus_label(&labels, "gpu_uuid", p->gpus[i].uuid);
        metrics_page_put_value(out, f, labels.data, value);
        strbuf_fini(&labels);
    }
}

static bool any_gpu_has(const struct family *f, const struct metrics_process *p)
{
    for (size_t i = 0; i < p->gpu_count; i++)
        if (field(&p->gpus[i], f->at) != METRICS_PAGE_UNKNOWN)
            return true;
    return false;
}

/* True if the page shows this summary: with a cache, the backend's report alone is not the time
 * of a request. */
static bool has_summary(const struct metrics_model *m, size_t index)
{
    return m->cached ? index != 0 : index < METRICS_PAGE_SUMMARIES - 2;
}

static void put_model(struct strbuf *out, const struct family *f, const struct metrics_model *m,
                      const struct metrics_process *p, struct labels *l)
{
    switch (f->kind) {
    case KIND_MODEL:
        metrics_page_put_value(out, f, l->all.data, field(m, f->at));
        break;
    case KIND_REASON:
        for (size_t i = 0; i < METRICS_PAGE_REASONS; i++)
            prometheus_sample(out, f->name, "", l->failure[i].data, m->failures[i]);
        break;
    case KIND_HISTOGRAM:
        if (m->hists[f->at].count)
            metrics_page_put_hist(out, f, &m->hists[f->at], &l->all);
        break;
    case KIND_SUMMARY:
        if (has_summary(m, f->at))
            put_summary(out, f, &m->summaries[f->at], p, &l->all);
        break;
    case KIND_BOUNDED:
        put_bounded(out, f, m, &l->all);
        break;
    case KIND_BATCHES:
        if (m->batches.count)
            metrics_page_put_batches(out, f, &m->batches, &l->all);
        break;
    case KIND_CACHE:
        if (m->cached)
            metrics_page_put_value(out, f, l->all.data, field(m, f->at));
        break;
    case KIND_FRONT:
    case KIND_REQUESTS:
    case KIND_PROCESS:
    case KIND_GPU:
    case KIND_BUILD:
        break;
    }
}

static void put_build(struct strbuf *out, const struct family *f, const struct metrics_process *p)
{
    struct strbuf labels = STRBUF_INIT;
    prometheus_label(&labels, "version", p->server_version ? p->server_version : "");
    prometheus_sample(out, f->name, "", strbuf_str(&labels), 1);
    strbuf_fini(&labels);
}

static void put_process(struct strbuf *out, const struct family *f, const struct metrics_process *p)
{
    if (f->kind == KIND_FRONT)
        put_fronts(out, f, p);
    else if (f->kind == KIND_REQUESTS)
        put_requests(out, f, p);
    else if (f->kind == KIND_GPU)
        put_gpus(out, f, p);
    else if (f->kind == KIND_BUILD)
        put_build(out, f, p);
    else
        metrics_page_put_value(out, f, "", field(p, f->at));
}

static bool metrics_page_of_model(const struct family *f)
{
    return f->kind == KIND_MODEL || f->kind == KIND_REASON || f->kind == KIND_HISTOGRAM ||
           f->kind == KIND_SUMMARY || f->kind == KIND_BOUNDED || f->kind == KIND_BATCHES ||
           f->kind == KIND_CACHE;
}

static bool model_has(const struct metrics_model *m, const struct family *f,
                      const struct metrics_process *p)
{
    if (f->kind == KIND_CACHE)
        return m->cached && !p->no_latency_counters;
    if (f->kind == KIND_SUMMARY)
        return p->quantile_count && has_summary(m, f->at);
    if (f->kind == KIND_BOUNDED)
        return m->first_response.counts != NULL;
    if (f->kind == KIND_HISTOGRAM)
        return m->hists[f->at].count;
    if (f->kind == KIND_BATCHES)
        return m->batches.count;
    return true;
}

static bool any_has(const struct metrics_model *models, size_t count, const struct family *f,
                    const struct metrics_process *p)
{
    for (size_t i = 0; i < count; i++)
        if (model_has(&models[i], f, p))
            return true;
    return false;
}

static bool is_latency(const char *name)
{
    size_t len = strlen(name);
    return len > 12 && strcmp(name + len - 12, "_duration_us") == 0;
}

static bool has_samples(const struct family *f, const struct metrics_model *models, size_t count,
                        const struct metrics_process *p)
{
    if (f->kind == KIND_MODEL && p->no_latency_counters && is_latency(f->name))
        return false;
    if (metrics_page_of_model(f))
        return any_has(models, count, f, p);
    if (f->kind == KIND_FRONT)
        return p->front_count > 0;
    if (f->kind == KIND_REQUESTS)
        return p->request_count > 0;
    if (f->kind == KIND_GPU)
        return any_gpu_has(f, p);
    return !p->no_cpu || strncmp(f->name, "nv_cpu_", 7) != 0;
}

void metrics_page_render(struct strbuf *out, const struct metrics_model *models, size_t count,
                         const struct metrics_process *process)
{
    struct labels *labels = mem_alloc(count * sizeof(*labels));
    for (size_t k = 0; k < count; k++)
        make_labels(&models[k], &labels[k]);
    for (size_t i = 0; i < sizeof(families) / sizeof(families[0]); i++) {
        const struct family *f = &families[i];
        if (!has_samples(f, models, count, process))
            continue;
        prometheus_family(out, f->name, f->type, f->help);
        if (!metrics_page_of_model(f))
            put_process(out, f, process);
        for (size_t k = 0; metrics_page_of_model(f) && k < count; k++)
            put_model(out, f, &models[k], process, &labels[k]);
    }
    for (size_t k = 0; k < count; k++)
        free_labels(&labels[k]);
    mem_free(labels);
}
