/* onnxruntime: runs ONNX models with ONNX Runtime on CPU. This file is its beginning and its
 * end; model.h says what a model is, run.h what an execution does. */
#include "triton/core/nereid_backend.h"

#include "../common/bentry.h"
#include "ort.h"

/* ONNX Runtime writes whole tensors, or they are copied whole. */
const uint32_t nereid_backend_fills_outputs_v1 = 1;

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
