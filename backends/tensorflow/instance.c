#include "instance.h"

#include <stdlib.h>

#include "../common/berr.h"

TRITONSERVER_Error *instance_new(struct model *model, TRITONBACKEND_ModelInstance *handle,
                                 struct instance **ret_instance)
{
    TRITONSERVER_InstanceGroupKind kind;
    TRITONSERVER_Error *err = TRITONBACKEND_ModelInstanceKind(handle, &kind);
    if (err)
        return err;
    if (kind == TRITONSERVER_INSTANCEGROUPKIND_GPU)
        return berr_new(TRITONSERVER_ERROR_INVALID_ARG,
                        "unable to load model '%s': the backend 'tensorflow' runs models on CPU, "
                        "use KIND_CPU or KIND_MODEL",
                        model->name);
    struct instance *instance = calloc(1, sizeof *instance);
    if (!instance)
        return berr_no_memory();
    instance->model = model;
    instance->place = (struct brun_place){
        .handle = handle, .model = model->name, .max_batch_size = model->max_batch_size};
    instance->keep = keep_new();
    err = instance->keep ? model_take_session(model, &instance->session) : berr_no_memory();
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
    if (instance->session)
        model_leave_session(instance->model, instance->session);
    keep_end(instance->keep);
    scratch_fini(&instance->place.scratch);
    free(instance);
}
