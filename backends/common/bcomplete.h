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

/* bcomplete_batching - complete the batching of a model that can batch: set max_batch_size if
 * there is none, and dynamic_batching if no batcher is chosen and there is more than one row.
 * max_batch_size  of the configuration
 * usual           the new value if it is 0; 0 = keep it
 * returns         the resulting max_batch_size */
int64_t bcomplete_batching(yyjson_mut_doc *doc, yyjson_mut_val *root, int64_t max_batch_size,
                           int64_t usual);
