#include "instance.h"

#include "../common/bentry.h"
#include "../common/binput.h"
#include "options.h"

const size_t instance_size = sizeof(struct instance);

bool bentry_uses_gpus(void *runtime)
{
    const struct ort *ort = runtime;
    return ort->has_cuda;
}

/* Inputs that are scalars in the model are one value for a whole batch. */
static bool onnxruntime_instance_agree(struct brun_place *place, TRITONBACKEND_Request *first,
                                       TRITONBACKEND_Request *other, void *of)
{
    const struct model *model = ((const struct instance *)of)->model;
    for (size_t i = 0; i < model->required_count; i++)
        if (model->inputs[i].rank == 0 && !binput_agree(place, model->inputs[i].name, first, other))
            return false;
    return true;
}

TRITONSERVER_Error *instance_init(struct instance *instance, struct model *model,
                                  TRITONBACKEND_ModelInstance *handle)
{
    instance->model = model;
    TRITONSERVER_Error *err = session_take(model, handle, &instance->session);
    if (err)
        return err;
    instance->place = (struct brun_place){.handle = handle,
                                          .model = model->name,
                                          .max_batch_size = model->max_batch_size,
                                          .cuda = instance->session->cuda,
                                          .agree = onnxruntime_instance_agree};
    return options_run_new(instance->session->ort, model->config, &instance->run_options);
}

void instance_fini(struct instance *instance)
{
    if (instance->run_options)
        instance->session->ort->api->ReleaseRunOptions(instance->run_options);
    session_give(instance->model, instance->session);
    scratch_fini(&instance->place.scratch);
}
