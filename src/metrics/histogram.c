#include "metrics/histogram.h"

#include "base/mem.h"

#include <stdatomic.h>

#define SUB_BITS  3 /* 8 buckets an octave */
#define SUB       (1u << SUB_BITS)
#define MAX_VALUE ((1ull << 38) - 1)

struct histogram_page {
    /* Relaxed, because only the numbers matter. */
    atomic_uint_fast64_t counts[HISTOGRAM_PAGE_BUCKETS];
};

/* The bucket of a duration. A bucket is (lower, upper] us; with u = ceil(us) - 1 that is [lower,
 * upper) in whole numbers: one bucket for each number below 8, then 8 per octave. */
static uint32_t histogram_bucket(uint64_t ns)
{
    uint64_t u = ns ? (ns - 1) / 1000 : 0;
    if (u < SUB)
        return (uint32_t)u;
    if (u > MAX_VALUE)
        u = MAX_VALUE;
    uint32_t octave = 63u - (uint32_t)__builtin_clzll(u);
    return (octave - SUB_BITS + 1) * SUB + (uint32_t)((u >> (octave - SUB_BITS)) & (SUB - 1));
}

uint64_t histogram_upper_us(uint32_t bucket)
{
    if (bucket < SUB)
        return bucket + 1;
    uint32_t octave = bucket / SUB + SUB_BITS - 1;
    return ((uint64_t)SUB + bucket % SUB + 1) << (octave - SUB_BITS);
}

static struct histogram_page *add_page(struct histogram *h, uint32_t index)
{
    struct histogram_page *fresh = MEM_NEW(struct histogram_page);
    struct histogram_page *there = NULL;
    if (atomic_compare_exchange_strong_explicit(&h->pages[index], &there, fresh,
                                                memory_order_acq_rel, memory_order_acquire))
        return fresh;
    mem_free(fresh);
    return there;
}

void histogram_record(struct histogram *h, uint64_t ns)
{
    uint32_t bucket = histogram_bucket(ns);
    uint32_t index = bucket / HISTOGRAM_PAGE_BUCKETS;
    struct histogram_page *page = atomic_load_explicit(&h->pages[index], memory_order_acquire);
    if (!page)
        page = add_page(h, index);
    atomic_fetch_add_explicit(&page->counts[bucket % HISTOGRAM_PAGE_BUCKETS], 1,
                              memory_order_relaxed);
}

void histogram_read(const struct histogram *h, struct histogram_counts *sum)
{
    for (uint32_t i = 0; i < HISTOGRAM_PAGES; i++) {
        struct histogram_page *page = atomic_load_explicit(&h->pages[i], memory_order_acquire);
        if (!page)
            continue;
        for (uint32_t k = 0; k < HISTOGRAM_PAGE_BUCKETS; k++) {
            uint64_t n = atomic_load_explicit(&page->counts[k], memory_order_relaxed);
            sum->buckets[i * HISTOGRAM_PAGE_BUCKETS + k] += n;
            sum->total += n;
        }
    }
}

void histogram_absorb(struct histogram *into, const struct histogram *from)
{
    for (uint32_t i = 0; i < HISTOGRAM_PAGES; i++) {
        struct histogram_page *page = atomic_load_explicit(&from->pages[i], memory_order_acquire);
        struct histogram_page *mine = atomic_load_explicit(&into->pages[i], memory_order_acquire);
        if (page && !mine)
            mine = add_page(into, i);
        for (uint32_t k = 0; page && k < HISTOGRAM_PAGE_BUCKETS; k++)
            atomic_fetch_add_explicit(&mine->counts[k],
                                      atomic_load_explicit(&page->counts[k], memory_order_relaxed),
                                      memory_order_relaxed);
    }
}

void histogram_fini(struct histogram *h)
{
    for (uint32_t i = 0; i < HISTOGRAM_PAGES; i++) {
        mem_free(atomic_load_explicit(&h->pages[i], memory_order_relaxed));
        atomic_store_explicit(&h->pages[i], NULL, memory_order_relaxed);
    }
}

uint64_t histogram_at_most(const struct histogram_counts *c, uint64_t bound_us)
{
    uint64_t n = 0;
    for (uint32_t i = 0; i < HISTOGRAM_BUCKETS && histogram_upper_us(i) <= bound_us; i++)
        n += c->buckets[i];
    return n;
}

double histogram_percentile_us(const struct histogram_counts *c, double fraction)
{
    if (c->total == 0)
        return 0;
    double rank = fraction * (double)c->total;
    double seen = 0;
    uint32_t last = 0;
    for (uint32_t i = 0; i < HISTOGRAM_BUCKETS; i++) {
        double here = (double)c->buckets[i];
        if (here == 0)
            continue;
        last = i;
        if (seen + here >= rank) {
            double lower = i ? (double)histogram_upper_us(i - 1) : 0;
            double part = rank > seen ? (rank - seen) / here : 0;
            return lower + ((double)histogram_upper_us(i) - lower) * part;
        }
        seen += here;
    }
    return (double)histogram_upper_us(last);
}
