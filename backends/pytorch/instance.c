#include "instance.h"

#include <stdlib.h>

#include "../common/berr.h"

/* The first instance takes the module that was read with the model; others share it or read the
 * file again. */
static TRITONSERVER_Error *make_call(struct instance *instance)
{
    struct model *model = instance->model;
    bool has_own = !model->options.shares_weights && atomic_flag_test_and_set(&model->taken);
    TRITONSERVER_Error *err = has_own ? model_load(model, &instance->own) : NULL;
    return err ? err
               : libtorch_call_new(instance->own ? instance->own : model->module, &instance->call);
}

TRITONSERVER_Error *instance_new(struct model *model, TRITONBACKEND_ModelInstance *handle,
                                 struct instance **ret_instance)
{
    TRITONSERVER_InstanceGroupKind kind;
    TRITONSERVER_Error *err = TRITONBACKEND_ModelInstanceKind(handle, &kind);
    if (err)
        return err;
    if (kind == TRITONSERVER_INSTANCEGROUPKIND_GPU)
        return berr_new(TRITONSERVER_ERROR_INVALID_ARG,
                        "unable to load model '%s': the backend 'pytorch' runs models on CPU, use "
                        "KIND_CPU",
                        model->name);
    struct instance *instance = calloc(1, sizeof *instance);
    if (!instance)
        return berr_no_memory();
    instance->model = model;
    instance->place = (struct brun_place){
        .handle = handle, .model = model->name, .max_batch_size = model->max_batch_size};
    err = make_call(instance);
    if (err) {
        instance_free(instance);
        return err;
    }
    *ret_instance = instance;
    return NULL;
}

void instance_free(struct instance *instance)
{
    if (!instance)
        return;
    if (instance->model->module && !instance->own)
        atomic_flag_clear(&instance->model->taken);
    libtorch_call_free(instance->call);
    libtorch_free(instance->own);
    scratch_fini(&instance->place.scratch);
    free(instance);
}
