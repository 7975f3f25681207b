/* The pure parts of the load tester: its histogram, its windows, its command line, its requests. */
#include "base/mem.h"
#include "bench/bench_data.h"
#include "bench/bench_html.h"
#include "bench/bench_options.h"
#include "bench/bench_report.h"
#include "bench/bench_request.h"
#include "bench/bench_window.h"
#include "support/unit.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static void percentiles_are_within_half_a_percent(void **state)
{
    (void)state;
    struct bench_histogram *h = MEM_NEW(struct bench_histogram);
    assert_true(bench_histogram_percentile(h, 50) == 0 && bench_histogram_mean(h) == 0);
    for (uint64_t i = 1; i <= 100000; i++)
        bench_histogram_add(h, i * 1000);
    static const double asked[] = {0.001, 1, 50, 90, 99, 99.99, 100};
    for (size_t i = 0; i < sizeof(asked) / sizeof(*asked); i++) {
        double exact = asked[i] * 1e6;
        assert_true(fabs(bench_histogram_percentile(h, asked[i]) - exact) <= exact * 0.005);
    }
    assert_true(fabs(bench_histogram_mean(h) - 50000500) < 1);
    assert_true(fabs(bench_histogram_deviation(h) - 28867513) < 1000);
    mem_free(h);
}

static void all_durations_have_a_bucket(void **state)
{
    (void)state;
    static const uint64_t ends[] = {0, 1, 511, 512, 513, 1023, 1024, (uint64_t)1 << 40};
    for (size_t i = 0; i < sizeof(ends) / sizeof(*ends); i++) {
        struct bench_histogram *h = MEM_NEW(struct bench_histogram);
        bench_histogram_add(h, ends[i]);
        double exact = (double)ends[i];
        assert_true(fabs(bench_histogram_percentile(h, 50) - exact) <= exact * 0.005);
        mem_free(h);
    }
    struct bench_histogram *h = MEM_NEW(struct bench_histogram);
    bench_histogram_add(h, UINT64_MAX);
    assert_true(bench_histogram_percentile(h, 50) > 1e12);
    mem_free(h);
}

/* A window of a second with `count` answers that took `us` each. */
static struct bench_window *window(uint64_t count, uint64_t us)
{
    struct bench_window *w = MEM_NEW(struct bench_window);
    w->ended = TIME_S(1);
    for (uint64_t i = 0; i < count; i++)
        bench_histogram_add(&w->latencies, us * 1000);
    return w;
}

static bool steady(const uint64_t *counts, const uint64_t *us)
{
    struct bench_window *w[BENCH_WINDOWS];
    for (uint32_t i = 0; i < BENCH_WINDOWS; i++)
        w[i] = window(counts[i], us[i]);
    bool yes = bench_window_steady((const struct bench_window *const *)w, 0, 10);
    assert_true(bench_window_steady((const struct bench_window *const *)w, 99, 10) == yes);
    for (uint32_t i = 0; i < BENCH_WINDOWS; i++)
        mem_free(w[i]);
    return yes;
}

static void windows_that_agree_are_steady(void **state)
{
    (void)state;
    assert_true(steady((uint64_t[]){100, 105, 95}, (uint64_t[]){100, 105, 95}));
    assert_false(steady((uint64_t[]){100, 130, 100}, (uint64_t[]){100, 100, 100}));
    assert_false(steady((uint64_t[]){100, 100, 100}, (uint64_t[]){100, 130, 100}));
    assert_false(steady((uint64_t[]){0, 0, 0}, (uint64_t[]){1, 1, 1}));
}

static void windows_together_are_one(void **state)
{
    (void)state;
    struct bench_window *w[] = {window(100, 10), window(300, 30)};
    struct bench_window *both = MEM_NEW(struct bench_window);
    w[0]->before = (struct bench_statistics){.known = true, .inferences = 7};
    w[1]->after = (struct bench_statistics){.known = true, .inferences = 407};
    bench_window_merge((const struct bench_window *const *)w, 2, both);
    assert_true(fabs(bench_window_rate(both) - 200) < 1e-9);
    assert_true(fabs(bench_window_latency(both, 0) - 25000) < 1);
    assert_true(both->server.known);
    assert_int_equal(both->server.inferences, 400);
    w[0]->before.inferences = w[0]->before.queue.ns = 500; /* the server has started anew */
    bench_window_merge((const struct bench_window *const *)w, 2, both);
    assert_true(both->server.inferences == 0 && both->server.queue.ns == 0);
    mem_free(w[0]);
    mem_free(w[1]);
    mem_free(both);
}

#define PARSE(o, ...)                                                                  \
    bench_options_parse((int)(sizeof((const char *[]){__VA_ARGS__}) / sizeof(char *)), \
                        (char **)(uintptr_t)(const char *[]){__VA_ARGS__}, (o))

static void refuses(const char *option, const char *value, const char *why)
{
    struct bench_options o;
    unit_fails(PARSE(&o, "-m", "x", option, value), STATUS_INVALID_ARG, why);
    bench_options_fini(&o);
}

static void command_lines(void **state)
{
    (void)state;
    struct bench_options o;
    double level;
    unit_succeeds(PARSE(&o, "-m", "x", "--concurrency-range=1:8:3", "-i", "grpc", "--shape",
                        "a:b:2,3", "-p", "100", "-a"));
    assert_true(o.protocol == BENCH_GRPC && o.port == 8001 && o.interval_ms == 100);
    assert_true(o.shapes[0].name_len == 3 && o.shapes[0].rank == 2 && o.shapes[0].dims[1] == 3);
    for (uint32_t i = 0; i < 3; i++)
        assert_true(bench_options_level(&o.concurrency, i, &level) && level == 1 + 3 * i);
    assert_false(bench_options_level(&o.concurrency, 3, &level));
    bench_options_fini(&o);
    unit_succeeds(PARSE(&o, "-m", "x", "-u", "http://[::1]:9/"));
    assert_string_equal(o.host, "::1");
    assert_string_equal(o.address, "[::1]:9");
    assert_string_equal(bench_options_authority(&o), "[::1]:9");
    assert_int_equal(o.port, 9);
    bench_options_fini(&o);
    unit_succeeds(PARSE(&o, "-m", "x", "-u", "unix:/tmp/a"));
    assert_string_equal(o.address, "unix:/tmp/a");
    assert_string_equal(bench_options_authority(&o), "localhost");
    bench_options_fini(&o);
    unit_succeeds(PARSE(&o, "-m", "x", "-u", "unix:///tmp/a"));
    assert_string_equal(o.address, "unix:///tmp/a");
    bench_options_fini(&o);
    unit_succeeds(PARSE(&o, "-m", "x", "-u", "fe80::1", "-i", "grpc"));
    assert_string_equal(o.address, "[fe80::1]:8001");
    bench_options_fini(&o);
    unit_succeeds(PARSE(&o, "-m", "x", "--request-rate-range", "0.1:1:0.1",
                        "--sequence-length-variation", "0"));
    for (uint32_t i = 0; i < 10; i++)
        assert_true(bench_options_level(&o.rate, i, &level));
    assert_false(bench_options_level(&o.rate, 10, &level));
    bench_options_fini(&o);
    refuses("--concurrency-range", "0", "expected FIRST[:LAST[:STEP]], whole numbers from 1 to");
    refuses("--concurrency-range", "0.5", "whole numbers from 1 to 10000");
    refuses("--concurrency-range", "1.7", "whole numbers");
    refuses("--concurrency-range", "1:3:0.5", "whole numbers");
    refuses("--concurrency-range", "10001", "to 10000");
    refuses("--request-rate-range", "1e999", "each from 0.001 to 10000000");
    refuses("--request-rate-range", "1e17", "each from 0.001 to 10000000");
    refuses("--request-rate-range", "1e-9", "each from 0.001");
    refuses("-u", "https://host:8000", "without TLS, which nereid bench does not speak");
    refuses("-u", "grpcs://host:8000", "without TLS");
    refuses("--percentile", "0", "above 0");
    refuses("--sequence-length-variation", "101", "from 0 to 100");
    refuses("--concurrency-range", "4:2", "LAST not below FIRST");
    refuses("--concurrency-range", "1:2:3x", "FIRST[:LAST[:STEP]]");
    refuses("--request-rate-range", "1:1e6:0.1", "at most 1000 levels");
    refuses("--percentile", "101", "at most 100");
    refuses("--shape", "a", "INPUT:DIM");
    refuses("--shape", "a:-1", "of at least 0");
    refuses("-u", "host:0", "expected HOST:PORT");
    refuses("-i", "tcp", "expected http|grpc");
    refuses("-b", "0", "a whole number from 1 to");
    refuses("-q", "1", "unknown argument '-q'");
    unit_fails(PARSE(&o, "--concurrency-range", "1"), STATUS_INVALID_ARG, "no model is named");
    bench_options_fini(&o);
}

static struct bench_model *model(enum datatype type, int64_t dim, uint32_t max_batch_size)
{
    struct bench_model *m = MEM_NEW(struct bench_model);
    m->input_count = 1;
    m->max_batch_size = max_batch_size;
    m->inputs[0].name = mem_strdup("IN");
    m->inputs[0].datatype = type;
    m->inputs[0].rank = max_batch_size ? 2 : 1;
    m->inputs[0].dims[0] = max_batch_size ? -1 : dim;
    m->inputs[0].dims[1] = dim;
    return m;
}

static void tensors_are_made_up(void **state)
{
    (void)state;
    static const enum datatype types[] = {DATATYPE_BOOL, DATATYPE_INT8,  DATATYPE_UINT64,
                                          DATATYPE_FP16, DATATYPE_FP32,  DATATYPE_FP64,
                                          DATATYPE_BF16, DATATYPE_BYTES, DATATYPE_INT32};
    for (size_t i = 0; i < sizeof(types) / sizeof(*types); i++) {
        struct bench_options o;
        struct bench_data d;
        struct bench_model *m = model(types[i], 5, 4);
        unit_succeeds(PARSE(&o, "-m", "x", "-b", "3", "--string-length", "6"));
        unit_succeeds(bench_data_make(&o, m, &d));
        const struct bench_tensor *t = &d.steps[0].tensors[0];
        assert_true(t->rank == 2 && t->dims[0] == 3 && t->dims[1] == 5);
        assert_int_equal(t->len, 15 * (types[i] == DATATYPE_BYTES ? 10 : datatype_bytes(types[i])));
        bench_data_fini(&d);
        bench_model_fini(m);
        mem_free(m);
        bench_options_fini(&o);
    }
}

static void requests_have_the_length_that_they_name(void **state)
{
    (void)state;
    struct bench_options o;
    struct bench_data d;
    struct bench_request r;
    struct strbuf head = STRBUF_INIT;
    struct bench_model *m = model(DATATYPE_FP32, 2, 0);
    unit_succeeds(PARSE(&o, "-m", "x", "--input-data", "zero", "-x", "3"));
    unit_succeeds(bench_data_make(&o, m, &d));
    bench_request_make(&o, &d.steps[0], &r);
    bench_request_head(&o, &r, &(struct bench_place){0}, &head);
    assert_non_null(strstr(head.data, "POST /v2/models/x/versions/3/infer HTTP/1.1\r\n"
                                      "Host: localhost:8000\r\n"));
    const char *body = strstr(head.data, "\r\n\r\n") + 4;
    size_t json = head.len - (size_t)(body - head.data) + r.json_len;
    char expected[100];
    snprintf(expected, sizeof(expected), "Content-Length: %zu\r\n", json + 8);
    assert_non_null(strstr(head.data, expected));
    snprintf(expected, sizeof(expected), "Inference-Header-Content-Length: %zu\r\n", json);
    assert_non_null(strstr(head.data, expected));
    assert_int_equal(r.rest.len, r.json_len + 8);
    strbuf_fini(&head);
    strbuf_fini(&r.rest);
    o.protocol = BENCH_GRPC;
    bench_request_make(&o, &d.steps[0], &r);
    bench_request_head(&o, &r, &(struct bench_place){.sequence = 300, .start = true}, &head);
    assert_int_equal((uint8_t)head.data[4], head.len - 5 + r.rest.len);
    strbuf_fini(&head);
    strbuf_fini(&r.rest);
    bench_data_fini(&d);
    bench_model_fini(m);
    mem_free(m);
    bench_options_fini(&o);
}

static void a_report_is_no_html_of_others(void **state)
{
    (void)state;
    struct bench_options o;
    struct bench_result *r = MEM_NEW(struct bench_result);
    struct strbuf page = STRBUF_INIT, filled = STRBUF_INIT;
    unit_succeeds(PARSE(&o, "-m", "</script>\"&"));
    r->level = 2;
    bench_histogram_add(&r->measured.latencies, 5000);
    r->measured.ended = TIME_S(1);
    strbuf_puts(&page, "before/*data*/after");
    bench_html_fill(&page, &o, r, 1, &filled);
    assert_non_null(strstr(filled.data, "before{\"title\":\"\\u003c"));
    assert_non_null(
        strstr(filled.data, "\"level\":2,\"steady\":false,\"rate\":1.000,\"count\":1,"));
    assert_string_equal(filled.data + filled.len - 5, "after");
    assert_null(strstr(filled.data, "</script"));
    strbuf_fini(&page);
    strbuf_fini(&filled);
    mem_free(r);
    bench_options_fini(&o);
}

/* A model that takes longer than a window: its levels have no latency, not one of 0. */
static void levels_without_answers_have_no_numbers(void **state)
{
    (void)state;
    struct bench_options o;
    struct bench_result *r = MEM_NEW(struct bench_result);
    struct strbuf text = STRBUF_INIT, page = STRBUF_INIT;
    unit_succeeds(PARSE(&o, "-m", "slow", "-p", "300"));
    r->level = 2;
    r->measured.ended = TIME_S(1);
    bench_report_level(&o, r, &text);
    assert_string_equal(strbuf_str(&text),
                        "Request concurrency: 2\n"
                        "  No request was answered within a window of 300 msec: make "
                        "--measurement-interval (-p) longer than an answer takes\n\n");
    text.len = 0;
    bench_report_window(&o, 1, &r->measured, &text);
    assert_string_equal(strbuf_str(&text), "  window 1 of at most 10: no answer");
    text.len = 0;
    bench_report_summary(&o, r, 1, &text);
    assert_string_equal(strbuf_str(&text), "Inferences/Second vs. Client Average Batch Latency\n"
                                           "Concurrency: 2, no answer\n");
    text.len = 0;
    bench_report_csv(&o, r, 1, &text);
    assert_ptr_equal(strchr(strbuf_str(&text), '\n'), text.data + text.len - 1);
    strbuf_puts(&page, "/*data*/");
    text.len = 0;
    bench_html_fill(&page, &o, r, 1, &text);
    assert_non_null(strstr(strbuf_str(&text), "\"levels\":[],\"unanswered\":[2]}"));
    strbuf_fini(&page);
    strbuf_fini(&text);
    mem_free(r);
    bench_options_fini(&o);
}

static void numbers_are_written_in_full(void **state)
{
    (void)state;
    struct bench_options o;
    struct bench_result *r = MEM_NEW(struct bench_result);
    struct strbuf text = STRBUF_INIT, page = STRBUF_INIT;
    unit_succeeds(
        PARSE(&o, "-m", "fast", "--request-rate-range", "1234567.25", "--percentile", "99.99999"));
    bench_options_level(&o.rate, 0, &r->level);
    bench_report_settings(&o, &text);
    bench_report_level(&o, r, &text);
    bench_report_summary(&o, r, 1, &text);
    strbuf_puts(&page, "/*data*/");
    bench_html_fill(&page, &o, r, 1, &text);
    r->measured.ended = TIME_S(1);
    bench_histogram_add(&r->measured.latencies, 5000);
    bench_report_level(&o, r, &text);
    bench_report_csv(&o, r, 1, &text);
    bench_html_fill(&page, &o, r, 1, &text);
    static const char *const written[] = {
        "using p99.99999 latency\n",        "Request Rate: 1234567.25\n",
        "Client p99.99999 Batch Latency\n", "Request Rate: 1234567.25, no answer",
        "\"unanswered\":[1234567.25]",      "    p99.99999 latency, which has to be stable",
        ",p99.99999 latency\n1234567.25,",  "\"level\":1234567.25,"};
    for (size_t i = 0; i < sizeof(written) / sizeof(*written); i++)
        assert_non_null(strstr(strbuf_str(&text), written[i]));
    assert_null(strstr(strbuf_str(&text), "e+0"));
    assert_null(strstr(strbuf_str(&text), "p100 "));
    strbuf_fini(&page);
    strbuf_fini(&text);
    mem_free(r);
    bench_options_fini(&o);
}

UNIT_MAIN(UNIT(a_report_is_no_html_of_others), UNIT(levels_without_answers_have_no_numbers),
          UNIT(numbers_are_written_in_full), UNIT(percentiles_are_within_half_a_percent),
          UNIT(all_durations_have_a_bucket), UNIT(windows_that_agree_are_steady),
          UNIT(windows_together_are_one), UNIT(command_lines), UNIT(tensors_are_made_up),
          UNIT(requests_have_the_length_that_they_name))
