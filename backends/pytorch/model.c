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

/* Reads the file into the memory of a device; used once, and in no list yet. */
static TRITONSERVER_Error *read_copy(const struct model *model, int32_t device,
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
    copy->device = device;
    copy->users = 1;
    *ret_copy = copy;
    return NULL;
}

static void free_copy(struct model_copy *copy)
{
    libtorch_free(copy->module);
    free(copy);
}

static void list_copy(struct model *model, struct model_copy *copy)
{
    copy->next = model->copies;
    model->copies = copy;
}

/* A listed copy that one more instance may use, counted; the caller has the lock. */
static struct model_copy *find_copy(const struct model *model, int32_t device)
{
    bool shares = model->options.shares_weights;
    struct model_copy *copy = model->copies;
    while (copy && (copy->device != device || (copy->users > 0 && !shares)))
        copy = copy->next;
    if (copy)
        copy->users++;
    return copy;
}

TRITONSERVER_Error *model_take_copy(struct model *model, int32_t device,
                                    struct model_copy **ret_copy)
{
    TRITONSERVER_Error *err = NULL;
    pthread_mutex_lock(&model->lock);
    model->was_on_gpu = model->was_on_gpu || device != LIBTORCH_CPU;
    struct model_copy *copy = find_copy(model, device);
    if (!copy && model->options.shares_weights) { /* who would share it waits for it */
        err = read_copy(model, device, &copy);
        if (!err)
            list_copy(model, copy);
    }
    pthread_mutex_unlock(&model->lock);
    if (!err && !copy) {
        err = read_copy(model, device, &copy);
        if (!err)
            copy->alone = true;
    }
    *ret_copy = copy;
    return err;
}

void model_give_copy(struct model *model, struct model_copy *copy)
{
    if (copy && copy->alone) {
        free_copy(copy);
    } else if (copy) {
        pthread_mutex_lock(&model->lock);
        copy->users--;
        pthread_mutex_unlock(&model->lock);
    }
}

/* The first copy, which names are from; no instance uses it yet. */
static TRITONSERVER_Error *pytorch_model_read(struct model *model)
{
    struct model_copy *copy = NULL;
    int32_t device = libtorch_gpu_absence() ? -1 : bconfig_first_gpu(model->config);
    TRITONSERVER_Error *err = read_copy(model, device < 0 ? LIBTORCH_CPU : device, &copy);
    if (err)
        return err;
    copy->users = 0;
    list_copy(model, copy);
    model->module = copy->module;
    return NULL;
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
    if (!err)
        err = names_resolve(model);
    if (!err)
        options_apply(model->name, &model->options);
    return err;
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
    while (model->copies) {
        struct model_copy *copy = model->copies;
        model->copies = copy->next;
        free_copy(copy);
    }
    if (model->was_on_gpu)
        libtorch_empty_cache();
    pthread_mutex_destroy(&model->lock);
    names_free(model);
    yyjson_doc_free(model->config_doc);
    free(model->path);
}
