/* onnxruntime: runs ONNX models with ONNX Runtime. This file starts and ends it; model.h
 * describes a model, run.h an execution. */
#include "triton/core/nereid_backend.h"

#include "../common/bentry.h"
#include "ort.h"

/* ONNX Runtime writes whole tensors, or whole tensors are copied. */
const uint32_t nereid_backend_fills_outputs_v1 = 1;

/* brun.c sends them. */
const uint32_t nereid_backend_answers_last_v1 = 1;

TRITONSERVER_Error *bentry_begin(TRITONBACKEND_Backend *backend, void **ret_runtime)
{
    struct ort *ort;
    TRITONSERVER_Error *err = ort_new(backend, &ort);
    if (!err)
        *ret_runtime = ort;
    return err;
}

void bentry_end(void *runtime)
{
    ort_free(runtime);
}
