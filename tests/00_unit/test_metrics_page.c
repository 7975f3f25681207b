#include "metrics/metrics_page.h"

#include "support/unit.h"

#include <stdio.h>
#include <string.h>

static struct strbuf page;

static void render(const struct metrics_model *models, size_t count,
                   const struct metrics_process *process)
{
    strbuf_fini(&page);
    metrics_page_render(&page, models, count, process);
}

static bool has(const char *line)
{
    const char *at = strstr(strbuf_str(&page), line);
    return at && (at == page.data || at[-1] == '\n') && at[strlen(line)] == '\n';
}

static struct metrics_model model(void)
{
    return (struct metrics_model){.name = "m",
                                  .version = 3,
                                  .success = 7,
                                  .failures = {1, 2, 3, 4},
                                  .pending = 5,
                                  .load_ns = 1500000000};
}

/* Names, label sets and their order are the reference's. */
static void families_of_models(void **state)
{
    (void)state;
    struct metrics_model m = model();
    m.inferences = 8;
    m.executions = 2;
    m.request_us = 11;
    m.queue_us = 12;
    m.compute_input_us = 13;
    m.compute_infer_us = 14;
    m.compute_output_us = 15;
    render(&m, 1, &(struct metrics_process){0});
    assert_true(has("# TYPE nv_inference_request_success counter"));
    assert_true(has("nv_inference_request_success{model=\"m\",version=\"3\"} 7"));
    assert_true(
        has("nv_inference_request_failure{model=\"m\",reason=\"REJECTED\",version=\"3\"} 1"));
    assert_true(
        has("nv_inference_request_failure{model=\"m\",reason=\"CANCELED\",version=\"3\"} 2"));
    assert_true(
        has("nv_inference_request_failure{model=\"m\",reason=\"BACKEND\",version=\"3\"} 3"));
    assert_true(has("nv_inference_request_failure{model=\"m\",reason=\"OTHER\",version=\"3\"} 4"));
    assert_true(has("nv_inference_count{model=\"m\",version=\"3\"} 8"));
    assert_true(has("nv_inference_exec_count{model=\"m\",version=\"3\"} 2"));
    assert_true(has("nv_inference_request_duration_us{model=\"m\",version=\"3\"} 11"));
    assert_true(has("nv_inference_queue_duration_us{model=\"m\",version=\"3\"} 12"));
    assert_true(has("nv_inference_compute_input_duration_us{model=\"m\",version=\"3\"} 13"));
    assert_true(has("nv_inference_compute_infer_duration_us{model=\"m\",version=\"3\"} 14"));
    assert_true(has("nv_inference_compute_output_duration_us{model=\"m\",version=\"3\"} 15"));
    assert_true(has("# TYPE nv_inference_pending_request_count gauge"));
    assert_true(has("nv_inference_pending_request_count{model=\"m\",version=\"3\"} 5"));
    assert_true(has("nv_model_load_duration_secs{model=\"m\",version=\"3\"} 1.5"));
}

static void tags(void **state)
{
    (void)state;
    const struct metrics_tag given[] = {
        {"team", "x\"y"}, {"te-am", "1"}, {"te.am", "2"}, {"9", "z"}};
    struct metrics_model m = model();
    m.tags = given;
    m.tag_count = 4;
    m.space = "s";
    render(&m, 1, &(struct metrics_process){0});
    assert_true(has("nv_inference_request_success{_9=\"z\",_te_am=\"1\",_team=\"x\\\"y\",model="
                    "\"m\",namespace=\"s\","
                    "version=\"3\"} 7"));
}

static void histograms(void **state)
{
    (void)state;
    struct histogram h = {0};
    static struct histogram_counts c;
    histogram_record(&h, 64000);
    histogram_record(&h, 64001);
    histogram_record(&h, 60ull * 1000000000);
    histogram_read(&h, &c);
    histogram_fini(&h);
    struct metrics_model m = model();
    metrics_page_hist(&c, 60000128001ull, &m.hists[1]);
    render(&m, 1, &(struct metrics_process){0});
    assert_true(has("# TYPE nereid_inference_queue_latency_seconds histogram"));
    assert_true(has("nereid_inference_queue_latency_seconds_bucket{model=\"m\",version=\"3\",le="
                    "\"0.000064\"} 1"));
    assert_true(has("nereid_inference_queue_latency_seconds_bucket{model=\"m\",version=\"3\",le="
                    "\"0.000128\"} 2"));
    assert_true(has("nereid_inference_queue_latency_seconds_bucket{model=\"m\",version=\"3\",le="
                    "\"16.777216\"} 2"));
    assert_true(has(
        "nereid_inference_queue_latency_seconds_bucket{model=\"m\",version=\"3\",le=\"+Inf\"} 3"));
    assert_true(
        has("nereid_inference_queue_latency_seconds_sum{model=\"m\",version=\"3\"} 60.000128"));
    assert_true(has("nereid_inference_queue_latency_seconds_count{model=\"m\",version=\"3\"} 3"));
}

static void families_of_the_process(void **state)
{
    (void)state;
    const struct metrics_process p = {.server_version = "1.2.3",
                                      .pinned_total_bytes = 268435456,
                                      .cpu_busy_ppm = 250000,
                                      .budget_limit_bytes = UINT64_MAX,
                                      .cpu_ns = 1234567890,
                                      .start_wall_ns = 1700000000500000000};
    render(NULL, 0, &p);
    assert_null(strstr(strbuf_str(&page), "nv_inference_request_success"));
    assert_true(has("nereid_build_info{version=\"1.2.3\"} 1"));
    assert_true(has("nv_pinned_memory_pool_total_bytes 268435456"));
    assert_true(has("nv_pinned_memory_pool_used_bytes 0"));
    assert_true(has("nv_cpu_utilization 0.25"));
    assert_true(has("nereid_budget_limit_bytes +Inf"));
    assert_true(has("process_cpu_seconds_total 1.23456789"));
    assert_true(has("process_start_time_seconds 1700000000.5"));
}

static void families_of_gpus(void **state)
{
    (void)state;
    const struct metrics_gpu gpus[] = {{.uuid = "GPU-a",
                                        .busy_ppm = 370000,
                                        .total_bytes = 100,
                                        .used_bytes = 0,
                                        .power_mw = 50250,
                                        .limit_mw = METRICS_PAGE_UNKNOWN,
                                        .energy_mj = 1500},
                                       {.uuid = "GPU-b",
                                        .busy_ppm = METRICS_PAGE_UNKNOWN,
                                        .total_bytes = 200,
                                        .used_bytes = 7,
                                        .power_mw = METRICS_PAGE_UNKNOWN,
                                        .limit_mw = METRICS_PAGE_UNKNOWN,
                                        .energy_mj = 0}};
    render(NULL, 0, &(struct metrics_process){.gpus = gpus, .gpu_count = 2});
    assert_true(has("# TYPE nv_gpu_utilization gauge"));
    assert_true(has("nv_gpu_utilization{gpu_uuid=\"GPU-a\"} 0.37"));
    assert_true(has("nv_gpu_memory_total_bytes{gpu_uuid=\"GPU-a\"} 100"));
    assert_true(has("nv_gpu_memory_total_bytes{gpu_uuid=\"GPU-b\"} 200"));
    assert_true(has("nv_gpu_memory_used_bytes{gpu_uuid=\"GPU-a\"} 0"));
    assert_true(has("nv_gpu_memory_used_bytes{gpu_uuid=\"GPU-b\"} 7"));
    assert_true(has("nv_gpu_power_usage{gpu_uuid=\"GPU-a\"} 50.25"));
    assert_true(has("# TYPE nv_energy_consumption counter"));
    assert_true(has("nv_energy_consumption{gpu_uuid=\"GPU-a\"} 1.5"));
    assert_true(has("nv_energy_consumption{gpu_uuid=\"GPU-b\"} 0"));
    assert_null(strstr(strbuf_str(&page), "nv_gpu_utilization{gpu_uuid=\"GPU-b\""));
    assert_null(strstr(strbuf_str(&page), "nv_gpu_power_limit"));
    render(NULL, 0, &(struct metrics_process){0});
    assert_null(strstr(strbuf_str(&page), "nv_gpu_"));
}

/* The form that scrapers insist on: HELP and TYPE once and before the samples, a family in one
 * piece, no label set twice. */
static void form(void **state)
{
    (void)state;
    struct metrics_model two[] = {model(), model()};
    two[1].version = 4;
    for (int i = 0; i < 2; i++) { /* what never happened has no histogram */
        for (int k = 0; k < 3; k++)
            two[i].hists[k].count = 1;
        two[i].batches.count = 1;
    }
    render(two, 2, &(struct metrics_process){0});
    char family[128] = "";
    char seen[8192] = " ";
    int samples = 0;
    for (char *line = page.data; *line; line = strchr(line, '\n') + 1) {
        char name[128];
        if (sscanf(line, "# HELP %127s", name) == 1) {
            char token[130];
            assert_true(snprintf(token, sizeof(token), " %s ", name) > 0);
            assert_null(strstr(seen, token));
            strncat(seen, token + 1, sizeof(seen) - strlen(seen) - 1);
            snprintf(family, sizeof(family), "%s", name);
            const char *next = strchr(line, '\n') + 1;
            assert_memory_equal(next, "# TYPE ", 7);
            assert_memory_equal(next + 7, name, strlen(name));
        } else if (*line != '#') {
            assert_memory_equal(line, family, strlen(family));
            samples++;
        }
    }
    assert_true(samples > 2 * 70);
    assert_int_equal(page.data[page.len - 1], '\n');
}

/* Buckets of the model's own: each counts what the ones below it count. */
static void bounds_of_a_model(void **state)
{
    (void)state;
    static const double bounds[] = {0.1, 4, 1e21};
    static const uint64_t counts[] = {1, 2, 0, 3};
    struct metrics_model two[] = {model(), model()};
    two[0].first_response = (struct metrics_bounded){bounds, 3, counts, 77};
    two[1].version = 4;
    render(two, 2, &(struct metrics_process){0});
    assert_true(has("# TYPE nv_inference_first_response_histogram_ms histogram"));
#define FIRST "nv_inference_first_response_histogram_ms"
    assert_true(has(FIRST "_bucket{model=\"m\",version=\"3\",le=\"0.1\"} 1"));
    assert_true(has(FIRST "_bucket{model=\"m\",version=\"3\",le=\"4\"} 3"));
    assert_true(has(FIRST "_bucket{model=\"m\",version=\"3\",le=\"1e+21\"} 3"));
    assert_true(has(FIRST "_bucket{model=\"m\",version=\"3\",le=\"+Inf\"} 6"));
    assert_true(has(FIRST "_sum{model=\"m\",version=\"3\"} 77"));
    assert_true(has(FIRST "_count{model=\"m\",version=\"3\"} 6"));
    assert_null(strstr(page.data, FIRST "_count{model=\"m\",version=\"4\"}"));
    render(&two[1], 1, &(struct metrics_process){0});
    assert_null(strstr(page.data, FIRST));
}

/* A model with a cache has the summaries of the cache, and none of whole requests; without, the
 * other way round. */
static void summaries_of_a_cache(void **state)
{
    (void)state;
    static const double quantiles[] = {0.5};
    const struct metrics_process p = {.quantiles = quantiles, .quantile_count = 1};
    struct metrics_model two[] = {model(), model()};
    two[0].cached = true;
    two[0].summaries[5] = (struct metrics_summary){{3}, 2, 6};
    two[1].version = 4;
    render(two, 2, &p);
    assert_true(
        has("nv_cache_hit_summary_per_model{model=\"m\",version=\"3\",quantile=\"0.5\"} 3"));
    assert_true(has("nv_cache_hit_summary_per_model_sum{model=\"m\",version=\"3\"} 6"));
    assert_true(has("nv_cache_hit_summary_per_model_count{model=\"m\",version=\"3\"} 2"));
    assert_true(
        has("nv_cache_miss_summary_per_model{model=\"m\",version=\"3\",quantile=\"0.5\"} NaN"));
    assert_true(has("nv_inference_request_summary_us_count{model=\"m\",version=\"4\"} 0"));
    assert_true(has("nv_inference_queue_summary_us_count{model=\"m\",version=\"3\"} 0"));
    assert_null(
        strstr(page.data, "nv_inference_request_summary_us_count{model=\"m\",version=\"3\"}"));
    assert_null(
        strstr(page.data, "nv_cache_hit_summary_per_model_count{model=\"m\",version=\"4\"}"));
    render(&two[1], 1, &p);
    assert_null(strstr(page.data, "nv_cache_hit_summary_per_model"));
    const struct metrics_process no_counters = {.no_latency_counters = true};
    render(two, 2, &no_counters);
    assert_null(strstr(page.data, "nv_cache_"));
    assert_null(strstr(page.data, "summary"));
}

static void end(void **state)
{
    (void)state;
    strbuf_fini(&page);
}

UNIT_MAIN(UNIT(families_of_models), UNIT(tags), UNIT(histograms), UNIT(families_of_the_process),
          UNIT(families_of_gpus), UNIT(form), UNIT(bounds_of_a_model), UNIT(summaries_of_a_cache),
          UNIT(end))
