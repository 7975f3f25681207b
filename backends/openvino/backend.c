/* openvino: runs models with OpenVINO: its own IR, ONNX, and the other formats that it reads.
 * This file starts and ends it; model.h describes a model, run.c an execution. */
#include "triton/core/nereid_backend.h"

#include "../common/bentry.h"
#include "vino.h"

/* OpenVINO writes whole tensors, or whole tensors are copied. */
const uint32_t nereid_backend_fills_outputs_v1 = 1;

/* brun.c sends them. */
const uint32_t nereid_backend_answers_last_v1 = 1;

TRITONSERVER_Error *bentry_begin(TRITONBACKEND_Backend *backend, void **ret_runtime)
{
    struct vino *vino;
    TRITONSERVER_Error *err = vino_new(backend, &vino);
    if (!err)
        *ret_runtime = vino;
    return err;
}

void bentry_end(void *runtime)
{
    vino_free(runtime);
}
