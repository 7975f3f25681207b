#include "instance.h"

#include <stdlib.h>

#include "../common/bentry.h"
#include "../common/berr.h"

TRITONSERVER_Error *instance_new_request(struct instance *instance)
{
    ov_infer_request_free(instance->request);
    instance->request = NULL;
    return vino_err(
        ov_compiled_model_create_infer_request(instance->model->compiled, &instance->request),
        "creating infer request object");
}

static TRITONSERVER_Error *openvino_instance_make_request(struct instance *instance)
{
    size_t count = instance->model->outputs.count;
    TRITONSERVER_Error *err = instance_new_request(instance);
    for (size_t i = 0; i < count && !err; i++)
        err = vino_err(
            ov_infer_request_get_output_tensor_by_index(instance->request, i, &instance->own[i]),
            "getting an output's tensor");
    return err;
}

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
    TRITONSERVER_Error *err = bentry_refuse(
        handle, BENTRY_ON_GPU | BENTRY_BY_MODEL, TRITONSERVER_ERROR_INVALID_ARG,
        "unable to load model '%s', Triton OpenVINO backend supports only Kind CPU and AUTO",
        model->name);
    if (err)
        return err;
    instance->own = calloc(model->outputs.count + 1, sizeof(ov_tensor_t *));
    instance->borrows = calloc(model->outputs.count + 1, sizeof(bool));
    return instance->own && instance->borrows ? openvino_instance_make_request(instance)
                                              : berr_no_memory();
}

void instance_fini(struct instance *instance)
{
    for (size_t i = 0; instance->own && i < instance->model->outputs.count; i++)
        ov_tensor_free(instance->own[i]);
    ov_infer_request_free(instance->request);
    free(instance->own);
    free(instance->borrows);
    scratch_fini(&instance->place.scratch);
}
