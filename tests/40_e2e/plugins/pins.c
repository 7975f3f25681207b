/* A backend whose model holds 1000 bytes of pinned memory. It executes nothing. */
#include "triton/core/tritonbackend.h"

static TRITONSERVER_Error *manager_of(TRITONBACKEND_Model *model, TRITONBACKEND_MemoryManager **ret)
{
    TRITONBACKEND_Backend *backend;
    TRITONSERVER_Error *err = TRITONBACKEND_ModelBackend(model, &backend);
    return err ? err : TRITONBACKEND_BackendMemoryManager(backend, ret);
}

TRITONSERVER_Error *TRITONBACKEND_ModelInitialize(TRITONBACKEND_Model *model)
{
    TRITONBACKEND_MemoryManager *manager;
    void *held = NULL;
    TRITONSERVER_Error *err = manager_of(model, &manager);
    if (!err)
        err = TRITONBACKEND_MemoryManagerAllocate(manager, &held, TRITONSERVER_MEMORY_CPU_PINNED, 0,
                                                  1000);
    return err ? err : TRITONBACKEND_ModelSetState(model, held);
}

TRITONSERVER_Error *TRITONBACKEND_ModelFinalize(TRITONBACKEND_Model *model)
{
    TRITONBACKEND_MemoryManager *manager;
    void *held;
    TRITONSERVER_Error *err = manager_of(model, &manager);
    if (!err)
        err = TRITONBACKEND_ModelState(model, &held);
    return err ? err
               : TRITONBACKEND_MemoryManagerFree(manager, held, TRITONSERVER_MEMORY_CPU_PINNED, 0);
}

TRITONSERVER_Error *TRITONBACKEND_ModelInstanceExecute(TRITONBACKEND_ModelInstance *instance,
                                                       TRITONBACKEND_Request **requests,
                                                       const uint32_t count)
{
    (void)instance, (void)requests, (void)count;
    return TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_UNSUPPORTED, "it executes nothing");
}
