#include "model.h"

#include <stdlib.h>
#include <string.h>

#include "../common/bconfig.h"
#include "../common/bentry.h"
#include "../common/berr.h"
#include "batch_io.h"
#include "check.h"
#include "complete.h"
#include "session.h"
#include "signature.h"

static TRITONSERVER_Error *onnxruntime_model_read_config(struct model *model)
{
    TRITONSERVER_Error *err =
        bconfig_read(model->handle, &model->config_doc, &model->config, &model->max_batch_size);
    if (err)
        return err;
    const char *platform = yyjson_get_str(yyjson_obj_get(model->config, "platform"));
    model->is_netdef = platform && strcmp(platform, "caffe2_netdef") == 0;
    return NULL;
}

static TRITONSERVER_Error *onnxruntime_model_complete_config(struct model *model)
{
    bool wanted = false, changed = false;
    TRITONSERVER_Error *err = TRITONBACKEND_ModelAutoCompleteConfig(model->handle, &wanted);
    if (!err && wanted)
        err = complete_fill_in(model, &changed);
    return err || !changed ? err : onnxruntime_model_read_config(model);
}

static TRITONSERVER_Error *onnxruntime_model_load(struct model *model)
{
    const struct session *session = NULL;
    TRITONSERVER_Error *err = TRITONBACKEND_ModelName(model->handle, &model->name);
    if (!err)
        err = onnxruntime_model_read_config(model);
    if (!err)
        err = session_read(model, &session);
    if (!err)
        err = signature_read(model, session);
    if (!err)
        err = onnxruntime_model_complete_config(model);
    if (!err)
        err = batch_io_read(model);
    return err ? err : check_model(model);
}

const size_t model_size = sizeof(struct model);

TRITONSERVER_Error *model_init(struct model *model, TRITONBACKEND_Model *handle, void *runtime)
{
    model->ort = runtime;
    model->read_api = model->ort->api;
    model->handle = handle;
    pthread_mutex_init(&model->lock, NULL);
    return onnxruntime_model_load(model);
}

static void free_tensors(const OrtApi *api, struct model_tensor *tensors, size_t count)
{
    OrtAllocator *allocator;
    for (size_t i = 0; i < count; i++) {
        OrtStatus *status = api->GetAllocatorWithDefaultOptions(&allocator);
        if (!status && tensors[i].name)
            status = api->AllocatorFree(allocator, tensors[i].name);
        berr_log(ort_err(api, status), "failed to free a name");
    }
    free(tensors);
}

void model_fini(struct model *model)
{
    session_fini(model);
    batch_io_free(model);
    free_tensors(model->read_api, model->inputs, model->input_count);
    free_tensors(model->read_api, model->outputs, model->output_count);
    yyjson_doc_free(model->config_doc);
    pthread_mutex_destroy(&model->lock);
}
