#pragma once
/* Counts latencies for percentiles with an error below half a percent, in memory of one size
 * however many there are: 256 buckets per octave of nanoseconds. One thread. */
#include <stdint.h>

#define BENCH_HISTOGRAM_OCTAVES 34u /* up to 2^41 ns, half an hour; longer ones count as that */
#define BENCH_HISTOGRAM_BUCKETS (BENCH_HISTOGRAM_OCTAVES * 256u)

/* All zeros is empty. */
struct bench_histogram {
    uint64_t count;
    double sum; /* ns */
    double sum_of_squares;
    uint32_t buckets[BENCH_HISTOGRAM_BUCKETS];
};

void bench_histogram_add(struct bench_histogram *h, uint64_t ns);

/* bench_histogram_merge - add all that `from` has counted. */
void bench_histogram_merge(struct bench_histogram *into, const struct bench_histogram *from);

/* bench_histogram_percentile - ns that `percent` (0 to 100) of all did not exceed; the mean and the
 * standard deviation are exact. 0 if there are none. */
double bench_histogram_percentile(const struct bench_histogram *h, double percent);
double bench_histogram_mean(const struct bench_histogram *h);
double bench_histogram_deviation(const struct bench_histogram *h);
