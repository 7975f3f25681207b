#include "instance.h"

#include "../common/bentry.h"
#include "options.h"

const size_t instance_size = sizeof(struct instance);

bool bentry_uses_gpus(void)
{
    return false;
}

TRITONSERVER_Error *instance_init(struct instance *instance, struct model *model,
                                  TRITONBACKEND_ModelInstance *handle)
{
    instance->model = model;
    instance->place = (struct brun_place){
        .handle = handle, .model = model->name, .max_batch_size = model->max_batch_size};
    TRITONSERVER_Error *err = bentry_refuse(
        handle, BENTRY_ON_GPU, TRITONSERVER_ERROR_UNSUPPORTED,
        "unable to load model '%s', this ONNX Runtime runs on CPU only: use KIND_CPU", model->name);
    if (err)
        return err;
    return options_run_new(model->ort, model->config, &instance->run_options);
}

void instance_fini(struct instance *instance)
{
    if (instance->run_options)
        instance->model->api->ReleaseRunOptions(instance->run_options);
    scratch_fini(&instance->place.scratch);
}
