#include "bench/bench_window.h"

#include <math.h>
#include <string.h>

double bench_window_rate(const struct bench_window *w)
{
    return w->ended > w->begun ? (double)w->latencies.count * 1e9 / (double)(w->ended - w->begun)
                               : 0;
}

double bench_window_latency(const struct bench_window *w, double percentile)
{
    return percentile > 0 ? bench_histogram_percentile(&w->latencies, percentile)
                          : bench_histogram_mean(&w->latencies);
}

static bool bench_within(const double *values, double percent)
{
    double sum = 0;
    for (uint32_t i = 0; i < BENCH_WINDOWS; i++)
        sum += values[i];
    double mean = sum / BENCH_WINDOWS;
    for (uint32_t i = 0; i < BENCH_WINDOWS; i++)
        if (fabs(values[i] - mean) > mean * percent / 100)
            return false;
    return true;
}

bool bench_window_steady(const struct bench_window *const *windows, double percentile,
                         double percent)
{
    double rates[BENCH_WINDOWS], latencies[BENCH_WINDOWS];
    for (uint32_t i = 0; i < BENCH_WINDOWS; i++) {
        if (!windows[i]->latencies.count)
            return false;
        rates[i] = bench_window_rate(windows[i]);
        latencies[i] = bench_window_latency(windows[i], percentile);
    }
    return bench_within(rates, percent) && bench_within(latencies, percent);
}

/* The time of the result is the sum of the windows' times, not from the first to the last. */
void bench_window_merge(const struct bench_window *const *windows, uint32_t count,
                        struct bench_window *ret)
{
    memset(ret, 0, sizeof(*ret));
    for (uint32_t i = 0; i < count; i++) {
        const struct bench_window *w = windows[i];
        ret->ended += w->ended - w->begun;
        ret->cpu_ns += w->cpu_ns;
        bench_histogram_merge(&ret->latencies, &w->latencies);
        ret->send_ns += w->send_ns;
        ret->receive_ns += w->receive_ns;
        ret->late += w->late;
        ret->responses += w->responses;
    }
    if (count) {
        ret->before = windows[0]->before;
        ret->after = windows[count - 1]->after;
        ret->server = bench_model_since(&ret->before, &ret->after);
    }
}
