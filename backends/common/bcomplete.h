#pragma once

#include <stdbool.h>
#include <yyjson.h>

#include "triton/core/tritonserver.h"

/* Completes configurations from what a model's file says. */

/* bcomplete_type - the name of a data type in configurations, "TYPE_FP32". */
const char *bcomplete_type(TRITONSERVER_DataType datatype);

/* bcomplete_tensor - describe a tensor as an entry of "input" or "output". If its only dimension
 * is the batch, no dims are left, which a configuration cannot express: then it gets dims [1]
 * and a reshape to [].
 * name     borrowed as long as the document exists
 * dims     of the model, -1 = any
 * batches  the first dimension is the batch, which a configuration omits
 * returns  owned by the document; NULL if there is no memory */
yyjson_mut_val *bcomplete_tensor(yyjson_mut_doc *doc, const char *name,
                                 TRITONSERVER_DataType datatype, const int64_t *dims, size_t rank,
                                 bool batches);

/* Whether a model batches, and who says so. */
enum bcomplete_batch { BCOMPLETE_NO_BATCH, BCOMPLETE_BATCH_GIVEN, BCOMPLETE_BATCH_FILLED_IN };

/* A shape, for errors. */
struct bcomplete_shape {
    const int64_t *dims;
    size_t rank;
};

/* bcomplete_wrong_shape - the error for a tensor whose shape in the configuration is not the
 * model's, with what to do if max_batch_size was filled in.
 * model, tensor  names
 * configured     with the batch dimension, if the model batches */
TRITONSERVER_Error *bcomplete_wrong_shape(const char *model, const char *tensor,
                                          struct bcomplete_shape expected,
                                          struct bcomplete_shape configured,
                                          enum bcomplete_batch batch);

/* bcomplete_batching - complete the batching of a model that can batch: set max_batch_size if
 * there is none, and dynamic_batching if no batcher is chosen and there is more than one row.
 * max_batch_size  of the configuration
 * usual           the new value if it is 0; 0 = keep it
 * returns         the resulting max_batch_size */
int64_t bcomplete_batching(yyjson_mut_doc *doc, yyjson_mut_val *root, int64_t max_batch_size,
                           int64_t usual);
