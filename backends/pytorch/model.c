#include "model.h"

#include <stdlib.h>
#include <string.h>

#include "../common/bconfig.h"
#include "../common/bentry.h"
#include "../common/berr.h"
#include "../common/bfile.h"
#include "names.h"

static TRITONSERVER_Error *pytorch_model_read_config(struct model *model)
{
    TRITONSERVER_Error *err =
        bconfig_read(model->handle, &model->config_doc, &model->config, &model->max_batch_size);
    const char *platform = err ? "" : yyjson_get_str(yyjson_obj_get(model->config, "platform"));
    model->is_package = platform && strcmp(platform, "torch_aoti") == 0;
    return err ? err : options_read(model->name, model->config, &model->options);
}

/* Reads the file into the memory of a device; the copy is the first of the list, and used. */
static TRITONSERVER_Error *add_copy(struct model *model, int32_t device,
                                    struct model_copy **ret_copy)
{
    struct model_copy *copy = calloc(1, sizeof *copy);
    if (!copy)
        return berr_no_memory();
    TRITONSERVER_Error *err = libtorch_load(model->path, model->is_package,
                                            model->options.mode.inference, device, &copy->module);
    if (err) {
        TRITONSERVER_Error *named =
            berr_new(TRITONSERVER_ERROR_INTERNAL, "failed to load model '%s': %s", model->name,
                     TRITONSERVER_ErrorMessage(err));
        berr_drop(err);
        free(copy);
        return named;
    }
    pthread_mutex_lock(&model->lock);
    copy->device = device;
    copy->users = 1;
    copy->next = model->copies;
    model->copies = copy;
    pthread_mutex_unlock(&model->lock);
    *ret_copy = copy;
    return NULL;
}

TRITONSERVER_Error *model_take_copy(struct model *model, int32_t device,
                                    struct model_copy **ret_copy)
{
    pthread_mutex_lock(&model->lock);
    struct model_copy *copy = model->copies;
    while (copy && (copy->device != device || (copy->users > 0 && !model->options.shares_weights)))
        copy = copy->next;
    if (copy)
        copy->users++;
    pthread_mutex_unlock(&model->lock);
    *ret_copy = copy;
    return copy ? NULL : add_copy(model, device, ret_copy);
}

void model_give_copy(struct model *model, struct model_copy *copy)
{
    if (!copy)
        return;
    pthread_mutex_lock(&model->lock);
    copy->users--;
    bool goes = copy->users == 0 && copy->next;
    if (goes) {
        struct model_copy **at = &model->copies;
        while (*at != copy)
            at = &(*at)->next;
        *at = copy->next;
    }
    pthread_mutex_unlock(&model->lock);
    if (!goes)
        return;
    libtorch_free(copy->module);
    free(copy);
}

/* Where the first copy is read to: the GPU of the first instance if all are on GPUs. */
static int32_t first_device(yyjson_val *config)
{
    yyjson_val *groups = yyjson_obj_get(config, "instance_group"), *group;
    size_t index, count;
    if (libtorch_gpu_absence() || yyjson_arr_size(groups) == 0)
        return LIBTORCH_CPU;
    yyjson_arr_foreach(groups, index, count, group)
    {
        const char *kind = yyjson_get_str(yyjson_obj_get(group, "kind"));
        if (!kind || strcmp(kind, "KIND_GPU") != 0)
            return LIBTORCH_CPU;
    }
    yyjson_val *gpus = yyjson_obj_get(yyjson_arr_get_first(groups), "gpus");
    yyjson_val *gpu = yyjson_arr_get_first(gpus);
    return gpu ? (int32_t)yyjson_get_int(gpu) : LIBTORCH_CPU;
}

/* The first copy, which names are from; no instance uses it yet. */
static TRITONSERVER_Error *pytorch_model_read(struct model *model)
{
    struct model_copy *copy;
    TRITONSERVER_Error *err = add_copy(model, first_device(model->config), &copy);
    if (!err) {
        copy->users = 0;
        model->module = copy->module;
    }
    return err;
}

static TRITONSERVER_Error *pytorch_model_load(struct model *model)
{
    TRITONSERVER_Error *err = TRITONBACKEND_ModelName(model->handle, &model->name);
    if (!err)
        err = pytorch_model_read_config(model);
    if (!err)
        err = bfile_of_model(model->handle, model->config,
                             model->is_package ? "model.pt2" : "model.pt", &model->path);
    if (!err)
        err = pytorch_model_read(model);
    return err ? err : names_resolve(model);
}

const size_t model_size = sizeof(struct model);

TRITONSERVER_Error *model_init(struct model *model, TRITONBACKEND_Model *handle, void *runtime)
{
    (void)runtime;
    model->handle = handle;
    pthread_mutex_init(&model->lock, NULL);
    return pytorch_model_load(model);
}

void model_fini(struct model *model)
{
    bool on_gpu = false;
    while (model->copies) {
        struct model_copy *copy = model->copies;
        model->copies = copy->next;
        on_gpu = on_gpu || copy->device != LIBTORCH_CPU;
        libtorch_free(copy->module);
        free(copy);
    }
    if (on_gpu)
        libtorch_empty_cache();
    pthread_mutex_destroy(&model->lock);
    names_free(model);
    yyjson_doc_free(model->config_doc);
    free(model->path);
}
