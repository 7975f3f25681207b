#include "model/shape.h"

#include <inttypes.h>
#include <string.h>

bool shape_elements(const int64_t *dims, size_t rank, uint64_t *ret)
{
    int64_t product = 1;
    for (size_t i = 0; i < rank; i++)
        if (dims[i] < 0 || __builtin_mul_overflow(product, dims[i], &product))
            return false;
    *ret = (uint64_t)product;
    return true;
}

bool shape_equal(const int64_t *a, size_t rank_a, const int64_t *b, size_t rank_b)
{
    return rank_a == rank_b && (rank_a == 0 || memcmp(a, b, rank_a * sizeof(*a)) == 0);
}

bool shape_fits(const int64_t *pattern, size_t rank_p, const int64_t *dims, size_t rank)
{
    if (rank_p != rank)
        return false;
    for (size_t i = 0; i < rank; i++)
        if (dims[i] < 0 || (pattern[i] != SHAPE_ANY && pattern[i] != dims[i]))
            return false;
    return true;
}

void shape_reshape(const int64_t *from, size_t rank_from, const int64_t *sizes, const int64_t *to,
                   size_t rank_to, int64_t *ret)
{
    size_t next = 0;
    for (size_t i = 0; i < rank_to; i++) {
        ret[i] = to[i];
        if (to[i] != SHAPE_ANY)
            continue;
        while (next < rank_from && from[next] != SHAPE_ANY)
            next++;
        ret[i] = next < rank_from ? sizes[next++] : 1;
    }
}

void shape_print(struct strbuf *sb, const int64_t *dims, size_t rank)
{
    strbuf_putc(sb, '[');
    for (size_t i = 0; i < rank; i++)
        strbuf_printf(sb, "%s%" PRId64, i ? "," : "", dims[i]);
    strbuf_putc(sb, ']');
}
