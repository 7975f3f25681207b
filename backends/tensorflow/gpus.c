#include "gpus.h"

#include <pthread.h>
#include <string.h>

#include "../common/berr.h"
#include "messages.h"

enum { NOT_COUNTED = -1 };

static pthread_mutex_t counting = PTHREAD_MUTEX_INITIALIZER;
static int32_t counted = NOT_COUNTED; /* guarded by `counting` */

static bool kernel_is_for_gpus(struct wire kernel)
{
    struct wire_field field;
    while (wire_next(&kernel, &field))
        if (field.number == KERNEL_DEVICE && wire_is(field.content, "GPU"))
            return true;
    return false;
}

bool gpus_built_in(void)
{
    bool found = false;
    struct wire_field field;
    TF_Status *status = TF_NewStatus();
    TF_Buffer *kernels = TF_GetRegisteredKernelsForOp("MatMul", status);
    const unsigned char *bytes = kernels ? kernels->data : NULL;
    struct wire all = {.at = bytes, .end = bytes ? bytes + kernels->length : NULL};
    while (!found && wire_next(&all, &field))
        found = field.number == KERNEL_LIST_KERNEL && kernel_is_for_gpus(field.content);
    if (kernels)
        TF_DeleteBuffer(kernels);
    TF_DeleteStatus(status);
    return found;
}

static int32_t count_listed(TF_Session *session, TF_Status *status)
{
    int32_t count = 0;
    TF_DeviceList *list = TF_SessionListDevices(session, status);
    for (int i = 0; list && i < TF_DeviceListCount(list); i++) {
        const char *type = TF_DeviceListType(list, i, status);
        count += type && strcmp(type, "GPU") == 0;
    }
    if (list)
        TF_DeleteDeviceList(list);
    return count;
}

/* An empty session has every device. */
static TRITONSERVER_Error *count_gpus(const char *model, const struct wire_out *settings)
{
    int32_t count = 0;
    TF_Status *status = TF_NewStatus(), *closing = TF_NewStatus();
    TF_Graph *graph = TF_NewGraph();
    TF_SessionOptions *options = TF_NewSessionOptions();
    TF_Session *session = NULL;
    TF_SetConfig(options, settings->bytes, settings->size, status);
    if (TF_GetCode(status) == TF_OK)
        session = TF_NewSession(graph, options, status);
    if (session) {
        count = count_listed(session, status);
        TF_CloseSession(session, closing);
        TF_DeleteSession(session, closing);
    }
    TF_DeleteSessionOptions(options);
    TF_DeleteGraph(graph);
    TF_DeleteStatus(closing);
    TRITONSERVER_Error *err = runtime_err(status, "looking for GPUs for model", model);
    if (!err)
        counted = count;
    return err;
}

TRITONSERVER_Error *gpus_check(const char *model, int32_t gpu, const struct wire_out *settings)
{
    if (!gpus_built_in())
        return berr_new(TRITONSERVER_ERROR_UNSUPPORTED,
                        "unable to load model '%s': TensorFlow %s as it is here sees no GPU, "
                        "because it was built without CUDA; use KIND_CPU or KIND_MODEL, or give "
                        "the backend 'tensorflow' libraries that have CUDA",
                        model, TF_Version());
    pthread_mutex_lock(&counting);
    TRITONSERVER_Error *err = counted == NOT_COUNTED ? count_gpus(model, settings) : NULL;
    int32_t count = counted;
    pthread_mutex_unlock(&counting);
    if (err || gpu < count)
        return err;
    if (count == 0)
        return berr_new(TRITONSERVER_ERROR_UNSUPPORTED,
                        "unable to load model '%s': TensorFlow %s has CUDA and sees no GPU; its "
                        "lines on the server's standard error say why. Use KIND_CPU or KIND_MODEL, "
                        "or start the server again once there is one: TensorFlow looks for GPUs "
                        "once in a process",
                        model, TF_Version());
    return berr_new(TRITONSERVER_ERROR_UNSUPPORTED,
                    "unable to load model '%s': GPU %d is not among the %d that TensorFlow sees; "
                    "name others in 'gpus'",
                    model, (int)gpu, (int)count);
}
