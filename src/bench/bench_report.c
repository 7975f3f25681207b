#include "bench/bench_report.h"

#include "base/mem.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#define BUSY 0.9 /* of a core: then the load tester itself may be what limits */

static const double percentiles[] = {50, 90, 95, 99};
#define PERCENTILES (sizeof(percentiles) / sizeof(*percentiles))

static const char *level_name(const struct bench_options *o)
{
    return o->rate.given ? "Request Rate" : "Concurrency";
}

static double not_below_0(double ns)
{
    return ns > 0 ? ns : 0;
}

/* Whole microseconds. */
static uint64_t bench_us(double ns)
{
    return (uint64_t)(ns / 1000 + 0.5);
}

static double bench_mean_ns(uint64_t sum, uint64_t count)
{
    return count ? (double)sum / (double)count : 0;
}

struct bench_parts bench_report_parts(const struct bench_window *w)
{
    const struct bench_statistics *s = &w->server;
    uint64_t answered = s->success.count;
    double mean = bench_histogram_mean(&w->latencies);
    struct bench_parts p = {
        .send = bench_mean_ns(w->send_ns, w->latencies.count),
        .receive = bench_mean_ns(w->receive_ns, w->latencies.count),
        .queue = bench_mean_ns(s->queue.ns, answered),
        .input = bench_mean_ns(s->input.ns, answered),
        .infer = bench_mean_ns(s->infer.ns, answered),
        .output = bench_mean_ns(s->output.ns, answered),
    };
    p.network = not_below_0(mean - p.send - p.receive - p.queue - p.input - p.infer - p.output);
    return p;
}

static double bench_inferences(const struct bench_options *o, const struct bench_window *w)
{
    return bench_window_rate(w) * o->batch_size;
}

void bench_report_settings(const struct bench_options *o, struct strbuf *to)
{
    strbuf_puts(to, "*** Measurement Settings ***\n");
    strbuf_printf(to, "  Batch size: %u\n  Service Kind: %s at %s\n", o->batch_size,
                  o->protocol == BENCH_GRPC ? "gRPC" : "HTTP", o->address);
    strbuf_printf(to, "  Measurement window: %u msec\n", o->interval_ms);
    if (o->percentile > 0)
        strbuf_printf(to, "  Stabilizing using p" BENCH_OPTIONS_NUMBER " latency\n\n",
                      o->percentile);
    else
        strbuf_puts(to, "  Stabilizing using average latency\n\n");
}

static void put_client(const struct bench_options *o, const struct bench_result *r,
                       struct strbuf *to)
{
    const struct bench_window *w = &r->measured;
    const struct bench_histogram *h = &w->latencies;
    struct bench_parts p = bench_report_parts(w);
    double mean = bench_histogram_mean(h);
    strbuf_printf(to, "  Client:\n    Request count: %" PRIu64 "\n", h->count);
    strbuf_printf(to, "    Throughput: %.2f infer/sec\n", bench_inferences(o, w));
    if (w->responses)
        strbuf_printf(to, "    Response Throughput: %.2f responses/sec\n",
                      bench_mean_ns(w->responses, w->ended - w->begun) * 1e9);
    strbuf_printf(to, "    Avg latency: %" PRIu64 " usec (standard deviation %" PRIu64 " usec)\n",
                  bench_us(mean), bench_us(bench_histogram_deviation(h)));
    for (size_t i = 0; i < PERCENTILES; i++)
        strbuf_printf(to, "    p" BENCH_OPTIONS_NUMBER " latency: %" PRIu64 " usec\n",
                      percentiles[i], bench_us(bench_histogram_percentile(h, percentiles[i])));
    if (o->percentile > 0)
        strbuf_printf(
            to, "    p" BENCH_OPTIONS_NUMBER " latency, which has to be stable: %" PRIu64 " usec\n",
            o->percentile, bench_us(bench_histogram_percentile(h, o->percentile)));
    strbuf_printf(to,
                  "    Avg %s time: %" PRIu64 " usec (send/recv %" PRIu64
                  " usec + response wait %" PRIu64 " usec)\n",
                  o->protocol == BENCH_GRPC ? "gRPC" : "HTTP", bench_us(mean),
                  bench_us(p.send + p.receive), bench_us(mean - p.send - p.receive));
    double core = bench_mean_ns(w->cpu_ns, w->ended - w->begun);
    strbuf_printf(to, "    Load tester: %.2f usec of CPU a request, %.0f%% of a core\n",
                  bench_mean_ns(w->cpu_ns, h->count) / 1000, core * 100);
    if (core > BUSY)
        strbuf_puts(to, "    The load tester is busy itself: the server may be faster than this\n");
    if (o->rate.given)
        strbuf_printf(to, "    Delayed requests: %" PRIu64 "\n", w->late);
}

static void put_server(const struct bench_window *w, struct strbuf *to)
{
    const struct bench_statistics *s = &w->server;
    uint64_t n = s->success.count;
    struct bench_parts p = bench_report_parts(w);
    double mean = bench_mean_ns(s->success.ns, n);
    strbuf_printf(to,
                  "  Server:\n    Inference count: %" PRIu64 "\n    Execution count: %" PRIu64
                  "\n    Successful request count: %" PRIu64 "\n",
                  s->inferences, s->executions, n);
    if (s->cache_hit.count || s->cache_miss.count)
        strbuf_printf(to, "    Cache hit count: %" PRIu64 "\n    Cache miss count: %" PRIu64 "\n",
                      s->cache_hit.count, s->cache_miss.count);
    strbuf_printf(to,
                  "    Avg request latency: %" PRIu64 " usec (overhead %" PRIu64
                  " usec + queue %" PRIu64 " usec + compute input %" PRIu64
                  " usec + compute infer %" PRIu64 " usec + compute output %" PRIu64 " usec)\n",
                  bench_us(mean),
                  bench_us(not_below_0(mean - p.queue - p.input - p.infer - p.output)),
                  bench_us(p.queue), bench_us(p.input), bench_us(p.infer), bench_us(p.output));
}

/* Windows without an answer have no latency. */
static bool put_unanswered(const struct bench_options *o, const struct bench_result *r,
                           struct strbuf *to)
{
    if (r->measured.latencies.count)
        return false;
    strbuf_printf(to,
                  "  No request was answered within a window of %u msec: make "
                  "--measurement-interval (-p) longer than an answer takes\n\n",
                  o->interval_ms);
    return true;
}

void bench_report_level(const struct bench_options *o, const struct bench_result *r,
                        struct strbuf *to)
{
    strbuf_printf(to, "Request %s: " BENCH_OPTIONS_NUMBER "\n",
                  o->rate.given ? "Rate" : "concurrency", r->level);
    if (put_unanswered(o, r, to))
        return;
    put_client(o, r, to);
    if (r->measured.server.known)
        put_server(&r->measured, to);
    if (!r->steady)
        strbuf_printf(to,
                      "  Not stable within %u windows: try a longer --measurement-interval, or a "
                      "larger --stability-percentage\n",
                      r->trials);
    strbuf_putc(to, '\n');
}

static void put_rate(const struct bench_options *o, const struct bench_window *w, struct strbuf *to)
{
    if (w->latencies.count)
        strbuf_printf(to, "%.2f infer/sec, latency %" PRIu64 " usec", bench_inferences(o, w),
                      bench_us(bench_window_latency(w, o->percentile)));
    else
        strbuf_puts(to, "no answer");
}

void bench_report_window(const struct bench_options *o, uint32_t trial,
                         const struct bench_window *w, struct strbuf *to)
{
    strbuf_printf(to, "  window %u of at most %u: ", trial, o->max_trials);
    put_rate(o, w, to);
}

void bench_report_summary(const struct bench_options *o, const struct bench_result *results,
                          uint32_t count, struct strbuf *to)
{
    if (o->percentile > 0)
        strbuf_printf(to, "Inferences/Second vs. Client p" BENCH_OPTIONS_NUMBER " Batch Latency\n",
                      o->percentile);
    else
        strbuf_puts(to, "Inferences/Second vs. Client Average Batch Latency\n");
    for (uint32_t i = 0; i < count; i++) {
        bool answered = results[i].measured.latencies.count > 0;
        strbuf_printf(to, "%s: " BENCH_OPTIONS_NUMBER ", %s", level_name(o), results[i].level,
                      answered ? "throughput: " : "");
        put_rate(o, &results[i].measured, to);
        strbuf_putc(to, '\n');
    }
}

static int by_throughput(const void *a, const void *b)
{
    const struct bench_result *const *x = a, *const *y = b;
    double first = bench_window_rate(&(*x)->measured), second = bench_window_rate(&(*y)->measured);
    return (first > second) - (first < second);
}

static void put_row(const struct bench_options *o, const struct bench_result *r, bool server,
                    struct strbuf *to)
{
    struct bench_parts p = bench_report_parts(&r->measured);
    const struct bench_histogram *h = &r->measured.latencies;
    strbuf_printf(to, BENCH_OPTIONS_NUMBER ",%.2f,%" PRIu64, r->level,
                  bench_inferences(o, &r->measured), bench_us(p.send));
    if (server)
        strbuf_printf(to, ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64,
                      bench_us(p.network), bench_us(p.queue), bench_us(p.input), bench_us(p.infer),
                      bench_us(p.output));
    strbuf_printf(to, ",%" PRIu64, bench_us(p.receive));
    for (size_t i = 0; i < PERCENTILES; i++)
        strbuf_printf(to, ",%" PRIu64, bench_us(bench_histogram_percentile(h, percentiles[i])));
    if (o->percentile > 0)
        strbuf_printf(to, ",%" PRIu64, bench_us(bench_histogram_percentile(h, o->percentile)));
    strbuf_putc(to, '\n');
}

/* A percentile of its own has a column unless it is among the usual ones. */
static bool is_usual_percentile(double percentile)
{
    for (size_t i = 0; i < PERCENTILES; i++)
        if (fabs(percentiles[i] - percentile) < 1e-9)
            return true;
    return false;
}

void bench_report_csv(const struct bench_options *o, const struct bench_result *results,
                      uint32_t count, struct strbuf *to)
{
    struct bench_options own = *o;
    const struct bench_result **sorted = mem_alloc((count + 1) * sizeof(struct bench_result *));
    bool server = true;
    if (is_usual_percentile(o->percentile))
        own.percentile = 0;
    uint32_t rows = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (!results[i].measured.latencies.count)
            continue;
        sorted[rows++] = &results[i];
        server = server && results[i].measured.server.known;
    }
    qsort(sorted, rows, sizeof(struct bench_result *), by_throughput);
    strbuf_printf(to, "%s,Inferences/Second,Client Send,", level_name(o));
    if (server)
        strbuf_puts(to, "Network+Server Send/Recv,Server Queue,Server Compute Input,Server Compute "
                        "Infer,Server Compute Output,");
    strbuf_puts(to, "Client Recv");
    for (size_t i = 0; i < PERCENTILES; i++)
        strbuf_printf(to, ",p" BENCH_OPTIONS_NUMBER " latency", percentiles[i]);
    if (own.percentile > 0)
        strbuf_printf(to, ",p" BENCH_OPTIONS_NUMBER " latency", own.percentile);
    strbuf_putc(to, '\n');
    for (uint32_t i = 0; i < rows; i++)
        put_row(&own, sorted[i], server, to);
    mem_free(sorted);
}
