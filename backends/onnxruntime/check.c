#include "check.h"

#include <stdlib.h>
#include <string.h>

#include "../common/bcomplete.h"
#include "../common/bconfig.h"
#include "../common/berr.h"
#include "../common/blog.h"
#include "sequence.h"
#include "signature.h"

enum { TEXT_SIZE = BCONFIG_SHAPE_TEXT };

struct shape {
    size_t rank;
    int64_t dims[BRUN_MAX_DIMS];
};

/* Finds the tensor of a configuration's entry; the error lists the existing tensors. */
static TRITONSERVER_Error *onnxruntime_check_find(struct model_tensor *tensors, size_t count,
                                                  const char *kind, const char *name,
                                                  struct model_tensor **ret_tensor)
{
    *ret_tensor = model_find(tensors, count, name);
    if (*ret_tensor)
        return NULL;
    struct berr_names names = {0};
    for (size_t i = 0; i < count; i++)
        berr_names_add(&names, tensors[i].name);
    return berr_new(TRITONSERVER_ERROR_INVALID_ARG,
                    "unexpected inference %s '%s', allowed %ss are: %s", kind, name ? name : "",
                    kind, names.text);
}

static TRITONSERVER_Error *onnxruntime_check_datatype(const struct model *model,
                                                      const struct model_tensor *tensor,
                                                      const char *kind, yyjson_val *entry)
{
    const char *wanted = yyjson_get_str(yyjson_obj_get(entry, "data_type"));
    TRITONSERVER_DataType datatype = bconfig_datatype(wanted);
    if (datatype == TRITONSERVER_TYPE_INVALID)
        return berr_new(TRITONSERVER_ERROR_INTERNAL,
                        "unsupported datatype %s for %s '%s' for model '%s'", wanted ? wanted : "",
                        kind, tensor->name, model->name);
    if (datatype == tensor->datatype)
        return NULL;
    return berr_new(TRITONSERVER_ERROR_INVALID_ARG,
                    "unable to load model '%s', configuration expects datatype %s for %s '%s', "
                    "model provides TYPE_%s",
                    model->name, wanted, kind, tensor->name,
                    TRITONSERVER_DataTypeString(tensor->datatype));
}

/* The shape that the model must have for a configuration with batching: the batch dimension,
 * then dims. */
static TRITONSERVER_Error *full_shape(const struct model *model, const struct model_tensor *tensor,
                                      const struct shape *dims, struct shape *ret_full)
{
    char text[TEXT_SIZE];
    size_t first = model->max_batch_size > 0 ? 1 : 0;
    if (first && (tensor->rank == 0 || tensor->dims[0] != -1))
        return berr_new(TRITONSERVER_ERROR_INVALID_ARG,
                        "model '%s', tensor '%s': for the model to support batching the shape "
                        "should have at least 1 dimension and the first dimension must be -1; but "
                        "shape expected by the model is %s",
                        model->name, tensor->name,
                        bconfig_shape_text(tensor->dims, tensor->rank, text));
    ret_full->dims[0] = -1;
    memcpy(ret_full->dims + first, dims->dims, dims->rank * sizeof *dims->dims);
    ret_full->rank = dims->rank + first;
    return NULL;
}

/* `exact`: a variable dimension of the model must also be variable in the configuration, because
 * clients are told the configuration's outputs. */
static TRITONSERVER_Error *onnxruntime_check_shape(const struct model *model,
                                                   const struct model_tensor *tensor,
                                                   const struct shape *dims, bool exact)
{
    struct shape full = {0};
    TRITONSERVER_Error *err = full_shape(model, tensor, dims, &full);
    if (err)
        return err;
    bool same = tensor->rank == full.rank;
    for (size_t i = 0; same && i < full.rank; i++)
        same = tensor->dims[i] == full.dims[i] || (!exact && tensor->dims[i] == -1) ||
               (model->is_netdef && full.dims[i] == -1);
    if (same)
        return NULL;
    return bcomplete_wrong_shape(model->name, tensor->name,
                                 (struct bcomplete_shape){tensor->dims, tensor->rank},
                                 (struct bcomplete_shape){full.dims, full.rank},
                                 model->batching_filled_in   ? BCOMPLETE_BATCH_FILLED_IN
                                 : model->max_batch_size > 0 ? BCOMPLETE_BATCH_GIVEN
                                                             : BCOMPLETE_NO_BATCH);
}

static TRITONSERVER_Error *onnxruntime_check_scalar(const struct model *model,
                                                    const struct model_tensor *tensor,
                                                    const struct shape *dims)
{
    for (size_t i = 0; i < dims->rank; i++) {
        if (dims->dims[i] == 1)
            continue;
        char text[TEXT_SIZE];
        return berr_new(TRITONSERVER_ERROR_INVALID_ARG,
                        "unable to load model '%s', scalar tensor '%s', should only provide 1 in "
                        "the model configuration when the model doesn't support batching. Model "
                        "configuration provided: %s.",
                        model->name, tensor->name,
                        bconfig_shape_text(dims->dims, dims->rank, text));
    }
    return NULL;
}

/* The shape that the backend sees: reshape if there is one, else dims. */
static TRITONSERVER_Error *onnxruntime_check_read_shape(const struct model *model,
                                                        yyjson_val *entry, const char *name,
                                                        struct shape *ret_shape)
{
    yyjson_val *reshape = yyjson_obj_get(entry, "reshape");
    yyjson_val *dims = reshape ? yyjson_obj_get(reshape, "shape") : yyjson_obj_get(entry, "dims");
    ret_shape->rank = bconfig_shape(dims, ret_shape->dims, BRUN_MAX_DIMS);
    if (ret_shape->rank + (model->max_batch_size > 0 ? 1 : 0) <= BRUN_MAX_DIMS)
        return NULL;
    return berr_new(TRITONSERVER_ERROR_INVALID_ARG,
                    "model '%s', tensor '%s': at most %d dimensions are supported", model->name,
                    name, BRUN_MAX_DIMS);
}

static TRITONSERVER_Error *onnxruntime_check_input(const struct model *model, yyjson_val *entry)
{
    struct model_tensor *tensor;
    struct shape dims;
    const char *name = yyjson_get_str(yyjson_obj_get(entry, "name"));
    bool optional = yyjson_get_bool(yyjson_obj_get(entry, "optional"));
    if (optional && model->max_batch_size > 0)
        return berr_new(TRITONSERVER_ERROR_INVALID_ARG,
                        "unable to load model '%s', optional input '%s' is not supported for "
                        "models that support batching",
                        model->name, name ? name : "");
    TRITONSERVER_Error *err =
        onnxruntime_check_find(model->inputs, model->input_count, "input", name, &tensor);
    if (!err)
        err = onnxruntime_check_datatype(model, tensor, "input", entry);
    if (!err)
        err = onnxruntime_check_read_shape(model, entry, tensor->name, &dims);
    if (err || tensor->ragged)
        return err;
    return tensor->rank == 0 ? onnxruntime_check_scalar(model, tensor, &dims)
                             : onnxruntime_check_shape(model, tensor, &dims, false);
}

static TRITONSERVER_Error *onnxruntime_check_output(const struct model *model, yyjson_val *entry)
{
    struct model_tensor *tensor;
    struct shape dims;
    const char *name = yyjson_get_str(yyjson_obj_get(entry, "name"));
    TRITONSERVER_Error *err =
        onnxruntime_check_find(model->outputs, model->output_count, "output", name, &tensor);
    if (!err)
        err = onnxruntime_check_datatype(model, tensor, "output", entry);
    if (!err)
        err = onnxruntime_check_read_shape(model, entry, tensor->name, &dims);
    if (!err && !tensor->divided_by)
        err = tensor->rank == 0 ? onnxruntime_check_scalar(model, tensor, &dims)
                                : onnxruntime_check_shape(model, tensor, &dims, true);
    if (err)
        return err;
    if (tensor->rank == 0 && model->max_batch_size > 0)
        blog_warn("model '%s': output '%s' of the file is one value without rows, so requests that "
                  "ask for it fail; set max_batch_size to 0, or leave the output out",
                  model->name, tensor->name);
    tensor->served = true;
    tensor->served_rank = dims.rank;
    memcpy(tensor->served_dims, dims.dims, dims.rank * sizeof *dims.dims);
    return NULL;
}

static TRITONSERVER_Error *onnxruntime_check_states(const struct model *model, yyjson_val *states)
{
    size_t index, count;
    yyjson_val *state;
    yyjson_arr_foreach(states, index, count, state)
    {
        struct model_tensor *input, *output;
        const char *read = yyjson_get_str(yyjson_obj_get(state, "input_name"));
        const char *written = yyjson_get_str(yyjson_obj_get(state, "output_name"));
        TRITONSERVER_Error *err =
            onnxruntime_check_find(model->outputs, model->output_count, "output", written, &output);
        if (!err)
            err = onnxruntime_check_datatype(model, output, "output state", state);
        if (!err)
            err = onnxruntime_check_find(model->inputs, model->input_count, "input", read, &input);
        if (!err)
            err = onnxruntime_check_datatype(model, input, "input state", state);
        if (err)
            return err;
        output->is_state = true;
    }
    return NULL;
}

static TRITONSERVER_Error *check_input_count(const struct model *model, size_t controls)
{
    size_t index, count, optional = 0;
    yyjson_val *entry;
    yyjson_val *inputs = yyjson_obj_get(model->config, "input");
    yyjson_val *sequence = yyjson_obj_get(model->config, "sequence_batching");
    yyjson_arr_foreach(inputs, index, count, entry)
    {
        if (yyjson_get_bool(yyjson_obj_get(entry, "optional")))
            optional++;
    }
    size_t expected = yyjson_arr_size(inputs) - optional + controls +
                      yyjson_arr_size(yyjson_obj_get(sequence, "state")) + model->batch_input_count;
    if (expected == model->required_count)
        return NULL;
    return berr_new(TRITONSERVER_ERROR_INVALID_ARG,
                    "unable to load model '%s', configuration expects %zu inputs, model provides "
                    "%zu",
                    model->name, expected, model->required_count);
}

TRITONSERVER_Error *check_model(struct model *model)
{
    size_t index, count, controls = 0;
    yyjson_val *entry;
    yyjson_val *config = model->config;
    yyjson_val *inputs = yyjson_obj_get(config, "input");
    yyjson_val *outputs = yyjson_obj_get(config, "output");
    yyjson_val *sequence = yyjson_obj_get(config, "sequence_batching");
    TRITONSERVER_Error *err = sequence_check_controls(model, sequence, &controls);
    if (!err)
        err = check_input_count(model, controls);
    if (err)
        return err;
    yyjson_arr_foreach(inputs, index, count, entry)
    {
        err = onnxruntime_check_input(model, entry);
        if (err)
            return err;
    }
    yyjson_arr_foreach(outputs, index, count, entry)
    {
        err = onnxruntime_check_output(model, entry);
        if (err)
            return err;
    }
    return onnxruntime_check_states(model, yyjson_obj_get(sequence, "state"));
}
