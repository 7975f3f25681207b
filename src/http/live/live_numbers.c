#include "http/live/live_numbers.h"

#include "base/budget.h"
#include "base/mem.h"
#include "base/strbuf.h"
#include "cloud/web/url.h"
#include "codec/json_out.h"
#include "infer/stats.h"
#include "metrics/metrics_page.h"
#include "metrics/recent.h"
#include "os/clock.h"
#include "serve/runner.h"
#include "serve/scheduler.h"
#include "serve/version.h"
#include "server/server.h"

#include <inttypes.h>
#include <string.h>

/* What a version or all of them did; the page makes rates of the differences. */
struct live_sums {
    uint64_t instances, busy, pending;
    uint64_t success, failed, inferences, executions, request_us, queue_us;
};

struct live_numbers {
    struct strbuf rows;
    uint32_t row_count, left_out;
    struct live_sums total;
    uint64_t failures[STATS_REASONS];
    /* of the model that was asked for, or of all */
    const char *model;
    struct histogram_counts latencies;
    struct metrics_batches batches;
};

static void read_instances(struct serve_version *v, struct live_sums *to)
{
    mutex_lock(&v->lock);
    to->instances = v->instances.runner_count;
    for (uint32_t i = 0; i < v->instances.runner_count; i++)
        to->busy += v->instances.runners[i]->state != RUNNER_IDLE;
    mutex_unlock(&v->lock);
    to->pending = v->scheduler->ops.depth(v->scheduler);
}

static void add_latencies(struct live_numbers *n, const struct stats *stats)
{
    struct histogram_counts one;
    uint64_t sum_ns;
    stats_sum_hist(stats, STATS_HIST_REQUEST, &one, &sum_ns);
    n->latencies.total += one.total;
    for (uint32_t i = 0; i < HISTOGRAM_BUCKETS; i++)
        n->latencies.buckets[i] += one.buckets[i];
}

static void add_batches(struct live_numbers *n, const struct stats *stats)
{
    struct stats_batch_sums *batches;
    size_t count = stats_sum_batches(stats, &batches);
    for (size_t i = 0; i < count; i++)
        metrics_page_batch(&n->batches, batches[i].batch_size, batches[i].compute_infer.count);
    mem_free(batches);
}

static void put_sums(struct strbuf *to, const struct live_sums *s)
{
    strbuf_printf(to, "%" PRIu64 ",%" PRIu64 ",%" PRIu64, s->instances, s->busy, s->pending);
    if (!s->success && !s->failed && !s->executions) /* most models of many */
        return;
    strbuf_printf(to, ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64,
                  s->success, s->failed, s->inferences, s->executions, s->request_us, s->queue_us);
}

static void live_numbers_put_row(struct live_numbers *n, const char *title, int64_t number,
                                 const struct live_sums *s)
{
    if (n->row_count >= LIVE_NUMBERS_ROWS && !(n->model && strcmp(n->model, title) == 0)) {
        n->left_out++;
        return;
    }
    strbuf_puts(&n->rows, n->row_count++ ? ",[" : "[");
    json_out_put(&n->rows, title);
    strbuf_printf(&n->rows, ",%" PRId64 ",", number);
    put_sums(&n->rows, s);
    strbuf_putc(&n->rows, ']');
}

static void add_version(struct live_numbers *n, const char *title, struct serve_version *v)
{
    struct stats_sums sums;
    struct live_sums s = {0};
    stats_sum(v->stats, &sums);
    for (size_t i = 0; i < STATS_REASONS; i++) {
        n->failures[i] += sums.failures[i];
        s.failed += sums.failures[i];
    }
    s.success = sums.success.count;
    s.inferences = sums.inference_count;
    s.executions = sums.execution_count;
    s.request_us = sums.request_us;
    s.queue_us = sums.queue_us;
    read_instances(v, &s);
    live_numbers_put_row(n, title, v->number, &s);
    n->total.instances += s.instances;
    n->total.busy += s.busy;
    n->total.pending += s.pending;
    n->total.success += s.success;
    n->total.failed += s.failed;
    n->total.inferences += s.inferences;
    n->total.executions += s.executions;
    n->total.request_us += s.request_us;
    n->total.queue_us += s.queue_us;
    if (n->model && strcmp(n->model, title) != 0)
        return;
    if (s.success)
        add_latencies(n, v->stats);
    if (s.executions)
        add_batches(n, v->stats);
}

/* The buckets that counted anything: their longest duration in us, and how many. */
static void put_latencies(struct strbuf *to, const struct histogram_counts *c)
{
    const char *comma = "";
    strbuf_puts(to, ",\"latency_us\":[");
    for (uint32_t i = 0; i < HISTOGRAM_BUCKETS; i++) {
        if (!c->buckets[i])
            continue;
        strbuf_printf(to, "%s[%" PRIu64 ",%" PRIu64 "]", comma, histogram_upper_us(i),
                      c->buckets[i]);
        comma = ",";
    }
    strbuf_puts(to, "],\"batches\":[");
}

/* How many runs had a batch of at most 1, 2, 4 ... rows, and how many there were. */
static void put_batches(struct strbuf *to, const struct metrics_batches *b)
{
    for (size_t i = 0; i < METRICS_PAGE_BATCH_BOUNDS; i++)
        strbuf_printf(to, "%" PRIu64 ",", b->at_most[i]);
    strbuf_printf(to, "%" PRIu64 "]", b->count);
}

static void live_numbers_put(struct strbuf *to, struct server *s, struct table_view *view,
                             const struct live_numbers *n)
{
    static const char *const modes[] = {[OPTIONS_CONTROL_NONE] = "none",
                                        [OPTIONS_CONTROL_POLL] = "poll",
                                        [OPTIONS_CONTROL_EXPLICIT] = "explicit"};
    strbuf_printf(to,
                  "{\"generation\":%" PRIu64 ",\"now_ms\":%" PRIu64 ",\"started_ms\":%" PRIu64
                  ",\"ready\":%s,\"control\":\"%s\",\"budget\":[%zu,%zu],\"left_out\":%" PRIu32
                  ",\"errors\":%" PRIu64,
                  view->generation, clock_wall_ns() / 1000000, s->start_wall_ns / 1000000,
                  server_ready(s, view) ? "true" : "false", modes[s->options->control_mode],
                  budget_in_use(), budget_limit(), n->left_out, recent_noted(s->recent));
    strbuf_puts(to, ",\"total\":[");
    put_sums(to, &n->total);
    strbuf_puts(to, "],\"failures\":{");
    for (int i = 0; i < STATS_REASONS; i++)
        strbuf_printf(to, "%s\"%s\":%" PRIu64, i ? "," : "",
                      stats_reason_name((enum stats_reason)i), n->failures[i]);
    strbuf_putc(to, '}');
    put_latencies(to, &n->latencies);
    put_batches(to, &n->batches);
    strbuf_puts(to, ",\"versions\":[");
    strbuf_puts(to, strbuf_str(&n->rows));
    strbuf_puts(to, "]}");
}

char *live_numbers_new(struct server *s, struct table_view *view, const char *model, size_t len,
                       size_t *ret_len)
{
    struct live_numbers *n = MEM_NEW(struct live_numbers);
    char *asked = NULL;
    if (len) {
        asked = mem_strndup(model, len);
        asked[url_unescape(asked, len, false)] = '\0';
        n->model = asked;
    }
    uint32_t count;
    const struct table_model *models = table_models(view, &count);
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t k = 0; k < models[i].entry_count; k++)
            if (models[i].entries[k].version)
                add_version(n, table_title(&models[i]), models[i].entries[k].version);
    struct strbuf text = STRBUF_INIT;
    live_numbers_put(&text, s, view, n);
    strbuf_fini(&n->rows);
    mem_free(asked);
    mem_free(n);
    *ret_len = text.len;
    return strbuf_take(&text);
}
