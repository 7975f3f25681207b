#include "instance.h"

#include <stdlib.h>

#include "../common/berr.h"

static TRITONSERVER_Error *openvino_instance_make_request(struct instance *instance)
{
    size_t count = instance->model->outputs.count;
    TRITONSERVER_Error *err = vino_err(
        ov_compiled_model_create_infer_request(instance->model->compiled, &instance->request),
        "creating infer request object");
    for (size_t i = 0; i < count && !err; i++)
        err = vino_err(
            ov_infer_request_get_output_tensor_by_index(instance->request, i, &instance->own[i]),
            "getting an output's tensor");
    return err;
}

TRITONSERVER_Error *instance_new(struct model *model, TRITONBACKEND_ModelInstance *handle,
                                 struct instance **ret_instance)
{
    TRITONSERVER_InstanceGroupKind kind;
    TRITONSERVER_Error *err = TRITONBACKEND_ModelInstanceKind(handle, &kind);
    if (err)
        return err;
    if (kind != TRITONSERVER_INSTANCEGROUPKIND_CPU)
        return berr_new(TRITONSERVER_ERROR_INVALID_ARG,
                        "unable to load model '%s', Triton OpenVINO backend supports only Kind CPU "
                        "and AUTO",
                        model->name);
    struct instance *instance = calloc(1, sizeof *instance);
    if (!instance)
        return berr_no_memory();
    instance->model = model;
    instance->place = (struct brun_place){
        .handle = handle, .model = model->name, .max_batch_size = model->max_batch_size};
    instance->own = calloc(model->outputs.count + 1, sizeof(ov_tensor_t *));
    instance->borrows = calloc(model->outputs.count + 1, sizeof(bool));
    err = instance->own && instance->borrows ? openvino_instance_make_request(instance)
                                             : berr_no_memory();
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
    for (size_t i = 0; instance->own && i < instance->model->outputs.count; i++)
        ov_tensor_free(instance->own[i]);
    ov_infer_request_free(instance->request);
    free(instance->own);
    free(instance->borrows);
    scratch_fini(&instance->place.scratch);
    free(instance);
}
