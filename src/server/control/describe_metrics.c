#include "server/control/describe.h"

#include "base/budget.h"
#include "base/mem.h"
#include "base/strbuf.h"
#include "gpu/gpu_memory.h"
#include "gpu/gpu_meter.h"
#include "infer/first_response.h"
#include "infer/stats.h"
#include "metrics/custom.h"
#include "metrics/front_metrics.h"
#include "metrics/metrics_page.h"
#include "model/config.h"
#include "os/process/process.h"
#include "serve/scheduler.h"
#include "base/build_version.h"
#include "serve/runner.h"
#include "serve/version.h"
#include "server/quota.h"

#include <string.h>

static void describe_metrics_put_hist(const struct stats *stats, enum stats_hist_kind kind,
                                      struct metrics_hist *ret)
{
    struct histogram_counts *counts = MEM_NEW(struct histogram_counts);
    uint64_t sum_ns;
    stats_sum_hist(stats, kind, counts, &sum_ns);
    metrics_page_hist(counts, sum_ns, ret);
    mem_free(counts);
}

static struct metrics_tag *tags_of(const Inference__ModelConfig *proto)
{
    struct metrics_tag *tags = mem_alloc(proto->n_metric_tags * sizeof(*tags));
    for (size_t i = 0; i < proto->n_metric_tags; i++)
        tags[i] = (struct metrics_tag){.key = proto->metric_tags[i]->key,
                                       .value = proto->metric_tags[i]->value};
    return tags;
}

/* Reads the current state of the queue and the instances. */
static void read_now(struct metrics_model *m, struct serve_version *v)
{
    time_ns now = clock_now_ns();
    mutex_lock(&v->lock);
    time_ns oldest = v->scheduler->ops.oldest(v->scheduler);
    m->oldest_ns = oldest < now ? now - oldest : 0;
    m->instances = v->instances.runner_count;
    for (uint32_t i = 0; i < v->instances.runner_count; i++)
        m->instances_busy += v->instances.runners[i]->state != RUNNER_IDLE;
    mutex_unlock(&v->lock);
}

static void read_batches(struct metrics_model *m, const struct stats *stats)
{
    struct stats_batch_sums *batches;
    size_t count = stats_sum_batches(stats, &batches);
    for (size_t i = 0; i < count; i++)
        metrics_page_batch(&m->batches, batches[i].batch_size, batches[i].compute_infer.count);
    mem_free(batches);
}

/* The reference's default quantiles. */
static const double usual_quantiles[] = {0.5, 0.9, 0.95, 0.99, 0.999};

static void read_summaries(struct metrics_model *m, const struct stats *stats,
                           const struct metrics_process *p)
{
    static const enum stats_hist_kind kinds[METRICS_PAGE_SUMMARIES] = {
        STATS_HIST_REQUEST, STATS_HIST_QUEUE,     STATS_HIST_INPUT,     STATS_HIST_INFER,
        STATS_HIST_OUTPUT,  STATS_HIST_CACHE_HIT, STATS_HIST_CACHE_MISS};
    struct histogram_counts *counts = MEM_NEW(struct histogram_counts);
    for (size_t i = 0; i < METRICS_PAGE_SUMMARIES; i++) {
        uint64_t sum_ns;
        stats_sum_hist(stats, kinds[i], counts, &sum_ns);
        metrics_page_summary(counts, sum_ns, p->quantiles, p->quantile_count, &m->summaries[i]);
    }
    mem_free(counts);
}

/* Reads the histogram; the caller frees its counts. */
static void read_first_response(struct metrics_model *m, const struct first_response *f,
                                const struct tally_part *tally)
{
    struct metrics_bounded *b = &m->first_response;
    b->bound_count = first_response_bounds(f, &b->bounds);
    uint64_t *counts = mem_alloc((b->bound_count + 1) * sizeof(*counts));
    first_response_read(f, counts, &b->sum);
    tally_first_response(tally, counts, &b->sum);
    b->counts = counts;
}

static void describe_metrics_collect(struct metrics_model *m, const struct table_model *model,
                                     struct serve_version *v, const struct metrics_process *p,
                                     bool histograms)
{
    struct stats_sums s;
    struct stats *total = tally_total(&v->tally);
    const struct stats *stats = total ? total : v->stats;
    stats_sum(stats, &s);
    *m = (struct metrics_model){
        .name = model->name,
        .space = model->space,
        .version = v->number,
        .tags = tags_of(v->config->proto),
        .tag_count = v->config->proto->n_metric_tags,
        .success = s.success.count,
        .inferences = s.inference_count,
        .executions = s.execution_count,
        .request_us = s.request_us,
        .queue_us = s.queue_us,
        .compute_input_us = s.compute_input_us,
        .compute_infer_us = s.compute_infer_us,
        .compute_output_us = s.compute_output_us,
        .cached = v->scheduler->wraps[SCHEDULER_CACHE] != NULL,
        .cache_hits = s.cache_hit.count,
        .cache_hit_us = s.cache_hit.ns / 1000,
        .cache_misses = s.cache_miss.count,
        .cache_miss_us = s.cache_miss.ns / 1000,
        .pending = v->scheduler->ops.depth(v->scheduler),
        .load_ns = v->load_ns,
    };
    read_now(m, v);
    read_batches(m, stats);
    memcpy(m->failures, s.failures, sizeof(m->failures));
    if (p->quantile_count)
        read_summaries(m, stats, p);
    if (histograms && v->target.first_response)
        read_first_response(m, v->target.first_response, &v->tally);
    if (m->success) {
        describe_metrics_put_hist(stats, STATS_HIST_REQUEST, &m->hists[0]);
        describe_metrics_put_hist(stats, STATS_HIST_QUEUE, &m->hists[1]);
        describe_metrics_put_hist(stats, STATS_HIST_COMPUTE, &m->hists[2]);
    }
    stats_free(total);
}

/* CPU usage of the machine since the last measurement, but over at least --metrics-interval-ms. */
static uint64_t busy_ppm(struct server *s, const struct process_stats *p)
{
    time_ns now = clock_now_ns();
    time_ns last = atomic_load(&s->busy_measured);
    if (now - last < TIME_MS(s->options->metrics_interval_ms) ||
        !atomic_compare_exchange_strong(&s->busy_measured, &last, now))
        return atomic_load(&s->busy_ppm);
    uint64_t busy = p->host_busy_ticks - atomic_exchange(&s->last_busy_ticks, p->host_busy_ticks);
    uint64_t total =
        p->host_total_ticks - atomic_exchange(&s->last_total_ticks, p->host_total_ticks);
    uint64_t ppm = total && busy <= total ? busy * 1000000 / total : 0;
    atomic_store(&s->busy_ppm, ppm);
    return ppm;
}

static struct metrics_process process_numbers(struct server *s)
{
    struct process_stats p;
    process_read(&p);
    const struct options_latencies *l = &s->options->latencies;
    size_t usual = sizeof(usual_quantiles) / sizeof(*usual_quantiles);
    struct metrics_process m = {
        .server_version = BUILD_VERSION,
        .no_latency_counters = l->no_counters,
        .quantiles = l->quantile_count ? l->quantiles : usual_quantiles,
        .quantile_count = l->summaries ? (l->quantile_count ? l->quantile_count : usual) : 0,
        .no_cpu = !s->options->allow_cpu_metrics,
        .cpu_busy_ppm = busy_ppm(s, &p),
        .host_total_bytes = p.host_total_bytes,
        .host_used_bytes = p.host_used_bytes,
        .budget_used_bytes = budget_in_use(),
        .budget_limit_bytes = budget_limit(),
        .cpu_ns = p.cpu_ns,
        .resident_bytes = p.resident_bytes,
        .virtual_bytes = p.virtual_bytes,
        .threads = p.threads,
        .open_fds = p.open_fds,
        .max_fds = p.max_fds,
        .start_wall_ns = s->start_wall_ns,
    };
    quota_shared(&m.shared_connections, &m.shared_connections_limit);
    return m;
}

/* GPUs as the page shows them. */
struct page_gpus {
    struct gpu_meter_reading readings[GPU_MAX];
    struct metrics_gpu shown[GPU_MAX];
};

_Static_assert(GPU_METER_UNKNOWN == METRICS_PAGE_UNKNOWN, "the page leaves out what is not known");

static void read_gpus(const struct server *s, struct page_gpus *g, struct metrics_process *p)
{
    gpu_memory_pinned_pool(&p->pinned_total_bytes, &p->pinned_used_bytes);
    if (!s->options->allow_gpu_metrics)
        return;
    p->gpus = g->shown;
    p->gpu_count = gpu_meter_read(g->readings);
    for (size_t i = 0; i < p->gpu_count; i++) {
        const struct gpu_meter_reading *r = &g->readings[i];
        g->shown[i] = (struct metrics_gpu){.uuid = r->uuid,
                                           .busy_ppm = r->busy_ppm,
                                           .total_bytes = r->total_bytes,
                                           .used_bytes = r->used_bytes,
                                           .power_mw = r->power_mw,
                                           .limit_mw = r->limit_mw,
                                           .energy_mj = r->energy_mj};
    }
}

char *describe_metrics(struct server *s, struct table_view *view, size_t *ret_len)
{
    uint32_t count;
    const struct table_model *models = table_models(view, &count);
    size_t most = 0;
    for (uint32_t i = 0; i < count; i++)
        most += models[i].entry_count;
    struct metrics_process process = process_numbers(s);
    struct page_gpus gpus;
    read_gpus(s, &gpus, &process);
    struct metrics_model *all = mem_alloc(most * sizeof(*all));
    size_t n = 0;
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t k = 0; k < models[i].entry_count; k++)
            if (models[i].entries[k].version)
                describe_metrics_collect(&all[n++], &models[i], models[i].entries[k].version,
                                         &process, s->options->latencies.histograms);
    struct strbuf page = STRBUF_INIT;
    front_metrics_read(&process);
    metrics_page_render(&page, all, n, &process);
    custom_render(&page);
    front_metrics_read_free(&process);
    for (size_t i = 0; i < n; i++) {
        mem_free((void *)(uintptr_t)all[i].tags);
        mem_free((void *)(uintptr_t)all[i].first_response.counts);
    }
    mem_free(all);
    *ret_len = page.len;
    return strbuf_take(&page);
}
