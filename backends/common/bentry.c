#include "bentry.h"

#include <stdarg.h>
#include <stdlib.h>

#include "bcuda.h"
#include "berr.h"

/* Checks that the server has the interface that this backend was built with. */
static TRITONSERVER_Error *bentry_check_version(TRITONBACKEND_Backend *backend)
{
    uint32_t major, minor;
    const char *name;
    TRITONSERVER_Error *err = TRITONBACKEND_ApiVersion(&major, &minor);
    if (!err)
        err = TRITONBACKEND_BackendName(backend, &name);
    if (err)
        return err;
    if (major != TRITONBACKEND_API_VERSION_MAJOR || minor < TRITONBACKEND_API_VERSION_MINOR)
        return berr_new(TRITONSERVER_ERROR_UNSUPPORTED,
                        "backend '%s' needs TRITONBACKEND API version %d.%d, the server has %u.%u",
                        name, TRITONBACKEND_API_VERSION_MAJOR, TRITONBACKEND_API_VERSION_MINOR,
                        major, minor);
    return NULL;
}

TRITONSERVER_Error *TRITONBACKEND_Initialize(TRITONBACKEND_Backend *backend)
{
    void *runtime = NULL;
    TRITONSERVER_Error *err = bentry_check_version(backend);
    if (!err)
        err = bentry_begin(backend, &runtime);
    if (err)
        return err;
    err = TRITONBACKEND_BackendSetState(backend, runtime);
    if (err)
        bentry_end(runtime);
    return err;
}

TRITONSERVER_Error *TRITONBACKEND_Finalize(TRITONBACKEND_Backend *backend)
{
    void *runtime = NULL;
    TRITONSERVER_Error *err = TRITONBACKEND_BackendState(backend, &runtime);
    bentry_end(runtime);
    bcuda_end();
    return err;
}

TRITONSERVER_Error *TRITONBACKEND_GetBackendAttribute(TRITONBACKEND_Backend *backend,
                                                      TRITONBACKEND_BackendAttribute *attributes)
{
    void *runtime = NULL;
    TRITONSERVER_Error *err = TRITONBACKEND_BackendState(backend, &runtime);
    if (!err)
        err = TRITONBACKEND_BackendAttributeSetParallelModelInstanceLoading(attributes, true);
    if (!err && !bentry_uses_gpus(runtime))
        err = TRITONBACKEND_BackendAttributeAddPreferredInstanceGroup(
            attributes, TRITONSERVER_INSTANCEGROUPKIND_CPU, 0, NULL, 0);
    return err;
}

static TRITONSERVER_Error *bentry_runtime(TRITONBACKEND_Model *handle, void **ret_runtime)
{
    TRITONBACKEND_Backend *backend;
    TRITONSERVER_Error *err = TRITONBACKEND_ModelBackend(handle, &backend);
    return err ? err : TRITONBACKEND_BackendState(backend, ret_runtime);
}

static void bentry_free_model(struct model *model)
{
    if (model)
        model_fini(model);
    free(model);
}

TRITONSERVER_Error *TRITONBACKEND_ModelInitialize(TRITONBACKEND_Model *handle)
{
    void *runtime = NULL;
    TRITONSERVER_Error *err = bentry_runtime(handle, &runtime);
    if (err)
        return err;
    struct model *model = calloc(1, model_size);
    if (!model)
        return berr_no_memory();
    err = model_init(model, handle, runtime);
    if (!err)
        err = TRITONBACKEND_ModelSetState(handle, model);
    if (err)
        bentry_free_model(model);
    return err;
}

TRITONSERVER_Error *TRITONBACKEND_ModelFinalize(TRITONBACKEND_Model *handle)
{
    void *model = NULL;
    TRITONSERVER_Error *err = TRITONBACKEND_ModelState(handle, &model);
    bentry_free_model(model);
    return err;
}

TRITONSERVER_Error *bentry_refuse(TRITONBACKEND_ModelInstance *handle, unsigned kinds,
                                  TRITONSERVER_Error_Code code, const char *fmt, ...)
{
    TRITONSERVER_InstanceGroupKind kind;
    TRITONSERVER_Error *err = TRITONBACKEND_ModelInstanceKind(handle, &kind);
    if (err || !(kinds >> kind & 1u))
        return err;
    va_list args;
    va_start(args, fmt);
    err = berr_newv(code, fmt, args);
    va_end(args);
    return err;
}

static void bentry_free_instance(struct instance *instance)
{
    if (instance)
        instance_fini(instance);
    free(instance);
}

TRITONSERVER_Error *TRITONBACKEND_ModelInstanceInitialize(TRITONBACKEND_ModelInstance *handle)
{
    TRITONBACKEND_Model *model_handle;
    void *model = NULL;
    TRITONSERVER_Error *err = TRITONBACKEND_ModelInstanceModel(handle, &model_handle);
    if (!err)
        err = TRITONBACKEND_ModelState(model_handle, &model);
    if (err)
        return err;
    struct instance *instance = calloc(1, instance_size);
    if (!instance)
        return berr_no_memory();
    err = instance_init(instance, model, handle);
    if (!err)
        err = TRITONBACKEND_ModelInstanceSetState(handle, instance);
    if (err)
        bentry_free_instance(instance);
    return err;
}

TRITONSERVER_Error *TRITONBACKEND_ModelInstanceFinalize(TRITONBACKEND_ModelInstance *handle)
{
    void *instance = NULL;
    TRITONSERVER_Error *err = TRITONBACKEND_ModelInstanceState(handle, &instance);
    bentry_free_instance(instance);
    return err;
}

TRITONSERVER_Error *TRITONBACKEND_ModelInstanceExecute(TRITONBACKEND_ModelInstance *handle,
                                                       TRITONBACKEND_Request **requests,
                                                       const uint32_t request_count)
{
    void *instance = NULL;
    TRITONSERVER_Error *err = TRITONBACKEND_ModelInstanceState(handle, &instance);
    if (err)
        return err;
    run_requests(instance, requests, request_count);
    return NULL;
}
