/* tensorflow: runs GraphDef and SavedModel files with TensorFlow. This file starts and ends it;
 * model.h describes a model, run.c an execution. */
#include "triton/core/nereid_backend.h"

#include <stdlib.h>

#include "../common/bentry.h"
#include "../common/blog.h"
#include "runtime.h"

/* Whole outputs are copied. */
const uint32_t nereid_backend_fills_outputs_v1 = 1;

/* brun.c sends them. */
const uint32_t nereid_backend_answers_last_v1 = 1;

TRITONSERVER_Error *bentry_begin(TRITONBACKEND_Backend *backend, void **ret_runtime)
{
    struct runtime *runtime;
    TRITONSERVER_Error *err = runtime_new(backend, &runtime);
    if (err)
        return err;
    blog_info("the backend 'tensorflow' runs TensorFlow %s", TF_Version());
    *ret_runtime = runtime;
    return NULL;
}

void bentry_end(void *runtime)
{
    free(runtime);
}
