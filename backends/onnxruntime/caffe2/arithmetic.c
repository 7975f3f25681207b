#include "arithmetic.h"

#include <float.h>
#include <string.h>

/* Translate an operator that becomes one node with one input and no attributes. */
TRITONSERVER_Error *arithmetic_same(struct step *step)
{
    graph_node(step->graph, step->row->onnx, step->in[0]->name, step->out[0]->name);
    step->out[0]->rank = step->in[0]->rank;
    step->out[0]->elements = step->in[0]->elements;
    return NULL;
}

/* Translate Elu, LeakyRelu and Selu. Caffe2's defaults of the arguments are not ONNX's defaults
 * of the attributes, so the attributes are always written. */
TRITONSERVER_Error *arithmetic_alpha(struct step *step)
{
    bool leaky = strcmp(step->row->onnx, "LeakyRelu") == 0;
    bool selu = strcmp(step->row->onnx, "Selu") == 0;
    float alpha = leaky ? 0.01F : selu ? 1.6732632F : 1.0F;
    size_t node = graph_begin(step->graph, step->row->onnx,
                              (const char *[]){step->in[0]->name, NULL}, step->out[0]->name);
    graph_float(step->graph, "alpha", netdef_float(step->op, "alpha", alpha));
    if (selu)
        graph_float(step->graph, "gamma", netdef_float(step->op, "scale", 1.0507010F));
    graph_end(step->graph, node);
    step->out[0]->rank = step->in[0]->rank;
    return NULL;
}

static void put_two(struct step *step, const char *type, const char *left, const char *right,
                    const char *output)
{
    graph_end(step->graph,
              graph_begin(step->graph, type, (const char *[]){left, right, NULL}, output));
}

/* Broadcast the right tensor over the left one: its dimensions match the left one's last
 * dimensions, or those from the argument `axis` on. */
static TRITONSERVER_Error *align_right(struct step *step, const char **right)
{
    int left_rank, right_rank;
    int64_t axis, axes[GRAPH_MAX_RANK];
    TRITONSERVER_Error *err = step_rank(step, 0, 0, &left_rank);
    if (!err)
        err = step_rank(step, 1, 0, &right_rank);
    if (!err && right_rank > left_rank)
        err = step_err(step, "'%s' has more dimensions than '%s'", step->in[1]->blob,
                       step->in[0]->blob);
    if (err || netdef_int(step->op, "axis", -1) == -1)
        return err;
    err = step_axis(step, "axis", -1, left_rank, &axis);
    if (err)
        return err;
    int behind = left_rank - right_rank - (int)axis;
    if (behind < 0)
        return step_err(step, "'%s' has too many dimensions for axis %lld", step->in[1]->blob,
                        (long long)axis);
    for (int i = 0; i < behind; i++)
        axes[i] = right_rank + i;
    if (behind)
        *right = graph_axes(step->graph, "Unsqueeze", *right, axes, (size_t)behind, NULL);
    return NULL;
}

TRITONSERVER_Error *arithmetic_binary(struct step *step)
{
    const char *right = step->in[1]->name;
    int left_rank = step->in[0]->rank, right_rank = step->in[1]->rank;
    TRITONSERVER_Error *err = NULL;
    if (netdef_int(step->op, "broadcast", 0))
        err = align_right(step, &right);
    else if (netdef_has(step->op, "axis") && netdef_int(step->op, "axis", -1) != -1)
        err = step_err(step, "axis is given without broadcast");
    if (err)
        return err;
    put_two(step, step->row->onnx, step->in[0]->name, right, step->out[0]->name);
    if (left_rank >= 0 && right_rank >= 0)
        step->out[0]->rank = left_rank > right_rank ? left_rank : right_rank;
    return NULL;
}

TRITONSERVER_Error *arithmetic_sum(struct step *step)
{
    size_t count = step->op->input_count;
    const char *sum = step->in[0]->name;
    if (count == 1)
        return arithmetic_same(step);
    for (size_t i = 1; i < count; i++) {
        const struct graph_value *first = step->in[0], *other = step->in[i];
        if (first->rank >= 0 && other->rank >= 0 && first->rank != other->rank)
            return step_err(step, "'%s' has %d dimensions, '%s' has %d", other->blob, other->rank,
                            first->blob, first->rank);
        const char *next = i + 1 < count ? graph_name(step->graph) : step->out[0]->name;
        put_two(step, "Add", sum, step->in[i]->name, next);
        sum = next;
    }
    step->out[0]->rank = step->in[0]->rank;
    return NULL;
}

/* Softmax treats all dimensions from `axis` on as one. The operator set that translate.c names
 * does the same; later ones do not. */
TRITONSERVER_Error *arithmetic_softmax(struct step *step)
{
    int rank;
    int64_t axis;
    TRITONSERVER_Error *err = step_rank(step, 0, 1, &rank);
    if (!err)
        err = step_axis(step, "axis", 1, rank, &axis);
    if (err)
        return err;
    graph_axis(step->graph, "Softmax", step->in[0]->name, axis, step->out[0]->name);
    step->out[0]->rank = rank;
    return NULL;
}

static const char *float_constant(struct step *step, float value)
{
    const char *name = graph_name(step->graph);
    void *space = graph_constant(step->graph, name, GRAPH_FLOAT, NULL, 0, sizeof value);
    if (space)
        memcpy(space, &value, sizeof value);
    return name;
}

TRITONSERVER_Error *arithmetic_clip(struct step *step)
{
    const char *least = float_constant(step, netdef_float(step->op, "min", -FLT_MAX));
    const char *most = float_constant(step, netdef_float(step->op, "max", FLT_MAX));
    graph_end(step->graph, graph_begin(step->graph, "Clip",
                                       (const char *[]){step->in[0]->name, least, most, NULL},
                                       step->out[0]->name));
    step->out[0]->rank = step->in[0]->rank;
    return NULL;
}

/* The second input has one slope for each channel, or one slope for all channels. */
TRITONSERVER_Error *arithmetic_prelu(struct step *step)
{
    int rank;
    int64_t axes[GRAPH_MAX_RANK];
    const char *slope = step->in[1]->name;
    TRITONSERVER_Error *err = step_rank(step, 0, 1, &rank);
    if (err)
        return err;
    for (int i = 0; i < rank - 2; i++)
        axes[i] = i + 1;
    if (rank > 2 && !netdef_is(step->op, "order", "NHWC", false))
        slope = graph_axes(step->graph, "Unsqueeze", slope, axes, (size_t)rank - 2, NULL);
    put_two(step, "PRelu", step->in[0]->name, slope, step->out[0]->name);
    step->out[0]->rank = rank;
    return NULL;
}

/* Flatten a tensor to a matrix: the dimensions before the argument's axis become the rows, those
 * from the axis on become the columns. */
static TRITONSERVER_Error *as_matrix(struct step *step, size_t input, const char *axis_name,
                                     int64_t *ret_axis, const char **ret_name)
{
    int rank;
    TRITONSERVER_Error *err = step_rank(step, input, 1, &rank);
    if (!err)
        err = step_axis(step, axis_name, 1, rank, ret_axis);
    if (err)
        return err;
    *ret_name = step->in[input]->name;
    if (rank != 2 || *ret_axis != 1)
        *ret_name = graph_axis(step->graph, "Flatten", *ret_name, *ret_axis, NULL);
    return NULL;
}

/* The same for both factors of a product. The axis of the first one is returned. */
static TRITONSERVER_Error *as_matrices(struct step *step, const char *first_axis,
                                       const char *second_axis, int64_t *ret_axis,
                                       const char **ret_names)
{
    int64_t other;
    TRITONSERVER_Error *err = as_matrix(step, 0, first_axis, ret_axis, &ret_names[0]);
    return err ? err : as_matrix(step, 1, second_axis, &other, &ret_names[1]);
}

/* Reshape the product of two matrices: it gets the first input's dimensions before `axis`, then
 * one dimension for the product's columns. */
static void give_back_dims(struct step *step, const char *product, int64_t axis)
{
    struct graph *graph = step->graph;
    const int64_t from = 0, open = -1;
    const char *first = graph_list(graph, &from, 1), *last = graph_list(graph, &axis, 1);
    const char *rest = graph_list(graph, &open, 1);
    const char *shape = graph_node(graph, "Shape", step->in[0]->name, NULL);
    const char *kept = graph_name(graph), *wanted = graph_name(graph);
    graph_end(graph, graph_begin(graph, "Slice", (const char *[]){shape, first, last, NULL}, kept));
    size_t node = graph_begin(graph, "Concat", (const char *[]){kept, rest, NULL}, wanted);
    graph_int(graph, "axis", 0);
    graph_end(graph, node);
    put_two(step, "Reshape", product, wanted, step->out[0]->name);
}

TRITONSERVER_Error *arithmetic_fc(struct step *step)
{
    int64_t axis;
    const char *inputs[4] = {NULL};
    TRITONSERVER_Error *err = as_matrices(step, "axis", "axis_w", &axis, inputs);
    const struct graph_value *bias = step->in[2];
    if (!err && bias->rank >= 0 && bias->rank != 1)
        err = step_err(step, "'%s' has %d dimensions, 1 is needed", bias->blob, bias->rank);
    if (err)
        return err;
    inputs[2] = step->in[2]->name;
    const char *product = axis == 1 ? step->out[0]->name : graph_name(step->graph);
    size_t node = graph_begin(step->graph, "Gemm", inputs, product);
    graph_int(step->graph, "transB", strcmp(step->row->type, "FC") == 0);
    graph_end(step->graph, node);
    if (axis != 1)
        give_back_dims(step, product, axis);
    step->out[0]->rank = (int)axis + 1;
    return NULL;
}

TRITONSERVER_Error *arithmetic_matmul(struct step *step)
{
    int64_t axis;
    const char *inputs[3] = {NULL};
    TRITONSERVER_Error *err = as_matrices(step, "axis_a", "axis_b", &axis, inputs);
    if (err)
        return err;
    size_t node = graph_begin(step->graph, "Gemm", inputs, step->out[0]->name);
    graph_int(step->graph, "transA", netdef_int(step->op, "trans_a", 0) != 0);
    graph_int(step->graph, "transB", netdef_int(step->op, "trans_b", 0) != 0);
    graph_end(step->graph, node);
    step->out[0]->rank = 2;
    return NULL;
}

static TRITONSERVER_Error *turned(struct step *step, size_t input, const char *argument, int *rank,
                                  const char **ret_name)
{
    int64_t axes[GRAPH_MAX_RANK];
    TRITONSERVER_Error *err = step_rank(step, input, 2, rank);
    if (err)
        return err;
    *ret_name = step->in[input]->name;
    if (!netdef_int(step->op, argument, 0))
        return NULL;
    for (int i = 0; i < *rank; i++)
        axes[i] = i;
    axes[*rank - 2] = *rank - 1;
    axes[*rank - 1] = *rank - 2;
    *ret_name = graph_permute(step->graph, *ret_name, axes, (size_t)*rank, NULL);
    return NULL;
}

TRITONSERVER_Error *arithmetic_batch_matmul(struct step *step)
{
    int left_rank, right_rank;
    const char *left, *right;
    TRITONSERVER_Error *err = turned(step, 0, "trans_a", &left_rank, &left);
    if (!err)
        err = turned(step, 1, "trans_b", &right_rank, &right);
    if (err)
        return err;
    put_two(step, "MatMul", left, right, step->out[0]->name);
    step->out[0]->rank = left_rank > right_rank ? left_rank : right_rank;
    return NULL;
}

/* Refuse an operator that is set up for training: only inference is translated. */
static TRITONSERVER_Error *check_is_test(const struct step *step)
{
    if (netdef_int(step->op, "is_test", 0))
        return NULL;
    return step_err(step, "it is set up for training: the argument is_test has to be 1");
}

TRITONSERVER_Error *arithmetic_spatial_bn(struct step *step)
{
    struct step_image image;
    TRITONSERVER_Error *err = check_is_test(step);
    if (!err)
        err = step_begin_image(step, 2, &image);
    if (err)
        return err;
    size_t node = graph_begin(step->graph, "BatchNormalization",
                              (const char *[]){image.input, step->in[1]->name, step->in[2]->name,
                                               step->in[3]->name, step->in[4]->name, NULL},
                              image.output);
    graph_float(step->graph, "epsilon", netdef_float(step->op, "epsilon", 1e-5F));
    graph_end(step->graph, node);
    step_end_image(step, &image);
    return NULL;
}

TRITONSERVER_Error *arithmetic_lrn(struct step *step)
{
    struct step_image image;
    int64_t size = netdef_int(step->op, "size", 0);
    if (size < 1 || size % 2 == 0)
        return step_err(step, "size is %lld, an odd number is needed", (long long)size);
    TRITONSERVER_Error *err = step_begin_image(step, 4, &image);
    if (err)
        return err;
    size_t node =
        graph_begin(step->graph, "LRN", (const char *[]){image.input, NULL}, image.output);
    graph_int(step->graph, "size", size);
    graph_float(step->graph, "alpha", netdef_float(step->op, "alpha", 0));
    graph_float(step->graph, "beta", netdef_float(step->op, "beta", 0));
    graph_float(step->graph, "bias", netdef_float(step->op, "bias", 1));
    graph_end(step->graph, node);
    step_end_image(step, &image);
    return NULL;
}

TRITONSERVER_Error *arithmetic_dropout(struct step *step)
{
    TRITONSERVER_Error *err = check_is_test(step);
    return err ? err : arithmetic_same(step);
}
