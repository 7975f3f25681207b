/* Keys of cached answers: what the answer depends on is in them, what it does not depend on is
 * not. */
#include "infer/request.h"
#include "model/config.h"
#include "cache/cache_key.h"
#include "support/test_version.h"
#include "support/unit.h"

#include <string.h>

static const char two[] =
    "name: 'm' backend: 'b' input [{ name: 'a' data_type: TYPE_INT8 dims: [ -1, -1 ] }, "
    "{ name: 'b' data_type: TYPE_INT8 dims: [ -1 ] optional: true }] "
    "output [{ name: 'o' data_type: TYPE_INT8 dims: [ -1 ] }, { name: 'p' data_type: TYPE_INT8 "
    "dims: [ -1 ] }]";

static struct request_target target;
static struct cache_key_model model;

static void no_unpin(struct request_target *t)
{
    (void)t;
}

static int set_up(void **state)
{
    (void)state;
    target = (struct request_target){.config = test_version_config(two), .unpin = no_unpin};
    cache_key_model_init(&model, "m", 1, "config", 6, "files");
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    config_unref((struct model_config *)(uintptr_t)target.config);
    return 0;
}

static struct request *begin(void)
{
    return request_new(&target, NULL, NULL, NULL);
}

static struct tensor_input *add(struct request *r, const char *name, int64_t rows, int64_t columns,
                                const char *bytes)
{
    struct tensor_piece piece = {.data = bytes, .size = strlen(bytes)};
    const int64_t shape[2] = {rows, columns};
    return request_add_input(r, name, strlen(name), DATATYPE_INT8, shape, columns ? 2 : 1, &piece,
                             1);
}

/* The request with everything set, but for what `change` makes of it. */
static void make(struct request *r, int change)
{
    r->flags = change == 1 ? REQUEST_SEQUENCE_START : 0;
    r->correlation_id = change == 2 ? 8 : 7;
    r->correlation_string = change == 3 ? "text" : NULL;
    if (change != 4)
        param_add_string(&r->params, &r->arena, "s", 1, change == 5 ? "other" : "value", 5);
    param_add(&r->params, &r->arena, "i", 1, PARAM_INT)->i = change == 6 ? 2 : 1;
    param_add(&r->params, &r->arena, "d", 1, PARAM_DOUBLE)->d = change == 7 ? -0.0 : 0.0;
    param_add(&r->params, &r->arena, change == 8 ? "c" : "b", 1, PARAM_BOOL)->b = change != 9;
    if (change != 10)
        request_add_output(r, change == 17 ? "q" : "o", 1);
    if (change == 11)
        request_add_output(r, "p", 1);
    struct tensor_input *in =
        change == 12 ? add(r, "a", 3, 2, "123456") : add(r, "a", 2, 3, "123456");
    if (change == 13)
        in->datatype = DATATYPE_UINT8;
    if (change != 14)
        add(r, change == 18 ? "c" : "b", change == 15 ? 3 : 2, 0,
            change == 15   ? "abc"
            : change == 16 ? "ac"
                           : "ab");
}

#define CHANGES 19

static void test_everything_counts(void **state)
{
    (void)state;
    char keys[CHANGES][CACHE_KEY_TEXT + 1];
    for (int change = 0; change < CHANGES; change++) {
        struct request *r = begin();
        make(r, change);
        assert_true(cache_key_make(&model, r, keys[change]));
        assert_int_equal(strlen(keys[change]), CACHE_KEY_TEXT);
        request_release(r);
        for (int k = 0; k < change; k++)
            assert_string_not_equal(keys[change], keys[k]);
    }
}

static void test_the_same_again(void **state)
{
    (void)state;
    char first[CACHE_KEY_TEXT + 1];
    char key[CACHE_KEY_TEXT + 1];
    for (int time = 0; time < 3; time++) {
        struct request *r = begin();
        r->id = time ? "other" : "id";
        r->priority = (uint64_t)time;
        r->timeout_us = (uint64_t)time * 1000;
        make(r, 0);
        assert_true(cache_key_make(&model, r, time ? key : first));
        request_release(r);
        if (time)
            assert_string_equal(key, first);
    }
}

/* Inputs, outputs and parameters named in another order, and bytes that lie in pieces. */
static void test_order_and_pieces(void **state)
{
    (void)state;
    static const struct tensor_piece pieces[] = {
        {.data = "12", .size = 2}, {.data = "", .size = 0}, {.data = "3456", .size = 4}};
    const int64_t shape[2] = {2, 3};
    char keys[2][CACHE_KEY_TEXT + 1];
    for (int turned = 0; turned < 2; turned++) {
        struct request *r = begin();
        param_add(&r->params, &r->arena, turned ? "y" : "x", 1, PARAM_INT)->i = turned ? 2 : 1;
        param_add(&r->params, &r->arena, turned ? "x" : "y", 1, PARAM_INT)->i = turned ? 1 : 2;
        request_add_output(r, turned ? "p" : "o", 1);
        request_add_output(r, turned ? "o" : "p", 1);
        if (turned)
            add(r, "b", 2, 0, "ab");
        if (turned)
            request_add_input(r, "a", 1, DATATYPE_INT8, shape, 2, pieces, 3);
        else
            add(r, "a", 2, 3, "123456");
        if (!turned)
            add(r, "b", 2, 0, "ab");
        assert_true(cache_key_make(&model, r, keys[turned]));
        request_release(r);
    }
    assert_string_equal(keys[0], keys[1]);
}

/* Of two parameters with one name it counts which came last. */
static void test_repeated_parameters(void **state)
{
    (void)state;
    char keys[2][CACHE_KEY_TEXT + 1];
    for (int turned = 0; turned < 2; turned++) {
        struct request *r = begin();
        param_add(&r->params, &r->arena, "x", 1, PARAM_INT)->i = turned ? 2 : 1;
        param_add(&r->params, &r->arena, "x", 1, PARAM_INT)->i = turned ? 1 : 2;
        assert_true(cache_key_make(&model, r, keys[turned]));
        request_release(r);
    }
    assert_string_not_equal(keys[0], keys[1]);
}

static void test_what_all_keys_of_a_model_share(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        int64_t version;
        const char *config;
        const char *files;
    } models[] = {{"m", 1, "config", "files"}, {"n", 1, "config", "files"},
                  {"m", 2, "config", "files"}, {"m", 1, "confi", "gfiles"},
                  {"m", 1, "other", "files"},  {"m", 1, "config", "other"}};
    char keys[6][CACHE_KEY_TEXT + 1];
    for (size_t i = 0; i < 6; i++) {
        struct cache_key_model m;
        cache_key_model_init(&m, models[i].name, models[i].version, models[i].config,
                             strlen(models[i].config), models[i].files);
        struct request *r = begin();
        make(r, 0);
        assert_true(cache_key_make(&m, r, keys[i]));
        request_release(r);
        for (size_t k = 0; k < i; k++)
            assert_string_not_equal(keys[i], keys[k]);
    }
}

static void test_times(void **state)
{
    (void)state;
    char keys[3][CACHE_KEY_TEXT + 1];
    for (uint64_t i = 0; i < 3; i++) {
        struct cache_key_model at;
        cache_key_model_at(&model, i / 2, &at);
        struct request *r = begin();
        make(r, 0);
        assert_true(cache_key_make(&at, r, keys[i]));
        request_release(r);
    }
    assert_string_equal(keys[0], keys[1]);
    assert_string_not_equal(keys[1], keys[2]);
}

/* Memory of a device is not read; memory of one host policy counts. */
static void test_places(void **state)
{
    (void)state;
    struct tensor_piece device = {
        .data = (void *)(uintptr_t)1, .size = 4, .memory = BUF_MEMORY_GPU};
    struct tensor_piece piece = {.data = "1234", .size = 4};
    struct tensor_policy policy = {
        .name = "gpu_0", .pieces = &device, .piece_count = 1, .byte_size = 4};
    const int64_t shape[1] = {4};
    char keys[2][CACHE_KEY_TEXT + 1];
    struct request *r = begin();
    request_add_input(r, "b", 1, DATATYPE_INT8, shape, 1, &device, 1);
    assert_false(cache_key_make(&model, r, keys[0]));
    request_release(r);
    r = begin();
    struct tensor_input *in = request_add_input(r, "b", 1, DATATYPE_INT8, shape, 1, &piece, 1);
    assert_true(cache_key_make(&model, r, keys[0]));
    in->policies = &policy;
    assert_false(cache_key_make(&model, r, keys[1]));
    policy.pieces = &piece;
    assert_true(cache_key_make(&model, r, keys[1]));
    request_release(r);
    assert_string_not_equal(keys[0], keys[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_everything_counts),
        cmocka_unit_test(test_the_same_again),
        cmocka_unit_test(test_order_and_pieces),
        cmocka_unit_test(test_repeated_parameters),
        cmocka_unit_test(test_what_all_keys_of_a_model_share),
        cmocka_unit_test(test_times),
        cmocka_unit_test(test_places),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
