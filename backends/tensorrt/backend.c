/* tensorrt: runs plans with TensorRT. This file starts and ends it; model.h describes a model,
 * run.c an execution. Nobody ran it on a GPU yet: docs/user/gpu.md. */
#include "triton/core/nereid_backend.h"

#include <stdlib.h>

#include "../common/bconfig.h"
#include "../common/bentry.h"
#include "../common/berr.h"
#include "options.h"
#include "trt.h"

/* Whole outputs are copied. */
const uint32_t nereid_backend_fills_outputs_v1 = 1;

/* brun.c sends them. */
const uint32_t nereid_backend_answers_last_v1 = 1;

TRITONSERVER_Error *bentry_begin(TRITONBACKEND_Backend *backend, void **ret_runtime)
{
    yyjson_doc *doc = NULL;
    struct runtime *runtime = calloc(1, sizeof *runtime);
    if (!runtime)
        return berr_no_memory();
    TRITONSERVER_Error *err = bconfig_of_backend(backend, &doc);
    trt_open();
    if (!err)
        err = options_of_backend(yyjson_obj_get(yyjson_doc_get_root(doc), "cmdline"), runtime);
    yyjson_doc_free(doc);
    if (err)
        free(runtime);
    else
        *ret_runtime = runtime;
    return err;
}

void bentry_end(void *runtime)
{
    free(runtime);
}

bool bentry_uses_gpus(void *runtime)
{
    (void)runtime;
    return true;
}
