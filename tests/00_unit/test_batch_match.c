#include "batching/batch_match.h"

#include "support/fake_request.h"
#include "support/unit.h"

static struct request *with_shape(const char *name, int64_t rows, int64_t dim)
{
    const int64_t shape[] = {rows, dim};
    struct request *r = fake_request_new((uint32_t)rows);
    fake_request_input(r, name, shape, 2, NULL, 0);
    return r;
}

static const struct batch_match by_shape = {.batched = true};

static bool same(const struct request *a, const struct request *b)
{
    return batch_match_equal(&by_shape, a, b) && batch_match_equal(&by_shape, b, a);
}

/* PB-38, PB-39. */
static void shapes_but_for_the_batch_dimension(void **state)
{
    (void)state;
    struct request *a = with_shape("a", 1, 4);
    struct request *more_rows = with_shape("a", 3, 4);
    struct request *wider = with_shape("a", 1, 5);
    struct request *named = with_shape("b", 1, 4);
    assert_true(same(a, more_rows));
    assert_false(batch_match_equal(&(struct batch_match){.batched = false}, a, more_rows));
    assert_false(same(a, wider));
    assert_false(same(a, named));
    a->inputs[0].ragged_ok = true;
    wider->inputs[0].ragged_ok = true;
    assert_true(same(a, wider));
    fake_request_free(a);
    fake_request_free(more_rows);
    fake_request_free(wider);
    fake_request_free(named);
}

static void rank_counts(void **state)
{
    (void)state;
    const int64_t shape[] = {1, 4, 1};
    struct request *a = with_shape("a", 1, 4);
    struct request *deeper = fake_request_new(1);
    fake_request_input(deeper, "a", shape, 3, NULL, 0);
    assert_false(same(a, deeper));
    fake_request_free(a);
    fake_request_free(deeper);
}

static void set_of_inputs(void **state)
{
    (void)state;
    const int64_t shape[] = {1, 4};
    const int64_t other[] = {1, 7};
    struct request *a = with_shape("a", 1, 4);
    struct request *both = with_shape("a", 1, 4);
    struct request *swapped = fake_request_new(1);
    struct request *with_c = with_shape("a", 1, 4);
    fake_request_input(both, "b", other, 2, NULL, 0);
    fake_request_input(swapped, "b", other, 2, NULL, 0);
    fake_request_input(swapped, "a", shape, 2, NULL, 0);
    fake_request_input(with_c, "c", other, 2, NULL, 0);
    assert_false(same(a, both));
    assert_true(same(both, swapped));
    assert_false(same(both, with_c));
    fake_request_free(a);
    fake_request_free(both);
    fake_request_free(swapped);
    fake_request_free(with_c);
}

static struct request *with_content(const void *bytes, size_t size)
{
    const int64_t shape[] = {2};
    struct request *r = with_shape("a", 1, 4);
    fake_request_input(r, "s", shape, 1, bytes, size);
    return r;
}

/* Shape tensors have no batch dimension, and a batch has one content of them; all of it counts,
 * NULs included. */
static void contents_of_shape_tensors(void **state)
{
    (void)state;
    struct batch_match m;
    batch_match_init(&m, true, (const char *const[]){"s"}, 1);
    struct request *a = with_content("\0\1\0\2", 4);
    struct request *equal = with_content("\0\1\0\2", 4);
    struct request *behind_nul = with_content("\0\1\0\3", 4);
    struct request *longer = with_content("\0\1\0\2\0", 5);
    struct request *on_device = with_content("\0\1\0\2", 4);
    ((struct tensor_piece *)(uintptr_t)on_device->inputs[1].pieces)->memory = BUF_MEMORY_GPU;
    assert_true(batch_match_equal(&m, a, equal));
    assert_false(batch_match_equal(&m, a, behind_nul));
    assert_true(batch_match_equal(&by_shape, a, behind_nul));
    assert_false(batch_match_equal(&m, a, longer));
    assert_false(batch_match_equal(&m, a, on_device));
    fake_request_free(a);
    fake_request_free(equal);
    fake_request_free(behind_nul);
    fake_request_free(longer);
    fake_request_free(on_device);
    batch_match_fini(&m);
}

UNIT_MAIN(UNIT(shapes_but_for_the_batch_dimension), UNIT(rank_counts), UNIT(set_of_inputs),
          UNIT(contents_of_shape_tensors))
