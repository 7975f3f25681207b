#include "translate.h"

#include <string.h>

#include "../../common/berr.h"
#include "graph.h"
#include "operators.h"

/* Field numbers of onnx.proto. */
enum { MODEL_IR_VERSION = 1, MODEL_PRODUCER = 2, MODEL_GRAPH = 7, MODEL_OPERATORS = 8 };
enum { GRAPH_NAME = 2, GRAPH_INPUT = 11, GRAPH_OUTPUT = 12 };
enum { INFO_NAME = 1, INFO_TYPE = 2, TYPE_TENSOR = 1, TENSOR_ELEMENT = 1, TENSOR_SHAPE = 2 };
enum { SHAPE_DIM = 1, DIM_VALUE = 1, OPERATORS_VERSION = 2 };

/* The last operator set in which Softmax, Split and Squeeze have the meaning and the attributes
 * that Caffe2's have. All versions of ONNX Runtime in use support it. */
enum { IR_VERSION = 7, OPERATOR_SET = 12 };

struct translation {
    const struct translate_network *network;
    struct graph graph;
};

static int type_number(TRITONSERVER_DataType datatype)
{
    switch (datatype) {
    case TRITONSERVER_TYPE_BOOL:
        return GRAPH_BOOL;
    case TRITONSERVER_TYPE_UINT8:
        return GRAPH_UINT8;
    case TRITONSERVER_TYPE_UINT16:
        return GRAPH_UINT16;
    case TRITONSERVER_TYPE_INT8:
        return GRAPH_INT8;
    case TRITONSERVER_TYPE_INT16:
        return GRAPH_INT16;
    case TRITONSERVER_TYPE_INT32:
        return GRAPH_INT32;
    case TRITONSERVER_TYPE_INT64:
        return GRAPH_INT64;
    case TRITONSERVER_TYPE_FP16:
        return GRAPH_FLOAT16;
    case TRITONSERVER_TYPE_FP32:
        return GRAPH_FLOAT;
    case TRITONSERVER_TYPE_FP64:
        return GRAPH_DOUBLE;
    case TRITONSERVER_TYPE_UINT32:
    case TRITONSERVER_TYPE_UINT64:
    case TRITONSERVER_TYPE_BYTES:
    case TRITONSERVER_TYPE_BF16:
    case TRITONSERVER_TYPE_INVALID:
        break;
    }
    return 0;
}

static const struct translate_tensor *find_tensor(const struct translate_tensor *tensors,
                                                  size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(tensors[i].name, name) == 0)
            return &tensors[i];
    return NULL;
}

static bool is_named(const char *const *names, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(names[i], name) == 0)
            return true;
    return false;
}

static TRITONSERVER_Error *put_tensor(struct wire_out *out, uint32_t number,
                                      const struct translate_tensor *tensor)
{
    int type = type_number(tensor->datatype);
    if (type == 0)
        return berr_new(TRITONSERVER_ERROR_INVALID_ARG, "tensor '%s': Caffe2 has no TYPE_%s",
                        tensor->name, TRITONSERVER_DataTypeString(tensor->datatype));
    if (strncmp(tensor->name, GRAPH_NAMES, strlen(GRAPH_NAMES)) == 0)
        return berr_new(TRITONSERVER_ERROR_INVALID_ARG,
                        "tensor '%s': names that begin with '" GRAPH_NAMES
                        "' are those of the translation: give it another",
                        tensor->name);
    size_t info = wire_begin(out, number);
    wire_put_text(out, INFO_NAME, tensor->name);
    size_t of_info = wire_begin(out, INFO_TYPE);
    size_t content = wire_begin(out, TYPE_TENSOR);
    wire_put_number(out, TENSOR_ELEMENT, type);
    size_t shape = wire_begin(out, TENSOR_SHAPE);
    for (size_t i = 0; i < tensor->rank; i++) {
        size_t dim = wire_begin(out, SHAPE_DIM);
        if (tensor->dims[i] >= 0)
            wire_put_number(out, DIM_VALUE, tensor->dims[i]);
        wire_end(out, dim);
    }
    wire_end(out, shape);
    wire_end(out, content);
    wire_end(out, of_info);
    wire_end(out, info);
    return NULL;
}

static TRITONSERVER_Error *put_inputs(struct translation *t)
{
    const struct translate_network *network = t->network;
    for (size_t i = 0; i < network->input_count; i++) {
        const struct translate_tensor *input = &network->inputs[i];
        if (!is_named(network->net->inputs, network->net->input_count, input->name))
            return berr_new(TRITONSERVER_ERROR_INVALID_ARG,
                            "the configuration has the input '%s', which is no external input of "
                            "the network",
                            input->name);
        if (find_tensor(network->inputs, i, input->name))
            return berr_new(TRITONSERVER_ERROR_INVALID_ARG,
                            "the configuration has the input '%s' twice", input->name);
        TRITONSERVER_Error *err = put_tensor(&t->graph.out, GRAPH_INPUT, input);
        if (err)
            return err;
        struct graph_value *value = graph_write(&t->graph, input->name, input->name);
        if (!value)
            return berr_no_memory();
        value->rank = input->rank <= GRAPH_MAX_RANK ? (int)input->rank : -1;
    }
    return NULL;
}

static TRITONSERVER_Error *take_inputs(struct step *step)
{
    const struct netdef_op *op = step->op;
    for (size_t i = 0; i < op->input_count; i++) {
        step->in[i] = graph_find(step->graph, op->inputs[i]);
        if (!step->in[i])
            return step_err(step,
                            "its input '%s' is computed by no operator before it, and is no input "
                            "of the configuration",
                            op->inputs[i]);
        if (!step->in[i]->name)
            return step_err(step, "its input '%s' is an output that is not translated",
                            op->inputs[i]);
    }
    return NULL;
}

static TRITONSERVER_Error *make_outputs(struct step *step)
{
    const struct netdef_op *op = step->op;
    for (size_t i = 0; i < op->output_count; i++) {
        bool is_translated = i < step->row->outputs;
        const char *name = is_translated ? graph_name(step->graph) : NULL;
        struct graph_value *value = graph_write(step->graph, op->outputs[i], name);
        if (!value)
            return berr_no_memory();
        if (is_translated)
            step->out[i] = value;
    }
    return NULL;
}

static TRITONSERVER_Error *put_operator(struct translation *t, const struct netdef_op *op)
{
    struct scratch *memory = t->graph.memory;
    struct step step = {.graph = &t->graph, .op = op, .row = operators_find(op->type)};
    step.in = scratch_array(memory, op->input_count, sizeof(void *));
    /* One element more than the operator has outputs: a function may test its next output for
     * NULL. */
    step.out = scratch_array(memory, op->output_count + 1, sizeof(void *));
    if (!step.in || !step.out)
        return berr_no_memory();
    if (!step.row)
        return step_err(&step, "operators of this type are not supported");
    TRITONSERVER_Error *err = take_inputs(&step);
    if (!err)
        err = make_outputs(&step);
    return err ? err : operators_translate(&step);
}

static TRITONSERVER_Error *put_operators(struct translation *t, const struct netdef *net)
{
    TRITONSERVER_Error *err = NULL;
    for (size_t i = 0; net && !err && i < net->op_count; i++)
        err = put_operator(t, &net->ops[i]);
    return err;
}

static TRITONSERVER_Error *put_outputs(struct translation *t)
{
    const struct translate_network *network = t->network;
    for (size_t i = 0; i < network->output_count; i++) {
        const struct translate_tensor *output = &network->outputs[i];
        const struct graph_value *value = graph_find(&t->graph, output->name);
        if (find_tensor(network->outputs, i, output->name))
            continue; /* a state of sequences that is also an output of the model */
        if (!is_named(network->net->outputs, network->net->output_count, output->name) || !value ||
            !value->name)
            return berr_new(TRITONSERVER_ERROR_INVALID_ARG,
                            "the configuration has the output '%s', which is no external output "
                            "that the network computes",
                            output->name);
        if (find_tensor(network->inputs, network->input_count, output->name))
            return berr_new(TRITONSERVER_ERROR_UNSUPPORTED,
                            "'%s' is both an input and an output, which is not supported",
                            output->name);
        graph_node(&t->graph, "Identity", value->name, output->name);
        TRITONSERVER_Error *err = put_tensor(&t->graph.out, GRAPH_OUTPUT, output);
        if (err)
            return err;
    }
    return NULL;
}

static TRITONSERVER_Error *put_graph(struct translation *t)
{
    /* The operators of the init file come before the inputs: they often write the inputs too,
     * with examples, which the real inputs must replace. */
    TRITONSERVER_Error *err = put_operators(t, t->network->init);
    if (!err)
        err = put_inputs(t);
    if (!err)
        err = put_operators(t, t->network->net);
    if (!err)
        err = put_outputs(t);
    return err;
}

TRITONSERVER_Error *translate_network(struct scratch *memory,
                                      const struct translate_network *network,
                                      struct wire_out *ret_model)
{
    struct translation t = {.network = network, .graph.memory = memory};
    struct wire_out *out = &t.graph.out;
    wire_put_number(out, MODEL_IR_VERSION, IR_VERSION);
    wire_put_text(out, MODEL_PRODUCER, "nereid");
    size_t operators = wire_begin(out, MODEL_OPERATORS);
    wire_put_number(out, OPERATORS_VERSION, OPERATOR_SET);
    wire_end(out, operators);
    size_t graph = wire_begin(out, MODEL_GRAPH);
    wire_put_text(out, GRAPH_NAME, "netdef");
    TRITONSERVER_Error *err = put_graph(&t);
    wire_end(out, graph);
    if (!err && out->failed)
        err = berr_no_memory();
    if (!err) {
        *ret_model = *out;
        *out = (struct wire_out){0};
    }
    graph_free(&t.graph);
    return err;
}
