#include "instance.h"

#include "../common/bentry.h"

/* The first instance takes the module that was read with the model; others share it or read the
 * file again. */
static TRITONSERVER_Error *make_call(struct instance *instance)
{
    struct model *model = instance->model;
    instance->took = !model->options.shares_weights && !atomic_flag_test_and_set(&model->taken);
    bool has_own = !model->options.shares_weights && !instance->took;
    TRITONSERVER_Error *err = has_own ? model_load(model, &instance->own) : NULL;
    return err ? err
               : libtorch_call_new(instance->own ? instance->own : model->module, &instance->call);
}

const bool bentry_cpu_only = true;
const size_t instance_size = sizeof(struct instance);

TRITONSERVER_Error *instance_init(struct instance *instance, struct model *model,
                                  TRITONBACKEND_ModelInstance *handle)
{
    instance->model = model;
    instance->place = (struct brun_place){
        .handle = handle, .model = model->name, .max_batch_size = model->max_batch_size};
    TRITONSERVER_Error *err = bentry_refuse(
        handle, BENTRY_ON_GPU, TRITONSERVER_ERROR_INVALID_ARG,
        "unable to load model '%s': the backend 'pytorch' runs models on CPU, use KIND_CPU",
        model->name);
    if (err)
        return err;
    return make_call(instance);
}

void instance_fini(struct instance *instance)
{
    if (instance->took)
        atomic_flag_clear(&instance->model->taken);
    libtorch_call_free(instance->call);
    libtorch_free(instance->own);
    scratch_fini(&instance->place.scratch);
}
