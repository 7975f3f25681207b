#pragma once

#include "tf_api.h"
#include "triton/core/tritonbackend.h"

#include <stdbool.h>

/* TensorFlow: what all models share. Read-only once runtime_new has returned. */

struct runtime {
    int processors;
    int64_t default_max_batch_size;
    /* an operation whose device does not exist runs on another device */
    bool soft_placement;
    bool has_cuda;              /* models without a kind go to GPUs, if the server has any */
    double gpu_memory_fraction; /* 0 = as needed */
};

/* runtime_new - read the backend's settings.
 * ret_runtime  owned by the caller: free
 * errors       INVALID_ARG for a setting that does not parse */
TRITONSERVER_Error *runtime_new(TRITONBACKEND_Backend *backend, struct runtime **ret_runtime);

/* runtime_err - make an error from a status of TensorFlow.
 * status   freed
 * doing    what was tried, such as "loading model 'm'"
 * returns  NULL for success, else "tensorflow error in DOING: TEXT", INTERNAL */
TRITONSERVER_Error *runtime_err(TF_Status *status, const char *doing, const char *model);

/* runtime_has_operation - true if TensorFlow knows an operation.
 * graph  any */
bool runtime_has_operation(TF_Graph *graph, const char *name);

/* runtime_datatype - the data type for a type of TensorFlow, including references to variables.
 * returns  TRITONSERVER_TYPE_INVALID if there is none */
TRITONSERVER_DataType runtime_datatype(TF_DataType type);

/* runtime_type - the reverse.
 * returns  0 if there is none */
TF_DataType runtime_type(TRITONSERVER_DataType datatype);
