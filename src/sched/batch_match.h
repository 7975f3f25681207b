#pragma once
/* Whether two requests may run in one batch. Pure. */
#include <stdbool.h>
#include <stddef.h>

struct request;

/* batch_match_equal - both give the same set of inputs, and each input that may not be ragged has
 * the same shape in both, apart from the batch dimension.
 * batched        shapes begin with the batch dimension
 * shape_tensors  names of inputs without a batch dimension, whose contents must be equal too; count
 *                of them
 * Contents are compared where they lie in one piece each in host memory, else they count as
 * different. */
bool batch_match_equal(const struct request *a, const struct request *b, bool batched,
                       char *const *shape_tensors, size_t count);
