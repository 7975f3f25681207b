#include "server/describe.h"

#include "base/budget.h"
#include "base/mem.h"
#include "base/strbuf.h"
#include "infer/stats.h"
#include "metrics/custom.h"
#include "metrics/front_metrics.h"
#include "metrics/metrics_page.h"
#include "model/config.h"
#include "os/process.h"
#include "sched/batcher.h"
#include "server/build_version.h"
#include "serve/runner.h"
#include "serve/version.h"

#include <string.h>

static void put_hist(const struct stats *stats, enum stats_hist_kind kind, struct metrics_hist *ret)
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

/* What the queue and the instances do at this moment. */
static void read_now(struct metrics_model *m, struct serve_version *v)
{
    time_ns now = clock_now_ns();
    mutex_lock(&v->lock);
    time_ns oldest = batcher_oldest(v->batcher);
    m->oldest_ns = oldest < now ? now - oldest : 0;
    m->instances = v->runner_count;
    for (uint32_t i = 0; i < v->runner_count; i++)
        m->instances_busy += v->runners[i].state != RUNNER_IDLE;
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

static void collect(struct metrics_model *m, const struct table_model *model,
                    struct serve_version *v)
{
    struct stats_sums s;
    stats_sum(v->stats, &s);
    *m = (struct metrics_model){
        .name = model->name,
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
        .pending = batcher_depth(v->batcher),
        .load_ns = v->load_ns,
    };
    read_now(m, v);
    read_batches(m, v->stats);
    memcpy(m->failures, s.failures, sizeof(m->failures));
    put_hist(v->stats, STATS_HIST_REQUEST, &m->hists[0]);
    put_hist(v->stats, STATS_HIST_QUEUE, &m->hists[1]);
    put_hist(v->stats, STATS_HIST_COMPUTE, &m->hists[2]);
}

/* How busy the machine was since this was measured last, but over --metrics-interval-ms at least. */
static uint64_t busy_ppm(struct server *s, const struct process_stats *p)
{
    time_ns now = clock_now_ns();
    time_ns last = atomic_load(&s->busy_measured);
    if (now - last < TIME_MS(s->options.metrics_interval_ms) ||
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
    return (struct metrics_process){
        .server_version = BUILD_VERSION,
        .no_cpu = !s->options.allow_cpu_metrics,
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
}

char *describe_metrics(struct server *s, struct table_view *view, size_t *ret_len)
{
    uint32_t count;
    const struct table_model *models = table_models(view, &count);
    size_t most = 0;
    for (uint32_t i = 0; i < count; i++)
        most += models[i].entry_count;
    struct metrics_model *all = mem_alloc(most * sizeof(*all));
    size_t n = 0;
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t k = 0; k < models[i].entry_count; k++)
            if (models[i].entries[k].version)
                collect(&all[n++], &models[i], models[i].entries[k].version);
    struct metrics_process process = process_numbers(s);
    struct strbuf page = STRBUF_INIT;
    front_metrics_read(&process);
    metrics_page_render(&page, all, n, &process);
    custom_render(&page);
    front_metrics_read_free(&process);
    for (size_t i = 0; i < n; i++)
        mem_free((void *)(uintptr_t)all[i].tags);
    mem_free(all);
    *ret_len = page.len;
    return strbuf_take(&page);
}
