#include "metrics/histogram.h"

#include "base/mem.h"
#include "os/thread.h"
#include "support/unit.h"

static struct histogram_counts *read_all(const struct histogram *h)
{
    static struct histogram_counts c;
    c = (struct histogram_counts){0};
    histogram_read(h, &c);
    return &c;
}

/* The bucket that a duration falls into, found from outside. */
static uint32_t bucket_of(uint64_t ns)
{
    struct histogram h = {0};
    histogram_record(&h, ns);
    const struct histogram_counts *c = read_all(&h);
    histogram_fini(&h);
    assert_int_equal(c->total, 1);
    uint32_t i = 0;
    while (!c->buckets[i])
        i++;
    return i;
}

static void bounds(void **state)
{
    (void)state;
    for (uint32_t i = 1; i < HISTOGRAM_BUCKETS; i++) {
        uint64_t lower = histogram_upper_us(i - 1);
        uint64_t upper = histogram_upper_us(i);
        assert_true(upper > lower);
        assert_true(i < 8 || (upper - lower) * 8 <= lower); /* at most 12.5 % wide */
        assert_int_equal(bucket_of(lower * 1000 + 1), i);
        assert_int_equal(bucket_of(upper * 1000), i);
    }
    assert_int_equal(bucket_of(0), 0);
    assert_int_equal(bucket_of(1), 0);
    assert_int_equal(bucket_of(1000), 0);
    assert_int_equal(bucket_of(1001), 1);
    assert_int_equal(bucket_of(UINT64_MAX), HISTOGRAM_BUCKETS - 1);
}

/* Counts at powers of two are exact: 100 durations on each side of a bound. */
static void at_most_is_exact(void **state)
{
    (void)state;
    for (uint64_t bound = 1; bound <= 1u << 24; bound *= 2) {
        struct histogram h = {0};
        for (int i = 0; i < 100; i++) {
            histogram_record(&h, bound * 1000);
            histogram_record(&h, bound * 1000 + 1);
        }
        assert_int_equal(histogram_at_most(read_all(&h), bound), 100);
        histogram_fini(&h);
    }
}

static void percentiles(void **state)
{
    (void)state;
    struct histogram h = {0};
    assert_true(histogram_percentile_us(read_all(&h), 0.5) == 0);
    for (uint64_t us = 1; us <= 10000; us++)
        histogram_record(&h, us * 1000);
    const struct histogram_counts *c = read_all(&h);
    const double fractions[] = {0.01, 0.1, 0.5, 0.9, 0.99, 0.999, 1.0};
    for (size_t i = 0; i < sizeof(fractions) / sizeof(fractions[0]); i++) {
        double expected = fractions[i] * 10000;
        double got = histogram_percentile_us(c, fractions[i]);
        assert_true(got > expected * 0.93 && got < expected * 1.07);
    }
    assert_true(histogram_percentile_us(c, 0) <= 1);
    histogram_fini(&h);
}

/* Memory is there for what is used only: a decade costs a page or two. */
static void pages_on_demand(void **state)
{
    (void)state;
    struct histogram h = {0};
    for (uint64_t us = 20; us < 200; us++)
        histogram_record(&h, us * 1000);
    int pages = 0;
    for (uint32_t i = 0; i < HISTOGRAM_PAGES; i++)
        pages += h.pages[i] != NULL;
    assert_true(pages <= 2);
    histogram_fini(&h);
}

#define THREADS 4
#define EACH    20000u

static void record_many(void *arg)
{
    for (uint64_t i = 0; i < EACH; i++)
        histogram_record(arg, (i * 7919) % 5000000);
}

/* No count is lost, also when threads add the same page at once. */
static void many_threads(void **state)
{
    (void)state;
    struct histogram h = {0};
    struct thread *threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        unit_succeeds(thread_start("record", record_many, &h, &threads[i]));
    for (int i = 0; i < 20; i++)
        assert_true(read_all(&h)->total <= THREADS * EACH);
    for (int i = 0; i < THREADS; i++)
        thread_join(threads[i]);
    assert_int_equal(read_all(&h)->total, THREADS * EACH);
    histogram_fini(&h);
}

UNIT_MAIN(UNIT(bounds), UNIT(at_most_is_exact), UNIT(percentiles), UNIT(pages_on_demand),
          UNIT(many_threads))
