#include "metrics/front_metrics.h"

#include "support/unit.h"

#include <stdio.h>
#include <string.h>

static const struct front_metrics_route routes[] = {{"other", -1}, {"infer", 0}};
static const struct front_metrics_kind http = {
    .protocol = "http", .routes = routes, .route_count = 2};
static const struct front_metrics_kind grpc = {
    .protocol = "grpc", .grpc = true, .routes = routes, .route_count = 2};

static struct metrics_process process;

static uint64_t count_of(const char *protocol, const char *route, const char *model,
                         const char *code)
{
    for (size_t i = 0; i < process.request_count; i++) {
        const struct metrics_requests *r = &process.requests[i];
        if (strcmp(r->protocol, protocol) == 0 && strcmp(r->route, route) == 0 &&
            strcmp(r->model ? r->model : "", model) == 0 && strcmp(r->code, code) == 0)
            return r->count;
    }
    return 0;
}

/* The workers of a front are added up; fronts are kept apart. */
static void sums(void **state)
{
    (void)state;
    struct front_metrics *a = front_metrics_new(&http), *b = front_metrics_new(&http),
                         *c = front_metrics_new(&grpc);
    uint32_t m = front_metrics_model_id("m");
    assert_int_equal(front_metrics_model_id("m"), m);
    assert_int_not_equal(front_metrics_model_id("n"), m);
    front_metrics_add(&a->begun, 4);
    front_metrics_add(&b->begun, 2);
    front_metrics_end(a, 1, m, 200);
    front_metrics_end(b, 1, m, 200);
    front_metrics_end(a, 1, 0, 404);
    front_metrics_end(a, 0, m, 777);
    front_metrics_add(&a->received_bytes, 10);
    front_metrics_add(&b->received_bytes, 5);
    front_metrics_add(&b->opened, 3);
    front_metrics_add(&b->closed, 1);
    front_metrics_end(c, 1, m, 14);
    front_metrics_end(c, 1, m, 99);
    front_metrics_read(&process);
    assert_int_equal(count_of("http", "infer", "m", "200"), 2);
    assert_int_equal(count_of("http", "infer", "", "404"), 1);
    assert_int_equal(count_of("http", "other", "", "other"), 1);
    assert_int_equal(count_of("grpc", "infer", "m", "UNAVAILABLE"), 1);
    assert_int_equal(count_of("grpc", "infer", "m", "OTHER"), 1);
    assert_int_equal(process.request_count, 5);
    assert_int_equal(process.front_count, 2);
    const struct metrics_front *f =
        &process.fronts[strcmp(process.fronts[0].protocol, "http") != 0];
    assert_int_equal(f->in_flight, 2);
    assert_int_equal(f->received_bytes, 15);
    assert_int_equal(f->connections, 2);
    assert_int_equal(f->accepted, 3);
    front_metrics_read_free(&process);
    front_metrics_free(b);
    front_metrics_free(c);
    front_metrics_free(a);
    front_metrics_read(&process);
    assert_int_equal(process.front_count, 0);
    front_metrics_read_free(&process);
}

/* Models that come and go leave no more rows than are kept of those that went last. */
static void rows_of_models_that_are_gone_are_given_up(void **state)
{
    (void)state;
    struct front_metrics *a = front_metrics_new(&http);
    for (unsigned i = 0; i < 3 * FRONT_METRICS_GONE; i++) {
        char name[16];
        snprintf(name, sizeof(name), "g%u", i);
        uint32_t id = front_metrics_model_id(name);
        assert_int_not_equal(id, 0);
        front_metrics_end(a, 1, id, 200);
        front_metrics_model_left(id);
    }
    uint32_t back = front_metrics_model_id("g767");
    front_metrics_end(a, 1, back, 200);
    uint32_t anew = front_metrics_model_id("g0");
    front_metrics_end(a, 1, anew, 200);
    front_metrics_read(&process);
    assert_in_range(process.request_count, FRONT_METRICS_GONE, FRONT_METRICS_GONE + 1);
    assert_int_equal(count_of("http", "infer", "g767", "200"), 2);
    assert_int_equal(count_of("http", "infer", "g0", "200"), 1);
    assert_int_equal(count_of("http", "infer", "g1", "200"), 0);
    front_metrics_read_free(&process);
    front_metrics_model_left(back);
    front_metrics_model_left(anew);
    front_metrics_free(a);
}

/* Names without end do not make labels without end. */
static void models_are_bounded(void **state)
{
    (void)state;
    struct front_metrics *a = front_metrics_new(&http);
    uint32_t last = 1;
    for (unsigned i = 0; last && i < 20000; i++) {
        char name[16];
        snprintf(name, sizeof(name), "x%u", i);
        last = front_metrics_model_id(name);
        if (last)
            front_metrics_end(a, 1, last, 200);
    }
    assert_int_equal(last, 0);
    front_metrics_free(a);
}

UNIT_MAIN(cmocka_unit_test(sums), cmocka_unit_test(rows_of_models_that_are_gone_are_given_up),
          cmocka_unit_test(models_are_bounded))
