#pragma once
/* What was measured in a window of time, and when several windows say that a server is steady.
 * Pure. */
#include "bench/bench_histogram.h"
#include "bench/bench_model.h"
#include "os/clock.h"

#include <stdbool.h>
#include <stdint.h>

#define BENCH_WINDOWS 3u /* in a row that have to agree */

struct bench_window {
    time_ns begun, ended;
    uint64_t cpu_ns; /* that the load tester itself took */
    struct bench_histogram latencies;
    uint64_t send_ns, receive_ns;                  /* sums */
    uint64_t late;                                 /* requests sent after they were due */
    uint64_t responses;                            /* over streams */
    struct bench_statistics before, after, server; /* server: since before; of the window */
};

/* bench_window_rate - requests answered in a second. */
double bench_window_rate(const struct bench_window *w);

/* bench_window_latency - ns: the percentile, or the mean for percentile 0. */
double bench_window_latency(const struct bench_window *w, double percentile);

/* bench_window_steady - whether all BENCH_WINDOWS are within `percent` of their mean, in rate and
 * latency, and none is empty. */
bool bench_window_steady(const struct bench_window *const *windows, double percentile,
                         double percent);

/* bench_window_merge - several, in order, as one. */
void bench_window_merge(const struct bench_window *const *windows, uint32_t count,
                        struct bench_window *ret);
