/* batching/batcher_setup: every setting of a configuration's dynamic batcher has its effect.
 * Time is a parameter. */
#include "batching/batcher_setup.h"

#include "model/config.h"
#include "batching/batcher.h"
#include "support/fake_request.h"
#include "support/test_version.h"
#include "support/unit.h"

#define MODEL                                                                                    \
    "name: 'm' backend: 'b' max_batch_size: 4 input [{ name: 'i' data_type: TYPE_INT32 dims: [ " \
    "-1 ] }, { name: 's' data_type: TYPE_INT32 dims: [ 1 ] is_shape_tensor: true }] output [{ "  \
    "name: 'o' data_type: TYPE_INT32 dims: [ 1 ] }] "
#define MAX 8
#define NOW TIME_S(10)

static struct model_config *config;
static struct batcher *batcher;
static struct request *requests[MAX];
static int count;
static struct request *out[BATCHER_MAX_REQUESTS];
static time_ns wake;

static void begin(const char *text)
{
    config = test_version_config(text);
    count = 0;
    unit_succeeds(batcher_setup_new(config, NULL, &batcher));
}

static void end(void)
{
    struct list rest;
    list_init(&rest);
    batcher_drain(batcher, &rest);
    batcher_free(batcher);
    while (count)
        fake_request_free(requests[--count]);
    config_unref(config);
}

static struct request *make(uint32_t rows)
{
    const int64_t shape[] = {rows, 1};
    struct request *r = fake_request_new(rows);
    fake_request_input(r, "i", shape, 2, NULL, 0);
    requests[count++] = r;
    return r;
}

static struct request *push(uint32_t rows)
{
    struct request *r = make(rows);
    assert_int_equal(batcher_push(batcher, NOW, r), BATCHER_PUSH_OK);
    return r;
}

static struct request *push_level(uint64_t level, uint64_t timeout_us)
{
    struct request *r = make(1);
    r->priority = level;
    r->timeout_us = timeout_us;
    assert_int_equal(batcher_push(batcher, NOW, r), BATCHER_PUSH_OK);
    return r;
}

static size_t take(time_ns at)
{
    return batcher_take(batcher, at, out, BATCHER_MAX_REQUESTS, &wake);
}

static size_t expired(time_ns at)
{
    struct list list;
    list_init(&list);
    return batcher_expire(batcher, at, &list);
}

/* MC-101, MC-105, MC-108, PB-94, PB-96: sizes that are preferred, and how long to wait for them. */
static void sizes_and_delay(void **state)
{
    (void)state;
    begin(MODEL
          "dynamic_batching { preferred_batch_size: [ 3 ] max_queue_delay_microseconds: 50 }");
    push(1);
    assert_int_equal(take(NOW), 0);
    assert_int_equal(wake, NOW + TIME_US(50));
    assert_int_equal(take(wake), 1);
    for (int i = 0; i < 4; i++)
        push(1);
    assert_int_equal(take(NOW), 3);
    end();
    begin(MODEL "dynamic_batching { }");
    for (int i = 0; i < 5; i++)
        push(1);
    assert_int_equal(take(NOW), 4); /* max_batch_size */
    end();
}

/* MC-116, MC-118, MC-120, MC-121, PB-99, PB-101, PB-104, PB-105: who names no level is of the
 * default one, and each level has its own policy or the default one. */
static void levels(void **state)
{
    (void)state;
    begin(MODEL "dynamic_batching { priority_levels: 3 default_priority_level: 2 "
                "default_queue_policy { max_queue_size: 2 } "
                "priority_queue_policy [{ key: 3 value { max_queue_size: 1 } }] }");
    struct request *third = push_level(3, 0);
    assert_int_equal(batcher_push(batcher, NOW, make(1)), BATCHER_PUSH_OK);
    struct request *second = requests[count - 1];
    struct request *first = push_level(1, 0);
    struct request *full = make(1);
    full->priority = 3;
    assert_int_equal(batcher_push(batcher, NOW, full), BATCHER_PUSH_FULL);
    assert_int_equal(take(NOW), 3);
    assert_true(out[0] == first && out[1] == second && out[2] == third);
    push_level(2, 0);
    push_level(0, 0);
    assert_int_equal(batcher_push(batcher, NOW, make(1)), BATCHER_PUSH_FULL); /* of level 2 */
    end();
}

/* MC-122, PB-90, PB-91: how long a request waits, what becomes of it then, and whether it may
 * say so itself. */
static void time_outs(void **state)
{
    (void)state;
    begin(MODEL "dynamic_batching { priority_levels: 3 default_priority_level: 1 "
                "default_queue_policy { default_timeout_microseconds: 100 } "
                "priority_queue_policy [{ key: 2 value { timeout_action: DELAY "
                "default_timeout_microseconds: 100 } }, { key: 3 value { allow_timeout_override: "
                "true default_timeout_microseconds: 100 } }] }");
    push_level(1, 40);
    struct request *late = push_level(2, 40);
    push_level(3, 40);
    assert_int_equal(expired(NOW + TIME_US(40)), 1); /* that of level 3 */
    assert_int_equal(expired(NOW + TIME_US(99)), 0);
    assert_int_equal(expired(NOW + TIME_US(100)), 1); /* that of level 1 */
    assert_int_equal(take(NOW + TIME_US(101)), 1);
    assert_ptr_equal(out[0], late);
    end();
}

/* PB-174: without a dynamic batcher each request runs alone, and its own time-out holds. */
static void no_batcher(void **state)
{
    (void)state;
    begin(MODEL);
    push(1);
    push_level(0, 40);
    assert_int_equal(take(NOW), 1);
    assert_int_equal(expired(NOW + TIME_US(40)), 1);
    end();
}

/* What a tensor of shapes holds has to be equal in a batch. */
static void shape_tensors(void **state)
{
    (void)state;
    static const int32_t values[] = {7, 7, 8};
    begin(MODEL "dynamic_batching { }");
    for (int i = 0; i < 3; i++) {
        const int64_t shape[] = {1};
        fake_request_input(make(1), "s", shape, 1, &values[i], sizeof(values[i]));
        assert_int_equal(batcher_push(batcher, NOW, requests[i]), BATCHER_PUSH_OK);
    }
    assert_int_equal(take(NOW), 2);
    end();
}

UNIT_MAIN(UNIT(sizes_and_delay), UNIT(levels), UNIT(time_outs), UNIT(no_batcher),
          UNIT(shape_tensors))
