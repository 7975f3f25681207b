#pragma once
/* Shapes of tensors: arithmetic without overflow, and their text in messages. */
#include "base/strbuf.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SHAPE_ANY ((int64_t)-1) /* a dimension of variable size in a configuration */

/* shape_elements - the product of the dimensions (1 for none); false when a dimension is
 * negative or the product is over INT64_MAX. */
bool shape_elements(const int64_t *dims, size_t rank, uint64_t *ret);

/* shape_equal - same rank, same dimensions. */
bool shape_equal(const int64_t *a, size_t rank_a, const int64_t *b, size_t rank_b);

/* shape_fits - dims match a pattern in which SHAPE_ANY takes any size >= 0. */
bool shape_fits(const int64_t *pattern, size_t rank_p, const int64_t *dims, size_t rank);

/* shape_reshape - the shape `to`; each SHAPE_ANY in it is replaced, in order, by the size at the
 * next SHAPE_ANY of `from`.
 * sizes   rank_from actual sizes
 * ret     rank_to slots; a SHAPE_ANY without a counterpart becomes 1 */
void shape_reshape(const int64_t *from, size_t rank_from, const int64_t *sizes, const int64_t *to,
                   size_t rank_to, int64_t *ret);

/* shape_print - "[2,-1,4]" */
void shape_print(struct strbuf *sb, const int64_t *dims, size_t rank);
