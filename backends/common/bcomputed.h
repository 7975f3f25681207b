#pragma once

#include <yyjson.h>

#include "binput.h"

/* Inputs that requests do not have: they are computed from the shapes of a whole batch, as
 * batch_input in the configuration says. */

enum bcomputed_kind {
    BCOMPUTED_NONE,
    BCOMPUTED_ELEMENT_COUNT,
    BCOMPUTED_ACCUMULATED,
    BCOMPUTED_ACCUMULATED_WITH_ZERO,
    BCOMPUTED_MAX_ELEMENT_COUNT_AS_SHAPE,
    BCOMPUTED_ITEM_SHAPE,
    BCOMPUTED_ITEM_SHAPE_FLATTEN,
    BCOMPUTED_KINDS,
};

/* bcomputed_kind_of - read the kind of an entry of batch_input.
 * returns  BCOMPUTED_NONE if there is no such kind */
enum bcomputed_kind bcomputed_kind_of(yyjson_val *entry);

/* bcomputed_shape - the shape of such an input for this batch.
 * source    the input whose shapes are used
 * ret_rank  1 or 2
 * ret_size  bytes of the contents
 * errors    INVALID_ARG if it is too large for any tensor: an empty input may have any other
 *           dimension */
TRITONSERVER_Error *bcomputed_shape(const struct brun *run, const struct binput *source,
                                    enum bcomputed_kind kind, int64_t ret_shape[2],
                                    size_t *ret_rank, uint64_t *ret_size);

/* bcomputed_part - the shape of one item's part of an output that is divided among the items by
 * the shapes of an input: the configuration's, with the input's dimensions where it is open.
 * output     its name, for errors
 * dims       of the configuration, without the batch
 * of         the item's part of that input
 * ret_shape  room for BRUN_MAX_DIMS
 * errors     INVALID_ARG if the input has too few dimensions */
TRITONSERVER_Error *bcomputed_part(const struct brun *run, const char *output, const int64_t *dims,
                                   size_t count, const struct binput *source,
                                   const struct binput_share *of, int64_t *ret_shape,
                                   size_t *ret_rank);

/* bcomputed_elements - how many elements the parts of all items in the batch have together.
 * output, dims, count, source  as bcomputed_part
 * ret_elements                 UINT64_MAX if there are more
 * errors                       as bcomputed_part */
TRITONSERVER_Error *bcomputed_elements(const struct brun *run, const char *output,
                                       const int64_t *dims, size_t count,
                                       const struct binput *source, uint64_t *ret_elements);

/* bcomputed_fill - write its contents.
 * datatype  INT32 or FP32
 * to        as many elements as the shape has; elements without a value become zeros */
void bcomputed_fill(const struct brun *run, const struct binput *source, enum bcomputed_kind kind,
                    TRITONSERVER_DataType datatype, void *to, size_t count);
