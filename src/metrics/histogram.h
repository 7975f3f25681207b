#pragma once
/* A latency histogram that is always on. It is log-linear with 8 buckets per octave of
 * microseconds, so a bucket is at most 12.5 % wide. Counters are relaxed atomics. Their memory
 * is allocated in pages of four octaves when a value first falls there, so a model whose
 * latencies stay within a decade needs some hundred bytes. There is one histogram per thread
 * slot; readers sum them. */
#include <stdint.h>

#define HISTOGRAM_BUCKETS      288u /* up to 2^38 us; longer durations count as that */
#define HISTOGRAM_PAGE_BUCKETS 32u
#define HISTOGRAM_PAGES        (HISTOGRAM_BUCKETS / HISTOGRAM_PAGE_BUCKETS)

struct histogram_page;

/* All zeros is an empty histogram. */
struct histogram {
    /* Published with release, so that readers see zeroed counters. */
    _Atomic(struct histogram_page *) pages[HISTOGRAM_PAGES];
};

/* A reading: plain numbers that can be summed over histograms. All zeros is empty. */
struct histogram_counts {
    uint64_t total;
    uint64_t buckets[HISTOGRAM_BUCKETS];
};

/* histogram_record - count one duration. Any thread; some ns. */
void histogram_record(struct histogram *h, uint64_t ns);

/* histogram_read - add what was counted to *sum. Any thread. */
void histogram_read(const struct histogram *h, struct histogram_counts *sum);

/* histogram_absorb - add the counts of another histogram. Any thread. */
void histogram_absorb(struct histogram *into, const struct histogram *from);

/* histogram_fini - free the pages; no thread may record any more. */
void histogram_fini(struct histogram *h);

/* histogram_upper_us - the longest duration of a bucket, in us. The bucket begins just above the
 * upper bound of the one before. */
uint64_t histogram_upper_us(uint32_t bucket);

/* histogram_at_most - how many durations were <= bound_us. Exact if the bound is a power of two
 * (or below 8), else up to one bucket too few. */
uint64_t histogram_at_most(const struct histogram_counts *c, uint64_t bound_us);

/* histogram_percentile_us - the duration that a `fraction` (0..1) of all did not exceed,
 * interpolated within its bucket; 0 if there were none. */
double histogram_percentile_us(const struct histogram_counts *c, double fraction);
