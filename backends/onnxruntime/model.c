#include "model.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "../common/bconfig.h"
#include "../common/bentry.h"
#include "../common/berr.h"
#include "../common/bfile.h"
#include "batch_io.h"
#include "check.h"
#include "complete.h"
#include "netdef_file.h"
#include "options.h"
#include "signature.h"

static const char default_file[] = "model.onnx";

/* Finds REPOSITORY/VERSION/FILE, or REPOSITORY/VERSION/FILE/model.onnx if FILE is a directory:
 * the main file always has that name. */
static TRITONSERVER_Error *onnxruntime_model_find_file(const struct model *model, char **ret_path)
{
    char *path;
    struct stat status;
    TRITONSERVER_Error *err = bfile_path(model->handle, model->config, default_file, &path);
    if (err)
        return err;
    if (stat(path, &status) == 0 && S_ISDIR(status.st_mode)) {
        char *directory = path;
        int length = asprintf(&path, "%s/%s", directory, default_file);
        free(directory);
        if (length < 0)
            return berr_no_memory();
    }
    if (stat(path, &status) != 0) {
        err = berr_new(TRITONSERVER_ERROR_UNAVAILABLE,
                       "unable to find '%s' for model instance '%s': %s", path, model->name,
                       strerror(errno));
    } else {
        err = bfile_check_kind(path, model->name);
    }
    if (err) {
        free(path);
        return err;
    }
    *ret_path = path;
    return NULL;
}

static TRITONSERVER_Error *open_onnx(struct model *model, const OrtSessionOptions *options)
{
    char *path = NULL;
    TRITONSERVER_Error *err = onnxruntime_model_find_file(model, &path);
    if (!err)
        err = ort_err(model->api,
                      model->api->CreateSession(model->ort->env, path, options, &model->session));
    free(path);
    return err;
}

static TRITONSERVER_Error *make_session(struct model *model)
{
    OrtSessionOptions *options = NULL;
    TRITONSERVER_Error *err = options_new(model->ort, model->config, &options);
    if (!err)
        err = model->is_netdef ? netdef_file_open(model, options) : open_onnx(model, options);
    if (options)
        model->api->ReleaseSessionOptions(options);
    return err;
}

/* Makes the session. With OpenVINO, the runtime makes one session at a time. */
static TRITONSERVER_Error *open_session(struct model *model)
{
    struct ort *plain = model->ort;
    if (!options_want_openvino(model->config))
        return make_session(model);
    pthread_mutex_lock(&plain->lock);
    TRITONSERVER_Error *err = ort_with_openvino(plain, &model->ort);
    if (!err) {
        model->api = model->ort->api;
        err = make_session(model);
    }
    pthread_mutex_unlock(&plain->lock);
    return err;
}

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
    TRITONSERVER_Error *err = TRITONBACKEND_ModelName(model->handle, &model->name);
    if (!err)
        err = onnxruntime_model_read_config(model);
    if (!err)
        err = open_session(model);
    if (!err)
        err = signature_read(model);
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
    model->api = model->ort->api;
    model->handle = handle;
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
    if (model->session)
        model->api->ReleaseSession(model->session);
    batch_io_free(model);
    free_tensors(model->api, model->inputs, model->input_count);
    free_tensors(model->api, model->outputs, model->output_count);
    yyjson_doc_free(model->config_doc);
}
