#include "signature.h"

#include <stdlib.h>

#include "../common/berr.h"

/* The functions that differ between inputs and outputs. */
struct side {
    const char *kind;
    ov_status_e (*count)(const ov_model_t *, size_t *);
    ov_status_e (*port)(const ov_model_t *, size_t, ov_output_const_port_t **);
};

static const struct side input_side = {"input", ov_model_inputs_size,
                                       ov_model_const_input_by_index};
static const struct side output_side = {"output", ov_model_outputs_size,
                                        ov_model_const_output_by_index};

static TRITONSERVER_Error *openvino_signature_read_shape(const struct model *model,
                                                         const struct side *side,
                                                         const ov_output_const_port_t *port,
                                                         struct model_tensor *tensor)
{
    ov_partial_shape_t shape;
    TRITONSERVER_Error *err =
        vino_err(ov_port_get_partial_shape(port, &shape), "retrieving a tensor's shape");
    if (err)
        return err;
    if (shape.rank.min != shape.rank.max || shape.rank.max > BRUN_MAX_DIMS)
        err = berr_new(TRITONSERVER_ERROR_UNSUPPORTED,
                       "model '%s', %s '%s': the number of dimensions has to be known and at most "
                       "%d",
                       model->name, side->kind, tensor->name, BRUN_MAX_DIMS);
    else
        tensor->rank = (size_t)shape.rank.max;
    for (size_t i = 0; i < tensor->rank; i++)
        tensor->dims[i] = shape.dims[i].min == shape.dims[i].max ? shape.dims[i].max : -1;
    ov_partial_shape_free(&shape);
    return err;
}

static TRITONSERVER_Error *openvino_signature_read_tensor(const struct model *model,
                                                          const struct side *side, size_t index,
                                                          struct model_tensor *tensor)
{
    ov_output_const_port_t *port = NULL;
    TRITONSERVER_Error *err =
        vino_err(side->port(model->graph, index, &port), "getting a tensor of the model");
    if (!err)
        err = vino_err(ov_port_get_any_name(port, &tensor->name), "getting a tensor's name");
    if (!err)
        err = vino_err(ov_port_get_element_type(port, &tensor->element), "getting a tensor's type");
    if (!err)
        err = openvino_signature_read_shape(model, side, port, tensor);
    ov_output_const_port_free(port);
    tensor->datatype = vino_datatype(tensor->element);
    return err;
}

static void openvino_signature_free_list(struct model_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        ov_free(list->tensors[i].name);
    free(list->tensors);
    *list = (struct model_list){0};
}

static TRITONSERVER_Error *openvino_signature_read_list(const struct model *model,
                                                        const struct side *side,
                                                        struct model_list *list)
{
    size_t count;
    openvino_signature_free_list(list);
    TRITONSERVER_Error *err =
        vino_err(side->count(model->graph, &count), "getting the model's tensors");
    if (err)
        return err;
    list->tensors = calloc(count + 1, sizeof *list->tensors);
    if (!list->tensors)
        return berr_no_memory();
    while (list->count < count && !err) {
        size_t index = list->count++;
        err = openvino_signature_read_tensor(model, side, index, &list->tensors[index]);
    }
    return err;
}

TRITONSERVER_Error *signature_read(struct model *model)
{
    TRITONSERVER_Error *err = openvino_signature_read_list(model, &input_side, &model->inputs);
    return err ? err : openvino_signature_read_list(model, &output_side, &model->outputs);
}

void signature_free(struct model *model)
{
    openvino_signature_free_list(&model->inputs);
    openvino_signature_free_list(&model->outputs);
}
