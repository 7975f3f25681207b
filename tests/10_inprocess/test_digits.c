/* A program recognises a handwritten digit in process, with the sample repository. Prints how
 * long it took from nothing to the first answer, and how much of that the model's load was. */
#include "10_inprocess/host.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* A seven, 8 x 8. */
static const float image[64] = {0, 0, 7,  8,  13, 16, 15, 1, 0, 0, 7,  7,  4,  11, 12, 0,
                                0, 0, 0,  0,  8,  13, 1,  0, 0, 4, 8,  8,  15, 15, 6,  0,
                                0, 2, 11, 15, 15, 4,  0,  0, 0, 0, 0,  16, 5,  0,  0,  0,
                                0, 0, 9,  15, 1,  0,  0,  0, 0, 0, 13, 5,  0,  0,  0,  0};

static double now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static int best(const float *logits)
{
    int at = 0;
    for (int i = 1; i < 10; i++)
        if (logits[i] > logits[at])
            at = i;
    return at;
}

static double load_ms(TRITONSERVER_Server *s)
{
    static const char name[] = "nv_model_load_duration_secs{model=\"digits\"";
    TRITONSERVER_Metrics *metrics;
    const char *page;
    size_t len;
    HOST_OK(TRITONSERVER_ServerMetrics(s, &metrics));
    HOST_OK(TRITONSERVER_MetricsFormatted(metrics, TRITONSERVER_METRIC_PROMETHEUS, &page, &len));
    const char *line = strstr(page, name);
    assert_non_null(line);
    double secs = strtod(strchr(line, '}') + 1, NULL);
    HOST_OK(TRITONSERVER_MetricsDelete(metrics));
    return secs * 1e3;
}

static void test_digit(void **state)
{
    (void)state;
    double start = now_ms();
    TRITONSERVER_Server *s = host_server(host_options(TEST_SOURCE_DIR "/build/models", "backends"));
    struct host_call c;
    host_call_make(&c, s, "digits");
    host_call_input(&c, "image", (int64_t[]){1, 64}, 2, image, 64);
    host_call_run(&c, s, NULL);
    double first = now_ms() - start;
    size_t count;
    const float *logits = host_output(c.responses[0], 0, &count);
    assert_int_equal(count, 10);
    int digit = best(logits);
    assert_int_equal(digit, 7);
    const char *label;
    HOST_OK(TRITONSERVER_InferenceResponseOutputClassificationLabel(c.responses[0], 0,
                                                                    (size_t)digit, &label));
    assert_non_null(label);
    print_message("first answer after %.1f ms, %.1f ms of them loading digits\n", first,
                  load_ms(s));
    host_call_free(&c);
    HOST_OK(TRITONSERVER_ServerDelete(s));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_digit)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
