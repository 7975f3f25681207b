#pragma once

#include "tf_api.h"
#include "triton/core/tritonbackend.h"

#include <stdbool.h>

/* TensorFlow itself: what all models share. Read-only once runtime_new has returned. */

struct runtime {
    int processors;
    int64_t default_max_batch_size;
    bool soft_placement;        /* an operation whose device is not there runs elsewhere */
    double gpu_memory_fraction; /* 0 = as needed */
};

/* runtime_new - read the backend's settings.
 * ret_runtime  owned by the caller: free
 * errors       INVALID_ARG for a setting that does not parse */
TRITONSERVER_Error *runtime_new(TRITONBACKEND_Backend *backend, struct runtime **ret_runtime);

/* runtime_err - turn a status of TensorFlow into an error.
 * status   taken over
 * doing    what was tried, as in "loading model 'm'"
 * returns  NULL for success, else "tensorflow error in DOING: TEXT", INTERNAL */
TRITONSERVER_Error *runtime_err(TF_Status *status, const char *doing, const char *model);

/* runtime_has_operation - whether TensorFlow knows an operation.
 * graph  any */
bool runtime_has_operation(TF_Graph *graph, const char *name);

/* runtime_say - log a formatted text. */
void runtime_say(TRITONSERVER_LogLevel level, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* runtime_datatype - the data type that a type of TensorFlow stands for, references to variables
 * included.
 * returns  TRITONSERVER_TYPE_INVALID when there is none */
TRITONSERVER_DataType runtime_datatype(TF_DataType type);

/* runtime_type - the other way round.
 * returns  0 when there is none */
TF_DataType runtime_type(TRITONSERVER_DataType datatype);
