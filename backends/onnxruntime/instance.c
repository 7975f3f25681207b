#include "instance.h"

#include <stdlib.h>

#include "../common/berr.h"
#include "options.h"

TRITONSERVER_Error *instance_new(struct model *model, TRITONBACKEND_ModelInstance *handle,
                                 struct instance **ret_instance)
{
    TRITONSERVER_InstanceGroupKind kind;
    TRITONSERVER_Error *err = TRITONBACKEND_ModelInstanceKind(handle, &kind);
    if (err)
        return err;
    if (kind == TRITONSERVER_INSTANCEGROUPKIND_GPU)
        return berr_new(TRITONSERVER_ERROR_UNSUPPORTED,
                        "unable to load model '%s', this ONNX Runtime runs on CPU only: use "
                        "KIND_CPU",
                        model->name);
    struct instance *instance = calloc(1, sizeof *instance);
    if (!instance)
        return berr_no_memory();
    instance->model = model;
    instance->place = (struct brun_place){
        .handle = handle, .model = model->name, .max_batch_size = model->max_batch_size};
    err = options_run_new(model->ort, model->config, &instance->run_options);
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
    if (instance->run_options)
        instance->model->api->ReleaseRunOptions(instance->run_options);
    scratch_fini(&instance->place.scratch);
    free(instance);
}
