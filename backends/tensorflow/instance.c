#include "instance.h"

#include "../common/bentry.h"
#include "../common/berr.h"

const size_t instance_size = sizeof(struct instance);

bool bentry_uses_gpus(void *runtime)
{
    (void)runtime;
    return false;
}

TRITONSERVER_Error *instance_init(struct instance *instance, struct model *model,
                                  TRITONBACKEND_ModelInstance *handle)
{
    instance->model = model;
    instance->place = (struct brun_place){
        .handle = handle, .model = model->name, .max_batch_size = model->max_batch_size};
    TRITONSERVER_Error *err = bentry_refuse(handle, BENTRY_ON_GPU, TRITONSERVER_ERROR_INVALID_ARG,
                                            "unable to load model '%s': the backend 'tensorflow' "
                                            "runs models on CPU, use KIND_CPU or KIND_MODEL",
                                            model->name);
    if (err)
        return err;
    instance->keep = keep_new();
    return instance->keep ? model_take_session(model, &instance->session) : berr_no_memory();
}

void instance_fini(struct instance *instance)
{
    if (instance->session)
        model_leave_session(instance->model, instance->session);
    keep_end(instance->keep);
    scratch_fini(&instance->place.scratch);
}
