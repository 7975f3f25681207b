#pragma once
/* A latency histogram that is always on: log-linear, 8 buckets an octave of microseconds, so
 * that a bucket is at most 12.5 % wide. Counters are relaxed atomics; their memory is allocated
 * by pages of four octaves when a value first falls there, so a model whose latencies stay
 * within a decade costs some hundred bytes. One histogram a thread slot, added up when read. */
#include <stdint.h>

#define HISTOGRAM_BUCKETS      288u /* up to 2^38 us; longer counts as that */
#define HISTOGRAM_PAGE_BUCKETS 32u
#define HISTOGRAM_PAGES        (HISTOGRAM_BUCKETS / HISTOGRAM_PAGE_BUCKETS)

struct histogram_page;

/* All zeros is empty. */
struct histogram {
    /* Published with release: the counters of a page are zero before. */
    _Atomic(struct histogram_page *) pages[HISTOGRAM_PAGES];
};

/* A reading: plain numbers that add up over histograms. All zeros is empty. */
struct histogram_counts {
    uint64_t total;
    uint64_t buckets[HISTOGRAM_BUCKETS];
};

/* histogram_record - count one duration. Any thread; some ns. */
void histogram_record(struct histogram *h, uint64_t ns);

/* histogram_read - add what was counted to *sum. Any thread. */
void histogram_read(const struct histogram *h, struct histogram_counts *sum);

/* histogram_absorb - add what another one counted. Any thread. */
void histogram_absorb(struct histogram *into, const struct histogram *from);

/* histogram_fini - free the pages; nobody may record any more. */
void histogram_fini(struct histogram *h);

/* histogram_upper_us - the longest duration that falls into a bucket, in us; the shortest is
 * just above that of the bucket before. */
uint64_t histogram_upper_us(uint32_t bucket);

/* histogram_at_most - how many durations were <= bound_us. Exact when the bound is a power of
 * two (or below 8), else up to the width of one bucket too few. */
uint64_t histogram_at_most(const struct histogram_counts *c, uint64_t bound_us);

/* histogram_percentile_us - the duration that `fraction` (0..1) of all did not exceed, between
 * the bounds of its bucket; 0 when there were none. */
double histogram_percentile_us(const struct histogram_counts *c, double fraction);
