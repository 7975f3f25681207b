#include "infer/tally.h"

#include "base/mem.h"
#include "infer/first_response.h"
#include "infer/stats.h"
#include "support/unit.h"

static const struct stats_compute compute = {2000, 5000, 15000, 22000};

static uint64_t successes(const struct tally_part *part, const struct stats *own)
{
    struct stats *total = tally_total(part);
    struct stats_sums sums;
    stats_sum(total ? total : own, &sums);
    stats_free(total);
    return sums.success.count;
}

/* What replaces a load goes on with its numbers, which grow while the old one still finishes
 * requests. */
static void goes_on(void **state)
{
    (void)state;
    struct stats *was = stats_new();
    struct stats *is = stats_new();
    struct tally_part before = {0};
    struct tally_part after = {0};
    struct tally *t = tally_new();
    tally_join(tally_ref(t), &before, was, NULL);
    stats_success(was, 1000, 1500, &compute, 31000, 4);
    assert_null(tally_total(&before)); /* alone: its own numbers are all */
    tally_join(t, &after, is, NULL);
    stats_success(was, 1000, 1500, &compute, 31000, 1);
    stats_failure(was, STATS_BACKEND, 1000, 2000);
    stats_batch(was, 4, &compute, 7000000);
    assert_int_equal(successes(&after, is), 2);
    tally_leave(&before);
    stats_free(was);
    stats_success(is, 1000, 1500, &compute, 31000, 1);
    stats_batch(is, 4, &compute, 8000000);

    struct stats *total = tally_total(&after);
    struct stats_sums sums;
    stats_sum(total, &sums);
    assert_int_equal(sums.success.count, 3);
    assert_int_equal(sums.inference_count, 6);
    assert_int_equal(sums.failures[STATS_BACKEND], 1);
    assert_int_equal(sums.success.ns, 3 * 30000);
    assert_int_equal(sums.last_inference_ms, 8);
    struct histogram_counts counts;
    uint64_t sum_ns;
    stats_sum_hist(total, STATS_HIST_COMPUTE, &counts, &sum_ns);
    assert_int_equal(counts.total, 3);
    struct stats_batch_sums *batches;
    assert_int_equal(stats_sum_batches(total, &batches), 1);
    assert_int_equal(batches[0].compute_infer.count, 2);
    mem_free(batches);
    stats_free(total);
    stats_sum(is, &sums);
    assert_int_equal(sums.success.count, 1); /* the protocol's statistics are those of one load */
    tally_leave(&after);
    stats_free(is);
}

static void belongs_to_none(void **state)
{
    (void)state;
    struct tally_part part = {0};
    assert_null(tally_total(&part));
    tally_leave(&part);
}

/* Several, since what a stack still points to is no leak. */
static void the_last_load_takes_it_along(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 8; i++) {
        struct stats *stats = stats_new();
        struct tally_part part = {0};
        tally_join(tally_new(), &part, stats, NULL);
        tally_leave(&part);
        assert_null(part.tally);
        stats_free(stats);
    }
}

UNIT_MAIN(UNIT(goes_on), UNIT(belongs_to_none), UNIT(the_last_load_takes_it_along))
