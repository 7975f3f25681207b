#include "check.h"

#include <string.h>

#include "../common/bcomplete.h"
#include "../common/bconfig.h"
#include "../common/berr.h"
#include "batch_parts.h"

enum { TEXT_SIZE = BCONFIG_SHAPE_TEXT };

/* An entry of the configuration: its tensor, type and shape. */
struct claim {
    const char *kind; /* "input" or "output" */
    const char *name;
    const char *type;
    size_t rank;
    int64_t dims[BRUN_MAX_DIMS];
};

static TRITONSERVER_Error *tensorflow_check_no_such_tensor(const struct model_list *list,
                                                           const struct claim *claim)
{
    struct berr_names names = {0};
    for (size_t i = 0; i < list->count; i++)
        berr_names_add(&names, list->tensors[i].name);
    return berr_new(TRITONSERVER_ERROR_INVALID_ARG,
                    "unexpected inference %s '%s', allowed %ss are: %s", claim->kind, claim->name,
                    claim->kind, names.text);
}

static TRITONSERVER_Error *read_claim(const struct model *model, const char *kind,
                                      yyjson_val *entry, struct claim *claim)
{
    yyjson_val *reshape = yyjson_obj_get(entry, "reshape");
    yyjson_val *dims = reshape ? yyjson_obj_get(reshape, "shape") : yyjson_obj_get(entry, "dims");
    const char *name = yyjson_get_str(yyjson_obj_get(entry, "name"));
    *claim = (struct claim){.kind = kind, .name = name ? name : ""};
    claim->type = yyjson_get_str(yyjson_obj_get(entry, "data_type"));
    claim->rank = bconfig_shape(dims, claim->dims, BRUN_MAX_DIMS);
    if (claim->rank < BRUN_MAX_DIMS - 1)
        return NULL;
    return berr_new(TRITONSERVER_ERROR_INVALID_ARG,
                    "model '%s', tensor '%s': fewer than %d dimensions are supported", model->name,
                    claim->name, BRUN_MAX_DIMS - 1);
}

static TRITONSERVER_Error *tensorflow_check_type(const struct model *model,
                                                 const struct claim *claim,
                                                 const struct model_tensor *tensor)
{
    TRITONSERVER_DataType datatype = bconfig_datatype(claim->type);
    if (runtime_type(datatype) == 0)
        return berr_new(TRITONSERVER_ERROR_INVALID_ARG,
                        "unsupported datatype '%s' for tensor '%s' for model '%s'",
                        claim->type ? claim->type : "", claim->name, model->name);
    if (tensor->datatype == TRITONSERVER_TYPE_INVALID)
        return berr_new(TRITONSERVER_ERROR_INTERNAL,
                        "unable to process %s '%s' for '%s', unsupported datatype: type %d of "
                        "TensorFlow",
                        claim->kind, claim->name, model->name, (int)tensor->type);
    if (datatype == tensor->datatype)
        return NULL;
    return berr_new(TRITONSERVER_ERROR_INVALID_ARG,
                    "unable to load model '%s', configuration expects datatype %s for %s '%s', "
                    "model provides %s",
                    model->name, claim->type, claim->kind, claim->name,
                    bcomplete_type(tensor->datatype));
}

static TRITONSERVER_Error *tensorflow_check_wrong_shape(const struct model *model,
                                                        const struct claim *claim,
                                                        const struct model_tensor *tensor)
{
    char model_text[TEXT_SIZE], text[TEXT_SIZE];
    int64_t full[BRUN_MAX_DIMS] = {-1};
    size_t first = model->max_batch_size > 0 ? 1 : 0;
    if (claim->rank)
        memcpy(full + first, claim->dims, claim->rank * sizeof *full);
    bconfig_shape_text(tensor->dims, tensor->rank, model_text);
    if (first && tensor->dims[0] != -1)
        return berr_new(TRITONSERVER_ERROR_INVALID_ARG,
                        "model '%s', tensor '%s': for the model to support batching the shape "
                        "should have at least 1 dimension and the first dimension must be -1; but "
                        "shape expected by the model is %s",
                        model->name, claim->name, model_text);
    return berr_new(TRITONSERVER_ERROR_INVALID_ARG,
                    "model '%s', tensor '%s': the model expects %zu dimensions (shape %s) but the "
                    "model configuration specifies %zu dimensions (%sshape %s)",
                    model->name, claim->name, tensor->rank, model_text, claim->rank + first,
                    first ? "an initial batch dimension because max_batch_size > 0 followed by the "
                            "explicit tensor shape, making complete "
                          : "",
                    bconfig_shape_text(full, claim->rank + first, text));
}

static TRITONSERVER_Error *not_flat(const struct model *model, const struct model_tensor *tensor)
{
    char text[TEXT_SIZE];
    return berr_new(TRITONSERVER_ERROR_INVALID_ARG,
                    "unable to load model '%s', configuration expects model provides input with "
                    "shape [-1] for ragged input '%s', model provides %s",
                    model->name, tensor->name,
                    bconfig_shape_text(tensor->dims, tensor->rank, text));
}

/* Checks a shape. An input may be narrower than the model's; an output must be what the model
 * makes.
 * exact  as for outputs */
static TRITONSERVER_Error *tensorflow_check_shape(const struct model *model,
                                                  const struct claim *claim,
                                                  const struct model_tensor *tensor, bool exact)
{
    size_t first = model->max_batch_size > 0 ? 1 : 0;
    if (!tensor->has_shape || tensor->rank == 0 || tensor->is_divided)
        return NULL;
    if (tensor->ragged)
        return tensor->rank == 1 && tensor->dims[0] == -1 ? NULL : not_flat(model, tensor);
    bool same = tensor->rank == claim->rank + first && (!first || tensor->dims[0] == -1);
    for (size_t i = first; same && i < tensor->rank; i++)
        same = tensor->dims[i] == claim->dims[i - first] || (!exact && tensor->dims[i] == -1);
    return same ? NULL : tensorflow_check_wrong_shape(model, claim, tensor);
}

static TRITONSERVER_Error *tensorflow_check_input(const struct model *model, yyjson_val *entry)
{
    struct claim claim;
    TRITONSERVER_Error *err = read_claim(model, "input", entry, &claim);
    if (err)
        return err;
    const struct model_tensor *tensor = model_find(&model->inputs, claim.name);
    if (!tensor)
        return tensorflow_check_no_such_tensor(&model->inputs, &claim);
    err = tensorflow_check_type(model, &claim, tensor);
    return err ? err : tensorflow_check_shape(model, &claim, tensor, false);
}

/* Checks a control input, which tells the position of a request in its sequence. */
static TRITONSERVER_Error *tensorflow_check_control(const struct model *model, yyjson_val *entry)
{
    struct claim claim = {.kind = "input", .rank = 1, .dims = {1}};
    claim.name = yyjson_get_str(yyjson_obj_get(entry, "name"));
    claim.type = bconfig_control_type(yyjson_arr_get_first(yyjson_obj_get(entry, "control")));
    const struct model_tensor *tensor = model_find(&model->inputs, claim.name);
    if (!tensor)
        return berr_new(TRITONSERVER_ERROR_INTERNAL,
                        "configuration specified sequence control '%s', but model does not provide "
                        "that input",
                        claim.name ? claim.name : "");
    TRITONSERVER_Error *err = tensorflow_check_type(model, &claim, tensor);
    return err ? err : tensorflow_check_shape(model, &claim, tensor, true);
}

/* Checks a state, which is an input tensor and an output tensor. */
static TRITONSERVER_Error *tensorflow_check_state(const struct model *model, yyjson_val *entry)
{
    struct claim claim;
    TRITONSERVER_Error *err = read_claim(model, "output", entry, &claim);
    if (err)
        return err;
    claim.name = yyjson_get_str(yyjson_obj_get(entry, "output_name"));
    struct model_tensor *output = model_find(&model->outputs, claim.name);
    if (!output)
        return tensorflow_check_no_such_tensor(&model->outputs, &claim);
    output->is_state = true;
    err = tensorflow_check_type(model, &claim, output);
    if (!err && output->datatype == TRITONSERVER_TYPE_BYTES)
        err = berr_new(TRITONSERVER_ERROR_UNSUPPORTED,
                       "unable to load model '%s': the state of output '%s' is TYPE_STRING, which "
                       "is not supported",
                       model->name, claim.name);
    if (err)
        return err;
    claim.kind = "input";
    claim.name = yyjson_get_str(yyjson_obj_get(entry, "input_name"));
    const struct model_tensor *input = model_find(&model->inputs, claim.name);
    return input ? tensorflow_check_type(model, &claim, input)
                 : tensorflow_check_no_such_tensor(&model->inputs, &claim);
}

static TRITONSERVER_Error *tensorflow_check_output(const struct model *model, yyjson_val *entry)
{
    struct claim claim;
    TRITONSERVER_Error *err = read_claim(model, "output", entry, &claim);
    if (err)
        return err;
    struct model_tensor *tensor = model_find(&model->outputs, claim.name);
    if (!tensor)
        return tensorflow_check_no_such_tensor(&model->outputs, &claim);
    tensor->served = true;
    tensor->served_rank = claim.rank;
    memcpy(tensor->served_dims, claim.dims, sizeof claim.dims);
    err = tensorflow_check_type(model, &claim, tensor);
    return err ? err : tensorflow_check_shape(model, &claim, tensor, true);
}

/* Checks every entry of a list until one is wrong. */
static TRITONSERVER_Error *check_each(const struct model *model, yyjson_val *entries,
                                      TRITONSERVER_Error *(*check)(const struct model *,
                                                                   yyjson_val *))
{
    size_t index, count;
    yyjson_val *entry;
    TRITONSERVER_Error *err = NULL;
    yyjson_arr_foreach(entries, index, count, entry)
    {
        if (!err)
            err = check(model, entry);
    }
    return err;
}

TRITONSERVER_Error *check_config(struct model *model)
{
    yyjson_val *inputs = yyjson_obj_get(model->config, "input");
    yyjson_val *sequence = yyjson_obj_get(model->config, "sequence_batching");
    yyjson_val *controls = yyjson_obj_get(sequence, "control_input");
    yyjson_val *states = yyjson_obj_get(sequence, "state");
    size_t given = yyjson_arr_size(inputs) + yyjson_arr_size(controls) + yyjson_arr_size(states) +
                   batch_parts_computed(model);
    TRITONSERVER_Error *err = batch_parts_read(model);
    bconfig_warn_optional(model->config, model->name, "tensorflow");
    if (!err)
        err = check_each(model, controls, tensorflow_check_control);
    if (!err)
        err = check_each(model, inputs, tensorflow_check_input);
    if (!err && given != model->inputs.count)
        err = berr_new(TRITONSERVER_ERROR_INVALID_ARG,
                       "unable to load model '%s', configuration expects %zu inputs, model "
                       "provides %zu",
                       model->name, given, model->inputs.count);
    if (!err)
        err = check_each(model, states, tensorflow_check_state);
    return err ? err
               : check_each(model, yyjson_obj_get(model->config, "output"),
                            tensorflow_check_output);
}
