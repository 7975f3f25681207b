#include "complete.h"

#include "../common/bconfig.h"
#include "../common/berr.h"

static bool all_variable(const struct model_tensor *tensors, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (tensors[i].rank == 0 || tensors[i].dims[0] != -1)
            return false;
    return true;
}

static const char *config_type(TRITONSERVER_DataType datatype)
{
    switch (datatype) {
    case TRITONSERVER_TYPE_BOOL:
        return "TYPE_BOOL";
    case TRITONSERVER_TYPE_UINT8:
        return "TYPE_UINT8";
    case TRITONSERVER_TYPE_UINT16:
        return "TYPE_UINT16";
    case TRITONSERVER_TYPE_UINT32:
        return "TYPE_UINT32";
    case TRITONSERVER_TYPE_UINT64:
        return "TYPE_UINT64";
    case TRITONSERVER_TYPE_INT8:
        return "TYPE_INT8";
    case TRITONSERVER_TYPE_INT16:
        return "TYPE_INT16";
    case TRITONSERVER_TYPE_INT32:
        return "TYPE_INT32";
    case TRITONSERVER_TYPE_INT64:
        return "TYPE_INT64";
    case TRITONSERVER_TYPE_FP16:
        return "TYPE_FP16";
    case TRITONSERVER_TYPE_FP32:
        return "TYPE_FP32";
    case TRITONSERVER_TYPE_FP64:
        return "TYPE_FP64";
    case TRITONSERVER_TYPE_BYTES:
        return "TYPE_STRING";
    case TRITONSERVER_TYPE_BF16:
        return "TYPE_BF16";
    case TRITONSERVER_TYPE_INVALID:
        break;
    }
    return "TYPE_INVALID";
}

/* One entry of "input" or "output". A tensor whose only dimension is the batch has no dims left,
 * which a configuration cannot say: it becomes [1] with a reshape to []. */
static yyjson_mut_val *describe(yyjson_mut_doc *doc, const struct model_tensor *tensor,
                                bool batches)
{
    yyjson_mut_val *entry = yyjson_mut_obj(doc);
    yyjson_mut_val *dims = yyjson_mut_arr(doc);
    size_t first = batches ? 1 : 0;
    yyjson_mut_obj_add_str(doc, entry, "name", tensor->name);
    yyjson_mut_obj_add_str(doc, entry, "data_type", config_type(tensor->datatype));
    for (size_t i = first; i < tensor->rank; i++)
        yyjson_mut_arr_add_sint(doc, dims, tensor->dims[i]);
    if (tensor->rank <= first) {
        yyjson_mut_arr_add_sint(doc, dims, 1);
        if (batches) {
            yyjson_mut_val *reshape = yyjson_mut_obj(doc);
            yyjson_mut_obj_add_arr(doc, reshape, "shape");
            yyjson_mut_obj_add_val(doc, entry, "reshape", reshape);
        }
    }
    yyjson_mut_obj_add_val(doc, entry, "dims", dims);
    return entry;
}

static void put_tensors(yyjson_mut_doc *doc, yyjson_mut_val *root, const char *key,
                        const struct model_tensor *tensors, size_t count, bool batches)
{
    yyjson_mut_val *list = yyjson_mut_arr(doc);
    for (size_t i = 0; i < count; i++)
        yyjson_mut_arr_add_val(list, describe(doc, &tensors[i], batches));
    yyjson_mut_obj_put(root, yyjson_mut_str(doc, key), list);
}

static TRITONSERVER_Error *put_batching(struct model *model, yyjson_mut_doc *doc,
                                        yyjson_mut_val *root)
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
    int64_t usual = model->ort->settings.default_max_batch_size;
    if (model->max_batch_size == 0 && usual > 0) {
        model->max_batch_size = usual;
        yyjson_mut_obj_put(root, yyjson_mut_str(doc, "max_batch_size"),
                           yyjson_mut_sint(doc, usual));
    }
    bool chosen = yyjson_mut_obj_get(root, "sequence_batching") ||
                  yyjson_mut_obj_get(root, "dynamic_batching");
    if (model->max_batch_size > 1 && !chosen)
        yyjson_mut_obj_add_obj(doc, root, "dynamic_batching");
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
    TRITONSERVER_Error *err = put_batching(model, doc, root);
    if (!err) {
        bool batches = model->max_batch_size > 0;
        if (!has_inputs)
            put_tensors(doc, root, "input", model->inputs, model->required_count, batches);
        if (!has_outputs)
            put_tensors(doc, root, "output", model->outputs, model->output_count, batches);
        err = bconfig_set_of_model(model->handle, doc);
    }
    yyjson_mut_doc_free(doc);
    if (!err)
        *ret_changed = true;
    return err;
}
