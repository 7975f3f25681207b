#pragma once
/* What was measured, as text and as CSV, in the form that perf_analyzer gave them. Pure. */
#include "base/strbuf.h"
#include "bench/bench_load.h"
#include "bench/bench_options.h"

#include <stdint.h>

/* Where the time of a request went, on average, in ns. */
struct bench_parts {
    double send, network, queue, input, infer, output, receive;
};

struct bench_parts bench_report_parts(const struct bench_window *w);

/* bench_report_settings - what will be done, before the first level. */
void bench_report_settings(const struct bench_options *o, struct strbuf *to);

/* bench_report_level - one level.
 * bench_report_window - one line for one of its windows.
 * bench_report_summary - a line for each level. */
void bench_report_level(const struct bench_options *o, const struct bench_result *r,
                        struct strbuf *to);
void bench_report_window(const struct bench_options *o, uint32_t trial,
                         const struct bench_window *w, struct strbuf *to);
void bench_report_summary(const struct bench_options *o, const struct bench_result *results,
                          uint32_t count, struct strbuf *to);

/* bench_report_csv - a head and a row for each level with answers, by rising throughput. */
void bench_report_csv(const struct bench_options *o, const struct bench_result *results,
                      uint32_t count, struct strbuf *to);
