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

TRITONSERVER_Error *model_load(const struct model *model, struct libtorch_module **ret_module)
{
    TRITONSERVER_Error *err =
        libtorch_load(model->path, model->is_package, model->options.mode.inference, ret_module);
    if (!err)
        return NULL;
    TRITONSERVER_Error *named =
        berr_new(TRITONSERVER_ERROR_INTERNAL, "failed to load model '%s': %s", model->name,
                 TRITONSERVER_ErrorMessage(err));
    berr_drop(err);
    return named;
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
        err = model_load(model, &model->module);
    return err ? err : names_resolve(model);
}

const size_t model_size = sizeof(struct model);

TRITONSERVER_Error *model_init(struct model *model, TRITONBACKEND_Model *handle, void *runtime)
{
    (void)runtime;
    model->handle = handle;
    atomic_flag_clear(&model->taken);
    return pytorch_model_load(model);
}

void model_fini(struct model *model)
{
    libtorch_free(model->module);
    names_free(model);
    yyjson_doc_free(model->config_doc);
    free(model->path);
}
