/* pytorch: runs TorchScript files and packages of AOTInductor with PyTorch. This file starts and
 * ends it; model.h describes a model, run.c an execution. */
#include "triton/core/nereid_backend.h"

#include "../common/bconfig.h"
#include "../common/bentry.h"
#include "../common/blog.h"
#include "options.h"

/* Whole outputs are copied. */
const uint32_t nereid_backend_fills_outputs_v1 = 1;

/* brun.c sends them. */
const uint32_t nereid_backend_answers_last_v1 = 1;

static TRITONSERVER_Error *pytorch_backend_read_settings(TRITONBACKEND_Backend *backend)
{
    yyjson_doc *doc;
    TRITONSERVER_Error *err = bconfig_of_backend(backend, &doc);
    if (err)
        return err;
    bconfig_warn_unknown(backend, yyjson_obj_get(yyjson_doc_get_root(doc), "cmdline"),
                         (const char *const[]){NULL});
    yyjson_doc_free(doc);
    return NULL;
}

TRITONSERVER_Error *bentry_begin(TRITONBACKEND_Backend *backend, void **ret_runtime)
{
    (void)ret_runtime;
    bool has_driver = libtorch_prepare();
    if (has_driver && libtorch_gpu_absence())
        blog_info("the backend 'pytorch' runs models on CPU: %s", libtorch_gpu_absence());
    options_begin();
    return pytorch_backend_read_settings(backend);
}

void bentry_end(void *runtime)
{
    (void)runtime;
}
