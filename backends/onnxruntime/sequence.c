#include "sequence.h"

#include <string.h>

#include "../common/bconfig.h"
#include "../common/berr.h"

static TRITONSERVER_Error *onnxruntime_sequence_check_control(const struct model *model,
                                                              const char *name, yyjson_val *control)
{
    struct model_tensor *tensor = model_find(model->inputs, model->input_count, name);
    if (!tensor)
        return berr_new(TRITONSERVER_ERROR_INTERNAL,
                        "configuration specified sequence control '%s', but model does not provide "
                        "that input",
                        name);
    size_t first = model->max_batch_size > 0 ? 1 : 0;
    if (tensor->rank != first + 1 || tensor->dims[first] != 1)
        return berr_new(TRITONSERVER_ERROR_INVALID_ARG,
                        "unable to load model '%s', sequence control '%s' in model has %zu "
                        "dimensions but dims [1] is expected",
                        model->name, name, tensor->rank - (tensor->rank ? first : 0));
    const char *type = bconfig_control_type(control);
    if (bconfig_datatype(type) != tensor->datatype)
        return berr_new(TRITONSERVER_ERROR_INVALID_ARG,
                        "unable to load model '%s', sequence control '%s', the model expects "
                        "data-type TYPE_%s but the model configuration specifies data-type %s",
                        model->name, name, TRITONSERVER_DataTypeString(tensor->datatype), type);
    return NULL;
}

TRITONSERVER_Error *sequence_check_controls(const struct model *model, yyjson_val *sequence,
                                            size_t *ret_count)
{
    size_t index, count;
    yyjson_val *input;
    *ret_count = 0;
    yyjson_arr_foreach(yyjson_obj_get(sequence, "control_input"), index, count, input)
    {
        const char *name = yyjson_get_str(yyjson_obj_get(input, "name"));
        yyjson_val *control = yyjson_arr_get_first(yyjson_obj_get(input, "control"));
        if (!name || !control)
            continue;
        TRITONSERVER_Error *err = onnxruntime_sequence_check_control(model, name, control);
        if (err)
            return err;
        ++*ret_count;
    }
    return NULL;
}
