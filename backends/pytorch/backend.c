/* pytorch: runs TorchScript files with PyTorch. This file is its beginning and its end; model.h
 * says what a model is, run.h what an execution does. */
#include "triton/core/nereid_backend.h"

#include "../common/bentry.h"
#include "options.h"

/* Outputs are copied whole. */
const uint32_t nereid_backend_fills_outputs_v1 = 1;

TRITONSERVER_Error *bentry_begin(TRITONBACKEND_Backend *backend, void **ret_runtime)
{
    (void)backend;
    (void)ret_runtime;
    options_begin();
    return NULL;
}

void bentry_end(void *runtime)
{
    (void)runtime;
}
