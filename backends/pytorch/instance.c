#include "instance.h"

#include "../common/bentry.h"
#include "../common/berr.h"
#include "../common/binput.h"

const size_t instance_size = sizeof(struct instance);

bool bentry_uses_gpus(void *runtime)
{
    (void)runtime;
    return libtorch_gpu_absence() == NULL;
}

static TRITONSERVER_Error *open_gpu(struct instance *instance, TRITONBACKEND_ModelInstance *handle)
{
    TRITONSERVER_InstanceGroupKind kind;
    TRITONSERVER_Error *err = TRITONBACKEND_ModelInstanceKind(handle, &kind);
    if (err || kind != TRITONSERVER_INSTANCEGROUPKIND_GPU)
        return err;
    if (libtorch_gpu_absence())
        return berr_new(TRITONSERVER_ERROR_INVALID_ARG,
                        "unable to load model '%s': the backend 'pytorch' runs models on CPU here, "
                        "use KIND_CPU: %s",
                        instance->model->name, libtorch_gpu_absence());
    return bcuda_open(handle, &instance->cuda);
}

/* Numbers among the arguments are one value for a whole batch. */
static bool pytorch_instance_agree(struct brun_place *place, TRITONBACKEND_Request *first,
                                   TRITONBACKEND_Request *other, void *of)
{
    const struct model *model = ((const struct instance *)of)->model;
    for (size_t i = 0; i < model->input_count; i++)
        if (model->arguments[model->inputs[i].argument].kind == LIBTORCH_NUMBER &&
            !binput_agree(place, model->inputs[i].name, first, other))
            return false;
    return true;
}

TRITONSERVER_Error *instance_init(struct instance *instance, struct model *model,
                                  TRITONBACKEND_ModelInstance *handle)
{
    instance->model = model;
    TRITONSERVER_Error *err = open_gpu(instance, handle);
    instance->place = (struct brun_place){.handle = handle,
                                          .model = model->name,
                                          .max_batch_size = model->max_batch_size,
                                          .cuda = instance->cuda,
                                          .agree = pytorch_instance_agree};
    if (!err)
        err = model_take_copy(model, instance->cuda ? bcuda_device(instance->cuda) : LIBTORCH_CPU,
                              &instance->copy);
    return err ? err : libtorch_call_new(instance->copy->module, &instance->call);
}

void instance_fini(struct instance *instance)
{
    libtorch_call_free(instance->call);
    model_give_copy(instance->model, instance->copy);
    scratch_fini(&instance->place.scratch);
    bcuda_close(instance->cuda);
}
