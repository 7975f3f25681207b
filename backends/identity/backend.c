/* identity: a backend whose outputs are its inputs. OUTPUTn copies INPUTn where names follow
 * that pattern; otherwise outputs copy inputs by position. Every data type and shape, any number
 * of tensors.
 *
 * Parameters of a model, all optional, as string_value:
 *   execute_delay_ms, execute_delay_us  wait so long in each execution (both are added)
 *   instance_wise_delay_multiplier      instance i waits i * multiplier times as long, at least
 *                                       once
 *   creation_delay_sec                  wait so long while loading */
#include <stdlib.h>

#include "triton/core/nereid_backend.h"

#include "../common/berr.h"
#include "execute.h"
#include "model.h"

/* A copy is short, waits for nothing and has finished when Execute returns. If tensors are
 * large, the server notices and stops calling on network threads. */
const uint32_t nereid_backend_inline_v1 = 1;

/* An output is as long as the input that is copied to it, or is zeroed. */
const uint32_t nereid_backend_fills_outputs_v1 = 1;

/* An instance with a configured delay blocks. */
bool nereid_instance_inline_v1(TRITONBACKEND_ModelInstance *handle)
{
    void *state = NULL;
    TRITONSERVER_Error *err = TRITONBACKEND_ModelInstanceState(handle, &state);
    const struct instance *instance = state;
    bool waits = err || instance->delay_ns;
    berr_drop(err);
    return !waits;
}

TRITONSERVER_Error *TRITONBACKEND_Initialize(TRITONBACKEND_Backend *backend)
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

TRITONSERVER_Error *TRITONBACKEND_GetBackendAttribute(TRITONBACKEND_Backend *backend,
                                                      TRITONBACKEND_BackendAttribute *attributes)
{
    (void)backend;
    return TRITONBACKEND_BackendAttributeSetParallelModelInstanceLoading(attributes, true);
}

TRITONSERVER_Error *TRITONBACKEND_ModelInitialize(TRITONBACKEND_Model *handle)
{
    struct model *model;
    TRITONSERVER_Error *err = model_new(handle, &model);
    if (err)
        return err;
    err = TRITONBACKEND_ModelSetState(handle, model);
    if (err)
        model_free(model);
    return err;
}

TRITONSERVER_Error *TRITONBACKEND_ModelFinalize(TRITONBACKEND_Model *handle)
{
    void *model = NULL;
    TRITONSERVER_Error *err = TRITONBACKEND_ModelState(handle, &model);
    model_free(model);
    return err;
}

TRITONSERVER_Error *TRITONBACKEND_ModelInstanceInitialize(TRITONBACKEND_ModelInstance *handle)
{
    TRITONSERVER_InstanceGroupKind kind;
    TRITONBACKEND_Model *model_handle;
    void *state = NULL;
    TRITONSERVER_Error *err = TRITONBACKEND_ModelInstanceKind(handle, &kind);
    if (!err && kind == TRITONSERVER_INSTANCEGROUPKIND_GPU)
        err = berr_new(TRITONSERVER_ERROR_INVALID_ARG,
                       "'identity' backend only supports CPU instances");
    if (!err)
        err = TRITONBACKEND_ModelInstanceModel(handle, &model_handle);
    if (!err)
        err = TRITONBACKEND_ModelState(model_handle, &state);
    if (err)
        return err;

    struct model *model = state;
    struct instance *instance = malloc(sizeof *instance);
    if (!instance)
        return berr_no_memory();
    uint64_t index = atomic_fetch_add_explicit(&model->next_index, 1, memory_order_relaxed);
    uint64_t times = model->delay_multiplier * index;
    *instance =
        (struct instance){.model = model, .delay_ns = model->delay_ns * (times ? times : 1)};
    err = TRITONBACKEND_ModelInstanceSetState(handle, instance);
    if (err)
        free(instance);
    return err;
}

TRITONSERVER_Error *TRITONBACKEND_ModelInstanceFinalize(TRITONBACKEND_ModelInstance *handle)
{
    void *instance = NULL;
    TRITONSERVER_Error *err = TRITONBACKEND_ModelInstanceState(handle, &instance);
    free(instance);
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
    execute_run(instance, handle, requests, request_count);
    return NULL;
}
