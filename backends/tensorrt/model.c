#include "model.h"

#include <string.h>

#include "../common/bconfig.h"
#include "../common/bentry.h"
#include "../common/berr.h"
#include "engine.h"

const size_t model_size = sizeof(struct model);

/* TensorRT has no other place than GPUs. */
static TRITONSERVER_Error *tensorrt_check_groups(const struct model *model)
{
    size_t index, count;
    yyjson_val *group;
    yyjson_arr_foreach(yyjson_obj_get(model->config, "instance_group"), index, count, group)
    {
        const char *kind = yyjson_get_str(yyjson_obj_get(group, "kind"));
        const char *name = yyjson_get_str(yyjson_obj_get(group, "name"));
        if (kind && strcmp(kind, "KIND_GPU") != 0)
            return berr_new(TRITONSERVER_ERROR_INVALID_ARG,
                            "unable to load model '%s': instance group '%s' is %s, and TensorRT "
                            "needs a GPU; `nereid doctor` says which are seen, or why there are "
                            "none",
                            model->name, name ? name : "", kind);
    }
    return NULL;
}

static TRITONSERVER_Error *tensorrt_model_read_config(struct model *model)
{
    return bconfig_read(model->handle, &model->config_doc, &model->config, &model->max_batch_size);
}

static TRITONSERVER_Error *tensorrt_model_complete(struct model *model)
{
    bool completes = false;
    TRITONSERVER_Error *err = TRITONBACKEND_ModelAutoCompleteConfig(model->handle, &completes);
    if (err || !completes)
        return err;
    err = engine_complete(model);
    return err ? err : tensorrt_model_read_config(model);
}

TRITONSERVER_Error *model_init(struct model *model, TRITONBACKEND_Model *handle, void *runtime)
{
    model->handle = handle;
    model->runtime = runtime;
    pthread_mutex_init(&model->lock, NULL);
    TRITONSERVER_Error *err = TRITONBACKEND_ModelName(handle, &model->name);
    if (!err && trt_absence())
        err = berr_new(TRITONSERVER_ERROR_UNAVAILABLE,
                       "unable to load model '%s': TensorRT is not here: %s", model->name,
                       trt_absence());
    if (!err)
        err = tensorrt_model_read_config(model);
    if (!err)
        err = tensorrt_check_groups(model);
    if (!err)
        err = options_read(model->name, model->config, &model->options);
    return err ? err : tensorrt_model_complete(model);
}

void model_fini(struct model *model)
{
    engine_free_all(model);
    pthread_mutex_destroy(&model->lock);
    yyjson_doc_free(model->config_doc);
}
