#pragma once

#include <stdbool.h>
#include <yyjson.h>

#include "triton/core/tritonserver.h"

/* Configurations filled in from what a model's file says. */

/* bcomplete_type - a configuration's spelling of a data type, "TYPE_FP32". */
const char *bcomplete_type(TRITONSERVER_DataType datatype);

/* bcomplete_tensor - describe a tensor, as an entry of "input" or "output". One whose only
 * dimension is the batch has no dims left, which a configuration cannot say: it becomes [1] with
 * a reshape to [].
 * name     borrowed until the document is gone
 * dims     of the model, -1 = any
 * batches  the first dimension is the batch, which a configuration leaves out
 * returns  owned by the document; NULL when there is no memory */
yyjson_mut_val *bcomplete_tensor(yyjson_mut_doc *doc, const char *name,
                                 TRITONSERVER_DataType datatype, const int64_t *dims, size_t rank,
                                 bool batches);

/* bcomplete_batching - fill in the batching of a model that can batch: max_batch_size where
 * there is none, dynamic_batching where neither kind was chosen and there is more than one row.
 * max_batch_size  of the configuration
 * usual           what it becomes where it is 0; 0 leaves it
 * returns         the max_batch_size that the configuration then has */
int64_t bcomplete_batching(yyjson_mut_doc *doc, yyjson_mut_val *root, int64_t max_batch_size,
                           int64_t usual);
