#include "complete.h"

#include <stdio.h>

#include "../common/bcomplete.h"
#include "../common/bconfig.h"
#include "../common/berr.h"
#include "../common/blog.h"
#include "layout.h"

static TRITONSERVER_Error *openvino_complete_put_batching(struct model *model, yyjson_mut_doc *doc,
                                                          yyjson_mut_val *root)
{
    bool can_batch;
    TRITONSERVER_Error *err = layout_has_batch(model, &can_batch);
    if (err)
        return err;
    int64_t usual = model->vino->default_max_batch_size;
    int64_t given = model->max_batch_size;
    if (can_batch)
        model->max_batch_size = bcomplete_batching(doc, root, given, usual > 0 ? usual : 1);
    model->batching_filled_in = can_batch && given == 0;
    if (model->batching_filled_in) {
        blog_warn(
            "autofilled max_batch_size to %lld for model '%s' since batching is supported but "
            "no max_batch_size is specified in model configuration. Must specify "
            "max_batch_size to utilize autofill with a larger max batch size",
            (long long)model->max_batch_size, model->name);
    } else if (!can_batch && given != 0) {
        blog_warn("model layout for model %s does not support batching while non-zero "
                  "max_batch_size is specified",
                  model->name);
    }
    return NULL;
}

static TRITONSERVER_Error *openvino_complete_put_tensors(const struct model *model,
                                                         yyjson_mut_doc *doc, yyjson_mut_val *root,
                                                         const char *kind,
                                                         const struct model_list *tensors)
{
    if (yyjson_arr_size(yyjson_obj_get(model->config, kind)) > 0)
        return NULL;
    yyjson_mut_val *list = yyjson_mut_arr(doc);
    for (size_t i = 0; i < tensors->count; i++) {
        const struct model_tensor *tensor = &tensors->tensors[i];
        if (tensor->datatype == TRITONSERVER_TYPE_INVALID)
            return berr_new(TRITONSERVER_ERROR_UNSUPPORTED,
                            "unsupported datatype of %s '%s' for model '%s': OpenVINO's type %d",
                            kind, tensor->name, model->name, (int)tensor->element);
        yyjson_mut_arr_add_val(list,
                               bcomplete_tensor(doc, tensor->name, tensor->datatype, tensor->dims,
                                                tensor->rank, model->max_batch_size > 0));
    }
    yyjson_mut_obj_put(root, yyjson_mut_str(doc, kind), list);
    return NULL;
}

TRITONSERVER_Error *complete_fill_in(struct model *model)
{
    if (yyjson_arr_size(yyjson_obj_get(model->config, "input")) > 0 &&
        yyjson_arr_size(yyjson_obj_get(model->config, "output")) > 0)
        return NULL;
    yyjson_mut_doc *doc = yyjson_doc_mut_copy(model->config_doc, NULL);
    if (!doc)
        return berr_no_memory();
    yyjson_mut_val *root = yyjson_mut_doc_get_root(doc);
    TRITONSERVER_Error *err = openvino_complete_put_batching(model, doc, root);
    if (!err)
        err = openvino_complete_put_tensors(model, doc, root, "input", &model->inputs);
    if (!err)
        err = openvino_complete_put_tensors(model, doc, root, "output", &model->outputs);
    if (!err)
        err = bconfig_set_of_model(model->handle, doc);
    yyjson_mut_doc_free(doc);
    return err;
}
