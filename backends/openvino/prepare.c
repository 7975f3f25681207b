#include "prepare.h"

#include <stdlib.h>
#include <string.h>

#include "../common/bconfig.h"
#include "../common/berr.h"
#include "check.h"
#include "signature.h"

static TRITONSERVER_Error *set_input_type(ov_preprocess_prepostprocessor_t *steps, size_t index,
                                          ov_element_type_e element)
{
    static const char doing[] = "setting precision for an input";
    ov_preprocess_input_info_t *info = NULL;
    ov_preprocess_input_tensor_info_t *tensor = NULL;
    TRITONSERVER_Error *err = vino_err(
        ov_preprocess_prepostprocessor_get_input_info_by_index(steps, index, &info), doing);
    if (!err)
        err = vino_err(ov_preprocess_input_info_get_tensor_info(info, &tensor), doing);
    if (!err)
        err = vino_err(ov_preprocess_input_tensor_info_set_element_type(tensor, element), doing);
    ov_preprocess_input_tensor_info_free(tensor);
    ov_preprocess_input_info_free(info);
    return err;
}

static TRITONSERVER_Error *set_output_type(ov_preprocess_prepostprocessor_t *steps, size_t index,
                                           ov_element_type_e element)
{
    static const char doing[] = "setting precision for an output";
    ov_preprocess_output_info_t *info = NULL;
    ov_preprocess_output_tensor_info_t *tensor = NULL;
    TRITONSERVER_Error *err = vino_err(
        ov_preprocess_prepostprocessor_get_output_info_by_index(steps, index, &info), doing);
    if (!err)
        err = vino_err(ov_preprocess_output_info_get_tensor_info(info, &tensor), doing);
    if (!err)
        err = vino_err(ov_preprocess_output_set_element_type(tensor, element), doing);
    ov_preprocess_output_tensor_info_free(tensor);
    ov_preprocess_output_info_free(info);
    return err;
}

/* Sets the types of inputs or outputs if the configuration's differ from the file's; *changed is
 * true if any did. */
static TRITONSERVER_Error *set_types(const struct model *model, const char *kind,
                                     const struct model_list *list,
                                     ov_preprocess_prepostprocessor_t *steps, bool *changed)
{
    size_t index, count;
    yyjson_val *entry;
    yyjson_arr_foreach(yyjson_obj_get(model->config, kind), index, count, entry)
    {
        const struct model_tensor *tensor =
            model_find(list, yyjson_get_str(yyjson_obj_get(entry, "name")));
        ov_element_type_e element =
            vino_element(bconfig_datatype(yyjson_get_str(yyjson_obj_get(entry, "data_type"))));
        if (!tensor || element == DYNAMIC || element == tensor->element)
            continue;
        size_t port = (size_t)(tensor - list->tensors);
        TRITONSERVER_Error *err = list == &model->inputs ? set_input_type(steps, port, element)
                                                         : set_output_type(steps, port, element);
        if (err)
            return err;
        *changed = true;
    }
    return NULL;
}

static TRITONSERVER_Error *convert_types(struct model *model)
{
    ov_preprocess_prepostprocessor_t *steps = NULL;
    ov_model_t *built = NULL;
    bool changed = false;
    TRITONSERVER_Error *err = vino_err(ov_preprocess_prepostprocessor_create(model->graph, &steps),
                                       "preparing conversions");
    if (!err)
        err = set_types(model, "input", &model->inputs, steps, &changed);
    if (!err)
        err = set_types(model, "output", &model->outputs, steps, &changed);
    if (!err && changed)
        err = vino_err(ov_preprocess_prepostprocessor_build(steps, &built), "applying conversions");
    ov_preprocess_prepostprocessor_free(steps);
    if (built) {
        ov_model_free(model->graph);
        model->graph = built;
    }
    return err;
}

/* The shape that an input must have; *changed is true if it differs from the file's. */
static TRITONSERVER_Error *wanted_shape(const struct model *model,
                                        const struct model_tensor *tensor, yyjson_val *entry,
                                        int64_t batch, ov_dimension_t *dims, bool *changed)
{
    int64_t wanted[BRUN_MAX_DIMS], configured[BRUN_MAX_DIMS];
    size_t rank, first = batch ? 1 : 0;
    TRITONSERVER_Error *err = check_read_shape(model, entry, configured, &rank);
    if (err)
        return err;
    memcpy(wanted, tensor->dims, sizeof wanted);
    if (model->options.reshapes && rank + first == tensor->rank)
        memcpy(wanted + first, configured, rank * sizeof *configured);
    if (batch && tensor->rank)
        wanted[0] = batch;
    for (size_t i = 0; i < tensor->rank; i++) {
        if (model->options.reshapes && wanted[i] == 0)
            return berr_new(TRITONSERVER_ERROR_INTERNAL,
                            "openvino backend does not support dimensions values other than `-1` "
                            "or positive integers");
        *changed = *changed || wanted[i] != tensor->dims[i];
        dims[i] = wanted[i] < 0 ? (ov_dimension_t){0, -1} : (ov_dimension_t){wanted[i], wanted[i]};
    }
    return NULL;
}

static TRITONSERVER_Error *reshape_inputs(struct model *model, int64_t batch)
{
    size_t count = model->inputs.count;
    bool changed = false;
    TRITONSERVER_Error *err = NULL;
    ov_dimension_t *dims = calloc(count * BRUN_MAX_DIMS + 1, sizeof *dims);
    ov_partial_shape_t *shapes = calloc(count + 1, sizeof *shapes);
    size_t *ports = calloc(count + 1, sizeof *ports);
    if (!dims || !shapes || !ports)
        err = berr_no_memory();
    size_t index, entries;
    yyjson_val *entry;
    yyjson_arr_foreach(yyjson_obj_get(model->config, "input"), index, entries, entry)
    {
        const struct model_tensor *tensor =
            model_find(&model->inputs, yyjson_get_str(yyjson_obj_get(entry, "name")));
        if (err || !tensor)
            continue;
        size_t port = (size_t)(tensor - model->inputs.tensors);
        int64_t rank = (int64_t)tensor->rank;
        ports[index] = port;
        shapes[index].rank = (ov_rank_t){rank, rank};
        shapes[index].dims = dims + port * BRUN_MAX_DIMS;
        err = wanted_shape(model, tensor, entry, batch, shapes[index].dims, &changed);
    }
    if (!err && changed)
        err = vino_err(ov_model_reshape_by_port_indexes(model->graph, ports, shapes, count),
                       "setting the shapes of inputs");
    free(dims);
    free(shapes);
    free(ports);
    return err;
}

TRITONSERVER_Error *prepare_graph(struct model *model, int64_t batch)
{
    TRITONSERVER_Error *err = convert_types(model);
    if (!err)
        err = reshape_inputs(model, batch);
    return err ? err : signature_read(model);
}
