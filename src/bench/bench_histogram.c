#include "bench/bench_histogram.h"

#include <math.h>

/* Below 512 ns each has a bucket of its own; from there on a bucket keeps the nine highest bits. */
static uint32_t bucket_of(uint64_t ns)
{
    if (ns < 512)
        return (uint32_t)ns;
    unsigned shift = 55u - (unsigned)__builtin_clzll(ns);
    uint64_t bucket = (uint64_t)shift * 256 + (ns >> shift);
    return bucket < BENCH_HISTOGRAM_BUCKETS ? (uint32_t)bucket : BENCH_HISTOGRAM_BUCKETS - 1;
}

static double middle_of(uint32_t bucket)
{
    if (bucket < 512)
        return bucket;
    unsigned shift = bucket / 256 - 1;
    return ((double)(bucket - shift * 256) + 0.5) * (double)(1ull << shift);
}

void bench_histogram_add(struct bench_histogram *h, uint64_t ns)
{
    double value = (double)ns;
    h->count++;
    h->sum += value;
    h->sum_of_squares += value * value;
    h->buckets[bucket_of(ns)]++;
}

void bench_histogram_merge(struct bench_histogram *into, const struct bench_histogram *from)
{
    into->count += from->count;
    into->sum += from->sum;
    into->sum_of_squares += from->sum_of_squares;
    for (uint32_t i = 0; i < BENCH_HISTOGRAM_BUCKETS; i++)
        into->buckets[i] += from->buckets[i];
}

double bench_histogram_percentile(const struct bench_histogram *h, double percent)
{
    if (!h->count)
        return 0;
    double wanted = (double)h->count * percent / 100;
    uint64_t seen = 0;
    for (uint32_t i = 0; i < BENCH_HISTOGRAM_BUCKETS; i++) {
        seen += h->buckets[i];
        if (seen && (double)seen >= wanted)
            return middle_of(i);
    }
    return middle_of(BENCH_HISTOGRAM_BUCKETS - 1);
}

double bench_histogram_mean(const struct bench_histogram *h)
{
    return h->count ? h->sum / (double)h->count : 0;
}

double bench_histogram_deviation(const struct bench_histogram *h)
{
    if (h->count < 2)
        return 0;
    double mean = bench_histogram_mean(h);
    double variance = h->sum_of_squares / (double)h->count - mean * mean;
    return variance > 0 ? sqrt(variance) : 0;
}
