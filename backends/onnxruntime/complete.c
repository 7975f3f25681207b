#include "complete.h"

#include "../common/bcomplete.h"
#include "../common/bconfig.h"
#include "../common/berr.h"

static bool all_variable(const struct model_tensor *tensors, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (tensors[i].rank == 0 || tensors[i].dims[0] != -1)
            return false;
    return true;
}

static void onnxruntime_complete_put_tensors(yyjson_mut_doc *doc, yyjson_mut_val *root,
                                             const char *key, const struct model_tensor *tensors,
                                             size_t count, bool batches)
{
    yyjson_mut_val *list = yyjson_mut_arr(doc);
    for (size_t i = 0; i < count; i++)
        yyjson_mut_arr_add_val(list, bcomplete_tensor(doc, tensors[i].name, tensors[i].datatype,
                                                      tensors[i].dims, tensors[i].rank, batches));
    yyjson_mut_obj_put(root, yyjson_mut_str(doc, key), list);
}

static TRITONSERVER_Error *
onnxruntime_complete_put_batching(struct model *model, yyjson_mut_doc *doc, yyjson_mut_val *root)
{
    bool can_batch = all_variable(model->inputs, model->required_count) &&
                     all_variable(model->outputs, model->output_count);
    if (!can_batch) {
        if (model->max_batch_size == 0)
            return NULL;
        return berr_new(TRITONSERVER_ERROR_INVALID_ARG,
                        "autofill failed for model '%s': model does not support batching while "
                        "non-zero max_batch_size is specified",
                        model->name);
    }
    int64_t given = model->max_batch_size;
    model->max_batch_size =
        bcomplete_batching(doc, root, given, model->ort->settings.default_max_batch_size);
    model->batching_filled_in = model->max_batch_size != given;
    return NULL;
}

TRITONSERVER_Error *complete_fill_in(struct model *model, bool *ret_changed)
{
    bool has_inputs = yyjson_arr_size(yyjson_obj_get(model->config, "input")) > 0 ||
                      yyjson_arr_size(yyjson_obj_get(model->config, "batch_input")) > 0;
    bool has_outputs = yyjson_arr_size(yyjson_obj_get(model->config, "output")) > 0;
    if (has_inputs && has_outputs)
        return NULL;

    yyjson_mut_doc *doc = yyjson_doc_mut_copy(model->config_doc, NULL);
    if (!doc)
        return berr_no_memory();
    yyjson_mut_val *root = yyjson_mut_doc_get_root(doc);
    TRITONSERVER_Error *err = onnxruntime_complete_put_batching(model, doc, root);
    if (!err) {
        bool batches = model->max_batch_size > 0;
        if (!has_inputs)
            onnxruntime_complete_put_tensors(doc, root, "input", model->inputs,
                                             model->required_count, batches);
        if (!has_outputs)
            onnxruntime_complete_put_tensors(doc, root, "output", model->outputs,
                                             model->output_count, batches);
        err = bconfig_set_of_model(model->handle, doc);
    }
    yyjson_mut_doc_free(doc);
    if (!err)
        *ret_changed = true;
    return err;
}
