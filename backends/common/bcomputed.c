#include "bcomputed.h"

#include <string.h>

#include "berr.h"

enum bcomputed_kind bcomputed_kind_of(yyjson_val *entry)
{
    static const char *const names[BCOMPUTED_KINDS] = {
        [BCOMPUTED_ELEMENT_COUNT] = "BATCH_ELEMENT_COUNT",
        [BCOMPUTED_ACCUMULATED] = "BATCH_ACCUMULATED_ELEMENT_COUNT",
        [BCOMPUTED_ACCUMULATED_WITH_ZERO] = "BATCH_ACCUMULATED_ELEMENT_COUNT_WITH_ZERO",
        [BCOMPUTED_MAX_ELEMENT_COUNT_AS_SHAPE] = "BATCH_MAX_ELEMENT_COUNT_AS_SHAPE",
        [BCOMPUTED_ITEM_SHAPE] = "BATCH_ITEM_SHAPE",
        [BCOMPUTED_ITEM_SHAPE_FLATTEN] = "BATCH_ITEM_SHAPE_FLATTEN",
    };
    const char *name = yyjson_get_str(yyjson_obj_get(entry, "kind"));
    for (int kind = BCOMPUTED_NONE + 1; name && kind < BCOMPUTED_KINDS; kind++)
        if (strcmp(name, names[kind]) == 0)
            return (enum bcomputed_kind)kind;
    return BCOMPUTED_NONE;
}

/* sum + left * right; INT64_MAX, which no tensor has room for, if that is too large. */
static int64_t add_product(int64_t sum, int64_t left, int64_t right)
{
    int64_t product;
    if (__builtin_mul_overflow(left, right, &product) || __builtin_add_overflow(sum, product, &sum))
        return INT64_MAX;
    return sum;
}

TRITONSERVER_Error *bcomputed_shape(const struct brun *run, const struct binput *source,
                                    enum bcomputed_kind kind, int64_t ret_shape[2],
                                    size_t *ret_rank, uint64_t *ret_size)
{
    ret_shape[0] = kind == BCOMPUTED_ACCUMULATED_WITH_ZERO ? 1 : 0;
    ret_shape[1] = 0;
    for (uint32_t i = 0; i < run->count; i++) {
        struct binput_share share;
        if (!binput_share(run, source, i, &share))
            continue;
        int64_t rows = share.rank ? share.shape[0] : 0;
        int64_t inner = share.rank ? (int64_t)share.rank - 1 : 0;
        if (kind == BCOMPUTED_MAX_ELEMENT_COUNT_AS_SHAPE)
            ret_shape[0] = share.elements > ret_shape[0] ? share.elements : ret_shape[0];
        else if (kind == BCOMPUTED_ITEM_SHAPE)
            ret_shape[0] = add_product(ret_shape[0], rows, 1);
        else if (kind == BCOMPUTED_ITEM_SHAPE_FLATTEN)
            ret_shape[0] = add_product(ret_shape[0], rows, inner);
        else
            ret_shape[0]++;
        ret_shape[1] = inner;
    }
    *ret_rank = kind == BCOMPUTED_ITEM_SHAPE ? 2 : 1;
    /* INT32 and FP32 have the same size. */
    if (brun_bytes(TRITONSERVER_TYPE_INT32, ret_shape, *ret_rank, ret_size))
        return NULL;
    return berr_new(TRITONSERVER_ERROR_INVALID_ARG,
                    "the shape of input '%s' is too large for what the model is told of it",
                    source->name);
}

TRITONSERVER_Error *bcomputed_part(const struct brun *run, const char *output, const int64_t *dims,
                                   size_t count, const struct binput *source,
                                   const struct binput_share *of, int64_t *ret_shape,
                                   size_t *ret_rank)
{
    size_t first = run->place->max_batch_size > 0 ? 1 : 0;
    for (size_t i = 0; i < count + first; i++) {
        int64_t dim = i < first ? -1 : dims[i - first];
        if (dim == -1 && i >= of->rank)
            return berr_new(
                TRITONSERVER_ERROR_INVALID_ARG,
                "output '%s' has the shape of input '%s', which has only %zu dimensions", output,
                source->name, of->rank);
        ret_shape[i] = dim == -1 ? of->shape[i] : dim;
    }
    *ret_rank = count + first;
    return NULL;
}

TRITONSERVER_Error *bcomputed_elements(const struct brun *run, const char *output,
                                       const int64_t *dims, size_t count,
                                       const struct binput *source, uint64_t *ret_elements)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < run->count; i++) {
        struct binput_share of;
        int64_t shape[BRUN_MAX_DIMS];
        size_t rank;
        uint64_t elements = 1;
        if (!binput_share(run, source, i, &of))
            continue;
        TRITONSERVER_Error *err =
            bcomputed_part(run, output, dims, count, source, &of, shape, &rank);
        if (err)
            return err;
        for (size_t k = 0; k < rank; k++)
            if (__builtin_mul_overflow(elements, (uint64_t)shape[k], &elements))
                elements = UINT64_MAX;
        if (__builtin_add_overflow(sum, elements, &sum))
            sum = UINT64_MAX;
    }
    *ret_elements = sum;
    return NULL;
}

/* The place for the values. */
struct filler {
    bool is_float;
    char *at, *end;
};

static void bcomputed_put(struct filler *filler, int64_t value)
{
    float as_float = (float)value;
    int32_t as_int = value > INT32_MAX ? INT32_MAX : (int32_t)value;
    const void *from = filler->is_float ? (const void *)&as_float : (const void *)&as_int;
    if (filler->at == filler->end)
        return;
    memcpy(filler->at, from, sizeof as_int);
    filler->at += sizeof as_int;
}

void bcomputed_fill(const struct brun *run, const struct binput *source, enum bcomputed_kind kind,
                    TRITONSERVER_DataType datatype, void *to, size_t count)
{
    size_t size = count * sizeof(int32_t);
    struct filler filler = {
        .is_float = datatype == TRITONSERVER_TYPE_FP32, .at = to, .end = (char *)to + size};
    int64_t sum = 0;
    bool accumulates = kind == BCOMPUTED_ACCUMULATED || kind == BCOMPUTED_ACCUMULATED_WITH_ZERO;
    bool shapes = kind == BCOMPUTED_ITEM_SHAPE || kind == BCOMPUTED_ITEM_SHAPE_FLATTEN;
    memset(to, 0, size);
    if (kind == BCOMPUTED_ACCUMULATED_WITH_ZERO)
        bcomputed_put(&filler, 0);
    for (uint32_t i = 0; i < run->count; i++) {
        struct binput_share share;
        if (!binput_share(run, source, i, &share))
            continue;
        sum += share.elements;
        if (kind == BCOMPUTED_ELEMENT_COUNT)
            bcomputed_put(&filler, share.elements);
        else if (accumulates)
            bcomputed_put(&filler, sum);
        int64_t rows = shapes && share.rank ? share.shape[0] : 0;
        for (int64_t row = 0; row < rows && filler.at < filler.end; row++)
            for (size_t d = 1; d < share.rank; d++)
                bcomputed_put(&filler, share.shape[d]);
    }
}
