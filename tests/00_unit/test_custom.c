/* Metrics of plug-ins, as the page shows them. */
#include "base/mem.h"
#include "base/strbuf.h"
#include "metrics/custom.h"
#include "support/unit.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static void expect_page(const char *text)
{
    struct strbuf page = STRBUF_INIT;
    custom_render(&page);
    assert_string_equal(strbuf_str(&page), text);
    strbuf_fini(&page);
}

static void test_page(void **state)
{
    (void)state;
    struct custom_family *counters;
    struct custom_family *times;
    struct custom_metric *m[3];
    unit_succeeds(custom_family_new(CUSTOM_COUNTER, "my_total", "what I\ncount", &counters));
    expect_page("");
    static const struct custom_label labels[] = {{"z", "1"}, {"a", "say \"x\""}, {"z", "2"}};
    unit_succeeds(custom_metric_new(counters, labels, 3, NULL, 0, &m[0]));
    unit_succeeds(custom_metric_new(counters, NULL, 0, NULL, 0, &m[1]));
    unit_succeeds(custom_add(m[0], 0.1));
    unit_succeeds(custom_add(m[0], 0.2));
    unit_succeeds(custom_add(m[1], 1e15));
    expect_page("# HELP my_total what I\\ncount\n# TYPE my_total counter\n"
                "my_total{a=\"say \\\"x\\\"\",z=\"2\"} 0.30000000000000004\n"
                "my_total 1e+15\n");
    custom_metric_free(m[0]);
    custom_metric_free(m[1]);
    unit_succeeds(custom_family_free(counters));
    expect_page("");

    static const double bounds[] = {0.5, 1};
    unit_succeeds(custom_family_new(CUSTOM_HISTOGRAM, "my_seconds", "", &times));
    unit_succeeds(custom_metric_new(times, labels, 1, bounds, 2, &m[2]));
    unit_succeeds(custom_observe(m[2], 0.5));
    unit_succeeds(custom_observe(m[2], 0.75));
    unit_succeeds(custom_observe(m[2], INFINITY));
    expect_page("# HELP my_seconds \n# TYPE my_seconds histogram\n"
                "my_seconds_bucket{z=\"1\",le=\"0.5\"} 1\n"
                "my_seconds_bucket{z=\"1\",le=\"1\"} 2\n"
                "my_seconds_bucket{z=\"1\",le=\"+Inf\"} 3\n"
                "my_seconds_sum{z=\"1\"} +Inf\n"
                "my_seconds_count{z=\"1\"} 3\n");
    custom_metric_free(m[2]);
    unit_succeeds(custom_family_free(times));
}

static void test_names(void **state)
{
    (void)state;
    struct custom_family *f;
    struct custom_metric *m;
    unit_fails(custom_family_new(CUSTOM_GAUGE, "9lives", "", &f), STATUS_INVALID_ARG, "9lives");
    unit_fails(custom_family_new(CUSTOM_GAUGE, "", "", &f), STATUS_INVALID_ARG, "expected a name");
    unit_succeeds(custom_family_new(CUSTOM_GAUGE, "ns:level", "", &f));
    unit_fails(custom_metric_new(f, &(struct custom_label){"__x", ""}, 1, NULL, 0, &m),
               STATUS_INVALID_ARG, "'__x' cannot be a label's name");
    unit_fails(custom_metric_new(f, &(struct custom_label){"a:b", ""}, 1, NULL, 0, &m),
               STATUS_INVALID_ARG, "a:b");
    unit_fails(custom_metric_new(f, NULL, 0, (double[]){1}, 1, &m), STATUS_INVALID_ARG,
               "buckets are for histograms");
    unit_succeeds(custom_family_free(f));
}

static void refuses(enum custom_kind kind, const char *name, const char *end)
{
    struct custom_family *f;
    char whole[128];
    snprintf(whole, sizeof(whole), "%s%s", name, end);
    unit_fails(custom_family_new(kind, whole, "", &f), STATUS_INVALID_ARG, name);
}

static void refuses_split(const char *name)
{
    static const char *const ends[] = {"", "_bucket", "_sum", "_count"};
    for (size_t i = 0; i < sizeof(ends) / sizeof(*ends); i++)
        refuses(CUSTOM_COUNTER, name, ends[i]);
}

/* Nobody may add to a family of the server, nor to a series of one. */
static void test_names_of_the_server(void **state)
{
    (void)state;
#define METRIC_MODEL(type, name, unit, field, help)   refuses(CUSTOM_GAUGE, #name, "");
#define METRIC_REASON(name, help)                     refuses(CUSTOM_GAUGE, #name, "");
#define METRIC_HISTOGRAM(name, index, help)           refuses_split(#name);
#define METRIC_SUMMARY(name, index, help)             refuses_split(#name);
#define METRIC_BOUNDED(name, field, help)             refuses_split(#name);
#define METRIC_BATCHES(name, help)                    refuses_split(#name);
#define METRIC_CACHE(name, field, help)               refuses(CUSTOM_GAUGE, #name, "");
#define METRIC_FRONT(type, name, field, help)         refuses(CUSTOM_GAUGE, #name, "");
#define METRIC_REQUESTS(name, help)                   refuses(CUSTOM_GAUGE, #name, "");
#define METRIC_PROCESS(type, name, unit, field, help) refuses(CUSTOM_GAUGE, #name, "");
#define METRIC_GPU(type, name, unit, field, help)     refuses(CUSTOM_GAUGE, #name, "");
#define METRIC_BUILD(name, help)                      refuses(CUSTOM_GAUGE, #name, "");
#include "metrics/metric.def"
    refuses(CUSTOM_HISTOGRAM, "nv_inference", ""); /* its _count is nv_inference_count */
    struct custom_family *f;
    unit_succeeds(custom_family_new(CUSTOM_GAUGE, "nv_inference", "", &f));
    unit_succeeds(custom_family_free(f));
    unit_succeeds(custom_family_new(CUSTOM_COUNTER, "nv_inference_count_sum", "", &f));
    unit_succeeds(custom_family_free(f));
}

UNIT_MAIN(UNIT(test_page), UNIT(test_names), UNIT(test_names_of_the_server))
