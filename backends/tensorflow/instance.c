#include "instance.h"

#include "../common/bentry.h"
#include "../common/berr.h"

const size_t instance_size = sizeof(struct instance);

bool bentry_uses_gpus(void *runtime)
{
    const struct runtime *of = runtime;
    return of->has_cuda;
}

TRITONSERVER_Error *instance_init(struct instance *instance, struct model *model,
                                  TRITONBACKEND_ModelInstance *handle)
{
    TRITONSERVER_InstanceGroupKind kind;
    int32_t place = 0;
    instance->model = model;
    instance->place = (struct brun_place){
        .handle = handle, .model = model->name, .max_batch_size = model->max_batch_size};
    TRITONSERVER_Error *err = TRITONBACKEND_ModelInstanceKind(handle, &kind);
    if (!err)
        err = TRITONBACKEND_ModelInstanceDeviceId(handle, &place);
    if (err)
        return err;
    if (kind != TRITONSERVER_INSTANCEGROUPKIND_GPU)
        place = kind == TRITONSERVER_INSTANCEGROUPKIND_MODEL ? OPTIONS_BY_MODEL : OPTIONS_ON_CPU;
    instance->keep = keep_new();
    return instance->keep ? model_take_session(model, place, &instance->session) : berr_no_memory();
}

void instance_fini(struct instance *instance)
{
    if (instance->session)
        model_leave_session(instance->model, instance->session);
    keep_end(instance->keep);
    scratch_fini(&instance->place.scratch);
}
