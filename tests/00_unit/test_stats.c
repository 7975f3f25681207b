#include "infer/stats.h"

#include "base/mem.h"
#include "os/thread.h"
#include "support/unit.h"

static const struct stats_compute compute = {2000, 5000, 15000, 22000};

/* A success adds what the backend reported; the request ends when it is reported. */
static void success(void **state)
{
    (void)state;
    struct stats *s = stats_new();
    struct stats_sums sums;
    stats_sum(s, &sums);
    assert_int_equal(sums.success.count, 0);
    assert_int_equal(sums.last_inference_ms, 0);
    stats_success(s, 1000, 1500, &compute, 31000, 4);
    stats_success(s, 1000, 1500, &compute, 41000, 0);
    stats_sum(s, &sums);
    assert_int_equal(sums.inference_count, 5);
    assert_int_equal(sums.success.count, 2);
    assert_int_equal(sums.success.ns, 70000);
    assert_int_equal(sums.queue.count, 2);
    assert_int_equal(sums.queue.ns, 1000);
    assert_int_equal(sums.compute_input.ns, 6000);
    assert_int_equal(sums.compute_infer.ns, 20000);
    assert_int_equal(sums.compute_output.ns, 14000);
    assert_int_equal(sums.compute_output.count, 2);
    assert_int_equal(sums.request_us, 70);
    assert_int_equal(sums.compute_output_us, 14);
    assert_int_equal(sums.execution_count, 0);
    stats_free(s);
}

static void failures(void **state)
{
    (void)state;
    struct stats *s = stats_new();
    struct stats_sums sums;
    stats_failure(s, STATS_REJECTED, 100, 400);
    stats_failure(s, STATS_CANCELED, 100, 200);
    stats_failure(s, STATS_CANCELED, 0, 200);
    stats_failure(s, STATS_BACKEND, 300, 200);
    stats_sum(s, &sums);
    assert_int_equal(sums.fail.count, 4);
    assert_int_equal(sums.fail.ns, 400);
    assert_int_equal(sums.failures[STATS_REJECTED], 1);
    assert_int_equal(sums.failures[STATS_CANCELED], 2);
    assert_int_equal(sums.failures[STATS_BACKEND], 1);
    assert_int_equal(sums.failures[STATS_OTHER], 0);
    assert_int_equal(sums.success.count, 0);
    assert_string_equal(stats_reason_name(STATS_CANCELED), "CANCELED");
    assert_string_equal(stats_reason_name(STATS_OTHER), "OTHER");
    stats_free(s);
}

/* reads MC-107: executions by batch size. */
static void batches(void **state)
{
    (void)state;
    struct stats *s = stats_new();
    struct stats_batch_sums *all;
    struct stats_sums sums;
    assert_int_equal(stats_sum_batches(s, &all), 0);
    assert_null(all);
    for (uint32_t size = 40; size > 0; size--)
        stats_batch(s, size, &compute, 5000000);
    stats_batch(s, 17, &compute, 7000000);
    stats_batch(s, 0, &compute, 6000000);
    size_t n = stats_sum_batches(s, &all);
    assert_int_equal(n, 40);
    for (size_t i = 0; i < n; i++) {
        uint64_t count = i + 1 == 17 || i == 0 ? 2 : 1;
        assert_int_equal(all[i].batch_size, i + 1);
        assert_int_equal(all[i].compute_infer.count, count);
        assert_int_equal(all[i].compute_infer.ns, count * 10000);
        assert_int_equal(all[i].compute_input.ns, count * 3000);
        assert_int_equal(all[i].compute_output.ns, count * 7000);
    }
    mem_free(all);
    stats_sum(s, &sums);
    assert_int_equal(sums.execution_count, 42);
    assert_int_equal(sums.last_inference_ms, 7);
    assert_int_equal(sums.inference_count, 0);
    stats_free(s);
}

/* A hit is a success without compute; a miss only makes its request longer. */
static void cache(void **state)
{
    (void)state;
    struct stats *s = stats_new();
    struct stats_sums sums;
    stats_cache_hit(s, 100, 200, 500, 40, 600);
    stats_cache_miss(s, 30);
    stats_success(s, 1000, 1500, &compute, 31000, 1);
    stats_sum(s, &sums);
    assert_int_equal(sums.success.count, 2);
    assert_int_equal(sums.success.ns, 500 + 30 + 30000);
    assert_int_equal(sums.queue.count, 2);
    assert_int_equal(sums.queue.ns, 300 + 500);
    assert_int_equal(sums.compute_infer.count, 1);
    assert_int_equal(sums.inference_count, 1);
    assert_int_equal(sums.cache_hit.count, 1);
    assert_int_equal(sums.cache_hit.ns, 40);
    assert_int_equal(sums.cache_miss.count, 1);
    assert_int_equal(sums.cache_miss.ns, 30);
    stats_free(s);
}

static uint64_t counted(struct stats *s, enum stats_hist_kind kind, uint64_t *ret_sum_ns)
{
    struct histogram_counts *counts = MEM_NEW(struct histogram_counts);
    stats_sum_hist(s, kind, counts, ret_sum_ns);
    uint64_t total = counts->total;
    mem_free(counts);
    return total;
}

/* The distributions of what only summaries show; not before they are asked for. */
static void parts(void **state)
{
    (void)state;
    for (int kept = 0; kept < 2; kept++) {
        struct stats *s = stats_new();
        uint64_t sum;
        if (kept)
            stats_keep_parts();
        stats_cache_hit(s, 100, 200, 500, 40, 600);
        stats_cache_hit(s, 100, 200, 500, 20, 600);
        stats_cache_miss(s, 30);
        stats_success(s, 1000, 1500, &compute, 31000, 1);
        assert_int_equal(counted(s, STATS_HIST_CACHE_HIT, &sum), kept ? 2 : 0);
        assert_int_equal(sum, 60);
        assert_int_equal(counted(s, STATS_HIST_CACHE_MISS, &sum), kept ? 1 : 0);
        assert_int_equal(sum, 30);
        assert_int_equal(counted(s, STATS_HIST_INFER, &sum), kept ? 1 : 0);
        assert_int_equal(sum, 10000);
        assert_int_equal(counted(s, STATS_HIST_QUEUE, &sum), 3);
        stats_free(s);
    }
}

/* A backend may report anything: nothing runs below zero. */
static void times_that_run_backwards(void **state)
{
    (void)state;
    struct stats *s = stats_new();
    struct stats_sums sums;
    const struct stats_compute odd = {9000, 5000, 0, 1};
    stats_success(s, 50000, 10000, &odd, 40000, 1);
    stats_success(s, 0, 0, &odd, 40000, 1);
    stats_batch(s, 1, &odd, 0);
    const struct stats_compute never = {UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX};
    const struct stats_compute ages = {1, INT64_MAX, UINT64_MAX, UINT64_MAX};
    stats_success(s, 50000, 10000, &never, 40000, 1);
    stats_success(s, 50000, 10000, &ages, 40000, 1);
    stats_sum(s, &sums);
    assert_int_equal(sums.success.ns, 0);
    assert_int_equal(sums.queue.ns, 0);
    assert_int_equal(sums.compute_input.ns, 0);
    assert_int_equal(sums.compute_infer.ns, 0);
    assert_int_equal(sums.compute_output.ns, 0);
    stats_free(s);
}

/* The end that a backend reports is taken where it can be: no earlier than the statistics, and of
 * the same clock. */
static void end_of_an_execution(void **state)
{
    (void)state;
    time_ns before = clock_now_ns();
    struct stats *s = stats_new();
    time_ns since = clock_now_ns();
    struct stats_compute c = {.end = since};
    assert_int_equal(stats_ended(s, &c), since);
    const time_ns odd[] = {0, before - 1, clock_wall_ns(), UINT64_MAX};
    for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++) {
        c.end = odd[i];
        time_ns ended = stats_ended(s, &c);
        assert_true(ended >= since && ended <= clock_now_ns());
    }
    stats_free(s);
}

static void distributions(void **state)
{
    (void)state;
    struct stats *s = stats_new();
    static struct histogram_counts c;
    uint64_t sum_ns;
    for (uint64_t i = 1; i <= 1000; i++)
        stats_success(s, 1000, 1500, &compute, 1000 + i * 1000000, 1);
    stats_sum_hist(s, STATS_HIST_REQUEST, &c, &sum_ns);
    assert_int_equal(c.total, 1000);
    assert_true(sum_ns == 500500ull * 1000000);
    assert_true(histogram_percentile_us(&c, 0.5) > 460000 &&
                histogram_percentile_us(&c, 0.5) < 540000);
    stats_sum_hist(s, STATS_HIST_QUEUE, &c, &sum_ns);
    assert_int_equal(histogram_at_most(&c, 1), 1000);
    assert_int_equal(sum_ns, 500 * 1000);
    stats_sum_hist(s, STATS_HIST_COMPUTE, &c, &sum_ns);
    assert_int_equal(histogram_at_most(&c, 16), 0);
    assert_int_equal(histogram_at_most(&c, 32), 1000);
    assert_int_equal(sum_ns, 20000 * 1000);
    stats_free(s);
}

#define THREADS 12 /* more than slots */
#define EACH    3000

static void record(void *arg)
{
    for (uint32_t i = 0; i < EACH; i++) {
        stats_success(arg, 1000, 1500, &compute, 31000, 2);
        stats_batch(arg, 1 + i % 20, &compute, 5000000);
    }
}

static void many_threads(void **state)
{
    (void)state;
    struct stats *s = stats_new();
    struct thread *threads[THREADS];
    struct stats_sums sums;
    struct stats_batch_sums *all;
    for (int i = 0; i < THREADS; i++)
        unit_succeeds(thread_start("record", record, s, &threads[i]));
    stats_sum(s, &sums);
    assert_true(sums.success.count <= THREADS * EACH);
    for (int i = 0; i < THREADS; i++)
        thread_join(threads[i]);
    stats_sum(s, &sums);
    assert_int_equal(sums.success.count, THREADS * EACH);
    assert_int_equal(sums.inference_count, THREADS * EACH * 2);
    assert_int_equal(sums.execution_count, THREADS * EACH);
    assert_int_equal(stats_sum_batches(s, &all), 20);
    assert_int_equal(all[3].compute_input.count, THREADS * EACH / 20);
    mem_free(all);
    stats_free(s);
    stats_free(NULL);
}

UNIT_MAIN(UNIT(success), UNIT(failures), UNIT(batches), UNIT(cache), UNIT(parts),
          UNIT(times_that_run_backwards), UNIT(end_of_an_execution), UNIT(distributions),
          UNIT(many_threads))
