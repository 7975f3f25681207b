#pragma once

#include <yyjson.h>

#include "trt.h"

/* complete_config - complete a configuration with what a plan says: batching, and of inputs and
 * outputs what is missing. No GPU and no TensorRT is needed for it.
 * model      its name, for errors
 * config     the configuration
 * tensors    `count` of the plan
 * most_rows  the largest batch of its profiles; 0 = it does not batch
 * ret        a new document, owned by the caller: yyjson_mut_doc_free; what it says stays the
 *            tensors' memory
 * errors     INTERNAL if what is given contradicts the plan; UNSUPPORTED for data types that the
 *            protocol does not have */
TRITONSERVER_Error *complete_config(const char *model, yyjson_doc *config,
                                    const struct trt_tensor *tensors, size_t count,
                                    int64_t most_rows, yyjson_mut_doc **ret);
