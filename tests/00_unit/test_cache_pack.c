/* Answers as a response cache keeps them: what goes in comes out, and what was spoilt does not. */
#include "infer/request.h"
#include "infer/response.h"
#include "model/config.h"
#include "cache/cache_pack.h"
#include "support/test_version.h"
#include "support/unit.h"

#include <stdlib.h>
#include <string.h>

static const char reshaped[] =
    "name: 'm' backend: 'b' input [{ name: 'a' data_type: TYPE_FP32 dims: [ -1 ] }] "
    "output [{ name: 'o' data_type: TYPE_FP32 dims: [ 2, 2 ] reshape: { shape: [ 4 ] } }, "
    "{ name: 'p' data_type: TYPE_STRING dims: [ -1 ] }]";

static struct request_target target;
static struct request *request;

static void no_unpin(struct request_target *t)
{
    (void)t;
}

static int set_up(void **state)
{
    (void)state;
    target = (struct request_target){.config = test_version_config(reshaped), .unpin = no_unpin};
    request = request_new(&target, NULL, NULL, NULL);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    request_release(request);
    config_unref((struct model_config *)(uintptr_t)target.config);
    return 0;
}

static struct tensor_output *add(struct response *r, const char *name, enum datatype type,
                                 int64_t dim, const void *data, size_t bytes)
{
    struct tensor_output *o = response_add_output(r, name, type, &dim, 1);
    unit_succeeds(response_output_buffer(r, o, bytes));
    if (bytes)
        memcpy(o->data, data, bytes);
    return o;
}

/* large: above what fits the response's own memory. */
static struct response *make(size_t large)
{
    static const float numbers[4] = {1, 2, 3, 4};
    struct response *r = response_new(request);
    char *text = calloc(1, large + 1);
    add(r, "o", DATATYPE_FP32, 4, numbers, sizeof(numbers));
    add(r, "p", DATATYPE_BYTES, 1, text, large);
    add(r, "q", DATATYPE_INT8, 0, NULL, 0);
    free(text);
    param_add_string(&r->params, &r->arena, "text", 4, "a\0b", 3);
    param_add_string(&r->params, &r->arena, "bytes", 5, "", 0)->type = PARAM_BYTES;
    param_add(&r->params, &r->arena, "i", 1, PARAM_INT)->i = INT64_MIN;
    param_add(&r->params, &r->arena, "b", 1, PARAM_BOOL)->b = true;
    param_add(&r->params, &r->arena, "d", 1, PARAM_DOUBLE)->d = -0.5;
    return r;
}

static uint8_t *pack(const struct response *r, uint64_t *ret_size)
{
    *ret_size = cache_pack_size(r);
    uint8_t *data = malloc(*ret_size);
    cache_pack_write(r, data);
    return data;
}

static void expect_outputs(const struct response *a, const struct response *b)
{
    const struct tensor_output *x = a->outputs;
    const struct tensor_output *y = b->outputs;
    assert_int_equal(a->output_count, b->output_count);
    for (; x; x = x->next, y = y->next) {
        assert_string_equal(x->name, y->name);
        assert_int_equal(x->datatype, y->datatype);
        assert_int_equal(x->rank, y->rank);
        assert_memory_equal(x->shape, y->shape, x->rank * sizeof(*x->shape));
        assert_int_equal(x->byte_size, y->byte_size);
        assert_memory_equal(x->data, y->data, x->byte_size);
        assert_int_equal((uintptr_t)y->data % 64, 0);
    }
}

static void expect_params(const struct response *r)
{
    const struct param *p = r->params.first;
    assert_int_equal(r->params.count, 5);
    assert_string_equal(p->name, "text");
    assert_int_equal(p->bytes.len, 3);
    assert_memory_equal(p->bytes.data, "a\0b", 4);
    p = p->next;
    assert_int_equal(p->type, PARAM_BYTES);
    assert_int_equal(p->bytes.len, 0);
    p = p->next;
    assert_int_equal(p->i, INT64_MIN);
    p = p->next;
    assert_true(p->b);
    p = p->next;
    assert_true(p->d == -0.5);
}

static void test_there_and_back(void **state)
{
    (void)state;
    for (size_t large = 4; large < 200000; large *= 40) {
        struct response *r = make(large);
        uint64_t size;
        uint8_t *data = pack(r, &size);
        struct response *again = response_new(request);
        unit_succeeds(cache_pack_read(data, size, again));
        assert_int_equal(again->outputs->rank, 2); /* as a client saw it */
        expect_outputs(r, again);
        expect_params(again);
        response_free(again);
        response_free(r);
        free(data);
    }
}

/* Cut short anywhere, or with a byte too many. */
static void test_lengths(void **state)
{
    (void)state;
    struct response *r = make(4);
    uint64_t size;
    uint8_t *data = pack(r, &size);
    for (uint64_t n = 0; n <= size + 1; n++) {
        uint8_t *copy = malloc(n + 1); /* its end is watched by the sanitizer */
        memcpy(copy, data, n < size ? n : size);
        copy[n ? n - 1 : 0] = n > size ? 0 : copy[n ? n - 1 : 0];
        struct response *again = response_new(request);
        struct err *e = cache_pack_read(copy, n, again);
        if (n == size)
            unit_succeeds(e);
        else
            unit_fails(e, STATUS_INVALID_ARG, "is not what was put into it");
        response_free(again);
        free(copy);
    }
    response_free(r);
    free(data);
}

/* Any byte changed: refused, or another answer, but never out of bounds. */
static void test_other_bytes(void **state)
{
    (void)state;
    struct response *r = make(4);
    uint64_t size;
    uint8_t *data = pack(r, &size);
    for (uint64_t n = 0; n < size; n++)
        for (int bit = 0; bit < 8; bit++) {
            data[n] ^= (uint8_t)(1u << bit);
            struct response *again = response_new(request);
            err_free(cache_pack_read(data, size, again));
            response_free(again);
            data[n] ^= (uint8_t)(1u << bit);
        }
    response_free(r);
    free(data);
}

static void test_what_cannot_be_kept(void **state)
{
    (void)state;
    struct response *r = response_new(request);
    int64_t dim = 4;
    struct tensor_output *o = response_add_output(r, "o", DATATYPE_FP32, &dim, 1);
    assert_int_equal(cache_pack_size(r), 0); /* nobody asked for its buffer */
    unit_succeeds(response_output_buffer(r, o, 16));
    assert_true(cache_pack_size(r) > 16);
    o->memory = BUF_MEMORY_GPU;
    assert_int_equal(cache_pack_size(r), 0);
    response_free(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_there_and_back),
        cmocka_unit_test(test_lengths),
        cmocka_unit_test(test_other_bytes),
        cmocka_unit_test(test_what_cannot_be_kept),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
