#include "check.h"

#include <string.h>

#include "../common/bcomplete.h"
#include "../common/bconfig.h"
#include "../common/berr.h"
#include "../common/blog.h"

enum { TEXT_SIZE = BCONFIG_SHAPE_TEXT };

/* Finds the tensor of a configuration's entry; the error lists the existing tensors. */
static TRITONSERVER_Error *openvino_check_find_tensor(const struct model_list *list,
                                                      const char *kind, const char *name,
                                                      struct model_tensor **ret_tensor)
{
    *ret_tensor = model_find(list, name);
    if (*ret_tensor)
        return NULL;
    struct berr_names names = {0};
    for (size_t i = 0; i < list->count; i++)
        berr_names_add(&names, list->tensors[i].name);
    return berr_new(TRITONSERVER_ERROR_INVALID_ARG,
                    "unexpected inference %s '%s', allowed %ss are: %s", kind, name ? name : "",
                    kind, names.text);
}

/* Checks the type. The runtime converts between the configuration's type and the file's. */
static TRITONSERVER_Error *openvino_check_type(const struct model *model, const char *kind,
                                               const char *name, yyjson_val *entry)
{
    const char *type = yyjson_get_str(yyjson_obj_get(entry, "data_type"));
    if (vino_element(bconfig_datatype(type)) != DYNAMIC)
        return NULL;
    return berr_new(TRITONSERVER_ERROR_INTERNAL,
                    "unsupported datatype %s for %s '%s' for model '%s'", type ? type : "", kind,
                    name, model->name);
}

TRITONSERVER_Error *check_read_shape(const struct model *model, yyjson_val *entry,
                                     int64_t *ret_dims, size_t *ret_rank)
{
    yyjson_val *reshape = yyjson_obj_get(entry, "reshape");
    yyjson_val *dims = reshape ? yyjson_obj_get(reshape, "shape") : yyjson_obj_get(entry, "dims");
    *ret_rank = bconfig_shape(dims, ret_dims, BRUN_MAX_DIMS);
    if (*ret_rank < BRUN_MAX_DIMS)
        return NULL;
    return berr_new(TRITONSERVER_ERROR_INVALID_ARG,
                    "model '%s', tensor '%s': fewer than %d dimensions are supported", model->name,
                    yyjson_get_str(yyjson_obj_get(entry, "name")), BRUN_MAX_DIMS);
}

/* True if a dimension in the configuration fits the model's. */
static bool dim_fits(const struct model *model, int64_t declared, int64_t configured, bool output,
                     bool is_batch)
{
    if (declared == -1 || declared == configured)
        return true;
    if (output || model->max_batch_size == 0)
        return false;
    return is_batch || configured == -1;
}

static TRITONSERVER_Error *openvino_check_scalar(const struct model *model,
                                                 const struct model_tensor *tensor,
                                                 const int64_t *dims, size_t rank)
{
    for (size_t i = 0; i < rank; i++) {
        char text[TEXT_SIZE];
        if (dims[i] != 1)
            return berr_new(TRITONSERVER_ERROR_INVALID_ARG,
                            "model '%s', tensor '%s': the model's tensor is a scalar, for which "
                            "only dims of 1 can be given, but the model configuration specifies %s",
                            model->name, tensor->name, bconfig_shape_text(dims, rank, text));
    }
    return NULL;
}

static TRITONSERVER_Error *openvino_check_shape(const struct model *model,
                                                const struct model_tensor *tensor,
                                                const int64_t *dims, size_t rank, bool output)
{
    int64_t full[BRUN_MAX_DIMS + 1] = {model->max_batch_size};
    bool batches = model->max_batch_size > 0;
    size_t first = batches ? 1 : 0;
    if (batches && tensor->rank == 0)
        return berr_new(TRITONSERVER_ERROR_INVALID_ARG,
                        "model '%s', tensor '%s': for the model to support batching the shape "
                        "should have at least 1 dimension",
                        model->name, tensor->name);
    if (tensor->rank == 0)
        return openvino_check_scalar(model, tensor, dims, rank);
    if (rank)
        memcpy(full + first, dims, rank * sizeof *dims);
    bool same = tensor->rank == rank + first;
    bool free_shape = !output && model->options.reshapes;
    for (size_t i = 0; same && !free_shape && i < tensor->rank; i++)
        same = dim_fits(model, tensor->dims[i], full[i], output, first && i == 0);
    if (same)
        return NULL;
    return bcomplete_wrong_shape(model->name, tensor->name,
                                 (struct bcomplete_shape){tensor->dims, tensor->rank},
                                 (struct bcomplete_shape){full, rank + first},
                                 model->batching_filled_in ? BCOMPLETE_BATCH_FILLED_IN
                                 : batches                 ? BCOMPLETE_BATCH_GIVEN
                                                           : BCOMPLETE_NO_BATCH);
}

TRITONSERVER_Error *check_inputs(const struct model *model)
{
    size_t index, count;
    yyjson_val *entry;
    yyjson_val *inputs = yyjson_obj_get(model->config, "input");
    TRITONSERVER_Error *refused =
        bconfig_refuse(model->config, model->name, "openvino",
                       BCONFIG_BATCH_INPUT | BCONFIG_BATCH_OUTPUT | BCONFIG_CONTROLS |
                           BCONFIG_STATES | BCONFIG_RAGGED);
    if (refused)
        return refused;
    bconfig_warn_optional(model->config, model->name, "openvino");
    if (yyjson_arr_size(inputs) != model->inputs.count)
        return berr_new(TRITONSERVER_ERROR_INVALID_ARG,
                        "unable to load model '%s', configuration expects %zu inputs, model "
                        "provides %zu",
                        model->name, yyjson_arr_size(inputs), model->inputs.count);
    yyjson_arr_foreach(inputs, index, count, entry)
    {
        struct model_tensor *tensor;
        int64_t dims[BRUN_MAX_DIMS];
        size_t rank = 0;
        const char *name = yyjson_get_str(yyjson_obj_get(entry, "name"));
        TRITONSERVER_Error *err =
            openvino_check_find_tensor(&model->inputs, "input", name, &tensor);
        if (!err)
            err = openvino_check_type(model, "input", name, entry);
        if (!err)
            err = check_read_shape(model, entry, dims, &rank);
        if (!err)
            err = openvino_check_shape(model, tensor, dims, rank, false);
        if (err)
            return err;
    }
    return NULL;
}

TRITONSERVER_Error *check_outputs(struct model *model)
{
    size_t index, count;
    yyjson_val *entry;
    yyjson_val *outputs = yyjson_obj_get(model->config, "output");
    yyjson_arr_foreach(outputs, index, count, entry)
    {
        struct model_tensor *tensor;
        const char *name = yyjson_get_str(yyjson_obj_get(entry, "name"));
        TRITONSERVER_Error *err =
            openvino_check_find_tensor(&model->outputs, "output", name, &tensor);
        if (!err)
            err = openvino_check_type(model, "output", name, entry);
        if (!err)
            err = check_read_shape(model, entry, tensor->served_dims, &tensor->served_rank);
        if (!err)
            err =
                openvino_check_shape(model, tensor, tensor->served_dims, tensor->served_rank, true);
        if (err)
            return err;
        tensor->served = true;
    }
    return NULL;
}

/* What the runtime computes as on CPU; NULL if it is the type itself. */
static const char *computed_as(TRITONSERVER_DataType datatype)
{
    if (datatype == TRITONSERVER_TYPE_FP64)
        return "FP32";
    if (datatype == TRITONSERVER_TYPE_INT64 || datatype == TRITONSERVER_TYPE_UINT32 ||
        datatype == TRITONSERVER_TYPE_UINT64)
        return "INT32";
    return NULL;
}

void check_warn_of_types(const struct model *model, const char *kind, const struct model_list *list)
{
    for (size_t i = 0; i < list->count; i++) {
        const struct model_tensor *tensor = &list->tensors[i];
        const char *smaller = computed_as(tensor->datatype);
        if (smaller)
            blog_warn("model '%s', %s '%s': OpenVINO computes TYPE_%s as %s, values that do not "
                      "fit come out wrong",
                      model->name, kind, tensor->name,
                      TRITONSERVER_DataTypeString(tensor->datatype), smaller);
    }
}
