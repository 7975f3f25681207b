#include "infer/first_response.h"

#include "infer/request.h"
#include "infer/response.h"
#include "model/config.h"
#include "os/thread.h"
#include "support/test_version.h"
#include "support/unit.h"

#include <stdio.h>

#define MS 1000000ull
#define CONFIG                                                                 \
    "name: 'm' backend: 'b' input { name: 'i' data_type: TYPE_FP32 dims: 1 } " \
    "output { name: 'o' data_type: TYPE_FP32 dims: 1 } "

static struct first_response *made(const char *metrics)
{
    char text[1024];
    snprintf(text, sizeof(text), "%s%s", CONFIG, metrics);
    struct model_config *config = test_version_config(text);
    struct first_response *f = first_response_new(config->proto);
    config_unref(config);
    return f;
}

static void expect_bounds(struct first_response *f, size_t count, const double *expected)
{
    const double *bounds;
    assert_int_equal(first_response_bounds(f, &bounds), count);
    for (size_t i = 0; i < count; i++)
        assert_true(bounds[i] == expected[i]);
}

static void not_unless_asked_for(void **state)
{
    (void)state;
    assert_null(made(""));
    first_response_free(NULL);
}

/* The bounds of the reference, and durations in whole milliseconds, cut off: 100.9 ms are not
 * above 100. */
static void usual_bounds(void **state)
{
    (void)state;
    first_response_keep();
    struct first_response *f = made("");
    expect_bounds(f, 4, (const double[]){100, 500, 2000, 5000});
    uint64_t counts[5], sum;
    first_response_read(f, counts, &sum);
    assert_int_equal(counts[0] + sum, 0);
    first_response_record(f, 5 * MS, 5 * MS + 100900000);
    first_response_record(f, 5 * MS, 106 * MS);
    first_response_record(f, 5 * MS, 4 * MS);
    first_response_record(f, 5 * MS, 5005 * MS);
    first_response_record(f, 5 * MS, 6005 * MS);
    first_response_read(f, counts, &sum);
    assert_int_equal(counts[0], 2);
    assert_int_equal(counts[1], 1);
    assert_int_equal(counts[2], 0);
    assert_int_equal(counts[3], 1);
    assert_int_equal(counts[4], 1);
    assert_int_equal(sum, 100 + 101 + 0 + 5000 + 6000);
    first_response_free(f);
}

#define BUCKETS(family, list)                               \
    "metric_control { metric_identifier { family: '" family \
    "' } histogram_options { buckets: [ " list " ] } } "

/* The last setting for the family holds; bounds in order, each once; what is no number is none;
 * other families have none to set. */
static void bounds_of_the_model(void **state)
{
    (void)state;
    struct first_response *f = made("model_metrics { " BUCKETS(FIRST_RESPONSE_FAMILY, "7")
                                        BUCKETS(FIRST_RESPONSE_FAMILY, "8, 0.5, inf, 8, nan, -1")
                                            BUCKETS("nv_inference_count", "1, 2") "}");
    expect_bounds(f, 3, (const double[]){-1, 0.5, 8});
    first_response_record(f, 0, 0);
    first_response_record(f, 0, MS);
    first_response_record(f, 0, 9 * MS);
    uint64_t counts[4], sum;
    first_response_read(f, counts, &sum);
    assert_int_equal(counts[0], 0);
    assert_int_equal(counts[1], 1);
    assert_int_equal(counts[2], 1);
    assert_int_equal(counts[3], 1);
    assert_int_equal(sum, 10);
    first_response_free(f);
    f = made("model_metrics { " BUCKETS(FIRST_RESPONSE_FAMILY, "inf") "}");
    expect_bounds(f, 0, NULL);
    first_response_record(f, 0, MS);
    first_response_read(f, counts, &sum);
    assert_int_equal(counts[0], 1);
    first_response_free(f);
}

/* Numbers of several loads are added where they count the same durations. */
static void readings_are_added(void **state)
{
    (void)state;
    struct first_response *f = made("");
    struct first_response *more = made("");
    struct first_response *others =
        made("model_metrics { " BUCKETS(FIRST_RESPONSE_FAMILY, "1, 2, 3, 4") "}");
    first_response_record(f, 0, 50 * MS);
    first_response_record(more, 0, 60 * MS);
    first_response_record(more, 0, 7000 * MS);
    first_response_record(others, 0, 50 * MS);
    uint64_t counts[5], sum;
    first_response_read(f, counts, &sum);
    first_response_add(more, f, counts, &sum);
    first_response_add(others, f, counts, &sum);
    assert_int_equal(counts[0], 2);
    assert_int_equal(counts[1] + counts[2] + counts[3], 0);
    assert_int_equal(counts[4], 1);
    assert_int_equal(sum, 50 + 60 + 7000);
    first_response_free(f);
    first_response_free(more);
    first_response_free(others);
}

#define EACH 2000u

static void record_many(void *arg)
{
    for (unsigned i = 0; i < EACH; i++)
        first_response_record(arg, 0, i * MS);
}

static void many_threads(void **state)
{
    (void)state;
    struct first_response *f = made("");
    struct thread *threads[4];
    for (unsigned i = 0; i < 4; i++)
        unit_succeeds(thread_start("record", record_many, f, &threads[i]));
    for (unsigned i = 0; i < 4; i++)
        thread_join(threads[i]);
    uint64_t counts[5], sum;
    first_response_read(f, counts, &sum);
    assert_int_equal(counts[0], 4 * 101);
    assert_int_equal(counts[1], 4 * 400);
    assert_int_equal(counts[2], 4 * (EACH - 501));
    assert_int_equal(counts[3] + counts[4], 0);
    assert_int_equal(sum, 4ull * EACH * (EACH - 1) / 2);
    first_response_free(f);
}

static void no_unpin(struct request_target *t)
{
    (void)t;
}

static void take(struct response *r, void *owner)
{
    (void)owner;
    response_free(r);
}

static struct request *ask(struct request_target *target)
{
    struct request *r = request_new(target, NULL, take, NULL);
    r->times.start = clock_now_ns();
    return r;
}

static uint64_t counted(const struct first_response *f)
{
    uint64_t counts[5], sum, total = 0;
    first_response_read(f, counts, &sum);
    for (size_t i = 0; i < 5; i++)
        total += counts[i];
    return total;
}

/* A request counts once, by the first response that is sent for it. */
static void responses_of_a_request(void **state)
{
    (void)state;
    struct first_response *f = made("");
    struct model_config *config = test_version_config(CONFIG);
    struct request_target target = {.config = config, .unpin = no_unpin, .first_response = f};
    struct request *r = ask(&target);
    assert_true(response_send_flags(r, 0));
    assert_int_equal(counted(f), 0);
    for (int i = 0; i < 3; i++)
        assert_true(response_send(response_new(r), i == 2 ? RESPONSE_FINAL : 0, NULL));
    assert_int_equal(counted(f), 1);
    assert_false(response_send(response_new(r), 0, NULL));
    request_release(r);
    response_fail(ask(&target), err_new(STATUS_UNAVAILABLE, "no"));
    assert_int_equal(counted(f), 2);
    r = ask(&target);
    assert_true(response_send_flags(r, RESPONSE_FINAL));
    request_release(r);
    r = ask(&target);
    r->gap = true;
    response_fail(r, NULL);
    r = ask(&target);
    atomic_store(&r->first_measured, true);
    response_fail(r, NULL);
    assert_int_equal(counted(f), 2);
    first_response_free(f);
    config_unref(config);
}

UNIT_MAIN(UNIT(not_unless_asked_for), UNIT(usual_bounds), UNIT(bounds_of_the_model),
          UNIT(readings_are_added), UNIT(many_threads), UNIT(responses_of_a_request))
