#include "operators.h"

#include <stdint.h>
#include <string.h>

#include "arithmetic.h"
#include "fillers.h"
#include "shapes.h"
#include "windows.h"

#define WINDOW                                                                                 \
    " kernel kernels kernel_h kernel_w stride strides stride_h stride_w pad pads pad_t pad_l " \
    "pad_b "                                                                                   \
    "pad_r legacy_pad order "
#define CONV WINDOW "dilation dilations dilation_h dilation_w group "
#define POOL CONV "global_pooling "

enum { ANY = GRAPH_MAX_INTS };

/* The operators that can be translated, and their arguments. Arguments that change only how
 * Caffe2 computes are in `harmless` below. */
static const struct step_row rows[] = {
    {"Conv", windows_conv, "Conv", CONV, 2, 3, 1},
    {"Conv1D", windows_conv, "Conv", CONV, 2, 3, 1},
    {"Conv2D", windows_conv, "Conv", CONV, 2, 3, 1},
    {"Conv3D", windows_conv, "Conv", CONV, 2, 3, 1},
    {"ConvTranspose", windows_conv_transpose, "ConvTranspose", WINDOW "group adj adjs adj_h adj_w ",
     2, 3, 1},
    {"MaxPool", windows_max_pool, "MaxPool", POOL, 1, 1, 1},
    {"MaxPool1D", windows_max_pool, "MaxPool", POOL, 1, 1, 1},
    {"MaxPool2D", windows_max_pool, "MaxPool", POOL, 1, 1, 1},
    {"MaxPool3D", windows_max_pool, "MaxPool", POOL, 1, 1, 1},
    {"AveragePool", windows_average_pool, "AveragePool", POOL "count_include_pad ", 1, 1, 1},
    {"AveragePool1D", windows_average_pool, "AveragePool", POOL "count_include_pad ", 1, 1, 1},
    {"AveragePool2D", windows_average_pool, "AveragePool", POOL "count_include_pad ", 1, 1, 1},
    {"AveragePool3D", windows_average_pool, "AveragePool", POOL "count_include_pad ", 1, 1, 1},
    {"FC", arithmetic_fc, NULL, " axis axis_w ", 3, 3, 1},
    {"FCTransposed", arithmetic_fc, NULL, " axis axis_w ", 3, 3, 1},
    {"MatMul", arithmetic_matmul, NULL, " axis_a axis_b trans_a trans_b ", 2, 2, 1},
    {"BatchMatMul", arithmetic_batch_matmul, NULL, " trans_a trans_b broadcast ", 2, 2, 1},
    {"Relu", arithmetic_same, "Relu", " order ", 1, 1, 1},
    {"PRelu", arithmetic_prelu, NULL, " order ", 2, 2, 1},
    {"LeakyRelu", arithmetic_alpha, "LeakyRelu", " alpha ", 1, 1, 1},
    {"Elu", arithmetic_alpha, "Elu", " alpha ", 1, 1, 1},
    {"Selu", arithmetic_alpha, "Selu", " alpha scale ", 1, 1, 1},
    {"Sigmoid", arithmetic_same, "Sigmoid", "", 1, 1, 1},
    {"Tanh", arithmetic_same, "Tanh", "", 1, 1, 1},
    {"Softplus", arithmetic_same, "Softplus", "", 1, 1, 1},
    {"Softsign", arithmetic_same, "Softsign", "", 1, 1, 1},
    {"Exp", arithmetic_same, "Exp", "", 1, 1, 1},
    {"Log", arithmetic_same, "Log", "", 1, 1, 1},
    {"Sqrt", arithmetic_same, "Sqrt", "", 1, 1, 1},
    {"Abs", arithmetic_same, "Abs", "", 1, 1, 1},
    {"Negative", arithmetic_same, "Neg", "", 1, 1, 1},
    {"Floor", arithmetic_same, "Floor", "", 1, 1, 1},
    {"Ceil", arithmetic_same, "Ceil", "", 1, 1, 1},
    {"Softmax", arithmetic_softmax, NULL, " axis ", 1, 1, 1},
    {"Clip", arithmetic_clip, NULL, " min max ", 1, 1, 1},
    {"Add", arithmetic_binary, "Add", " broadcast axis ", 2, 2, 1},
    {"Sub", arithmetic_binary, "Sub", " broadcast axis ", 2, 2, 1},
    {"Mul", arithmetic_binary, "Mul", " broadcast axis ", 2, 2, 1},
    {"Div", arithmetic_binary, "Div", " broadcast axis ", 2, 2, 1},
    {"Sum", arithmetic_sum, "Identity", "", 1, ANY, 1},
    {"SpatialBN", arithmetic_spatial_bn, NULL, " is_test epsilon momentum order ", 5, 5, 1},
    {"LRN", arithmetic_lrn, NULL, " size alpha beta bias order ", 1, 1, 1},
    {"Dropout", arithmetic_dropout, "Identity", " is_test ratio ", 1, 1, 1},
    {"Copy", arithmetic_same, "Identity", "", 1, 1, 1},
    {"StopGradient", arithmetic_same, "Identity", "", 1, 1, 1},
    {"Concat", shapes_concat, NULL, " axis order add_axis ", 1, ANY, 1},
    {"Split", shapes_split, NULL, " axis order split ", 1, 2, SIZE_MAX},
    {"Reshape", shapes_reshape, NULL, " shape ", 1, 2, 2},
    {"Transpose", shapes_transpose, NULL, " axes ", 1, 1, 1},
    {"NCHW2NHWC", shapes_to_last, NULL, "", 1, 1, 1},
    {"NHWC2NCHW", shapes_to_first, NULL, "", 1, 1, 1},
    {"Flatten", shapes_flatten, NULL, " axis ", 1, 1, 1},
    {"FlattenToVec", shapes_to_vector, NULL, "", 1, 1, 1},
    {"Squeeze", shapes_squeeze, "Squeeze", " dims ", 1, 1, 1},
    {"ExpandDims", shapes_expand, "Unsqueeze", " dims ", 1, 1, 1},
    {"Slice", shapes_slice, NULL, " starts ends ", 1, 3, 1},
    {"Gather", shapes_gather, NULL, " axis match_outer ", 2, 2, 1},
    {"ResizeNearest", shapes_resize, NULL, " width_scale height_scale order ", 1, 1, 1},
    {"Cast", shapes_cast, NULL, " to from_type ", 1, 1, 1},
    {"GivenTensorFill", fillers_given, "FLOAT", " shape values dtype ", 0, 0, 1},
    {"GivenTensorDoubleFill", fillers_given, "DOUBLE", " shape values ", 0, 0, 1},
    {"GivenTensorBoolFill", fillers_given, "BOOL", " shape values ", 0, 0, 1},
    {"GivenTensorInt16Fill", fillers_given, "INT16", " shape values ", 0, 0, 1},
    {"GivenTensorIntFill", fillers_given, "INT32", " shape values ", 0, 0, 1},
    {"GivenTensorInt64Fill", fillers_given, "INT64", " shape values ", 0, 0, 1},
    {"GivenTensorByteStringToUInt8Fill", fillers_bytes, NULL, " shape values ", 0, 0, 1},
    {"ConstantFill", fillers_constant, NULL, " shape value dtype input_as_shape extra_shape ", 0, 1,
     1},
};

/* Arguments that any operator may have, and that do not change its result. */
static const char harmless[] =
    " engine cudnn_exhaustive_search exhaustive_search deterministic ws_nbytes_limit shared_buffer "
    "use_cudnn init_params net_position float16_compute no_bias ";

/* Arguments that are one value, by kind, with a space on both sides of each. Lists are not in
 * here, nor are arguments whose kind depends on others. */
static const char *const single[] = {
    [NETDEF_REAL] = " alpha beta bias epsilon height_scale max min momentum ratio scale "
                    "width_scale ",
    [NETDEF_WHOLE] = " add_axis adj adj_h adj_w axis axis_a axis_b axis_w broadcast "
                     "count_include_pad dilation dilation_h dilation_w global_pooling group "
                     "input_as_shape is_test kernel kernel_h kernel_w legacy_pad match_outer pad "
                     "pad_b pad_l pad_r pad_t size stride stride_h stride_w trans_a trans_b ",
    [NETDEF_TEXT] = " order ",
};

const struct step_row *operators_find(const char *type)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (strcmp(rows[i].type, type) == 0)
            return &rows[i];
    return NULL;
}

/* True if the name is in a list whose names have a space on both sides. */
static bool is_listed(const char *list, const char *name)
{
    size_t size = strlen(name);
    for (const char *at = list; size && (at = strstr(at, name)); at++)
        if (at > list && at[-1] == ' ' && at[size] == ' ')
            return true;
    return false;
}

static TRITONSERVER_Error *operators_check_argument(const struct step *step, const char *name)
{
    if (!is_listed(step->row->args, name) && !is_listed(harmless, name))
        return step_err(step, "the argument '%s' is not supported", name);
    for (int kind = NETDEF_REAL; kind <= NETDEF_TEXT; kind++)
        if (is_listed(single[kind], name))
            return step_kind(step, name, (enum netdef_kind)kind);
    return NULL;
}

static TRITONSERVER_Error *check_operator(const struct step *step)
{
    const struct netdef_op *op = step->op;
    const struct step_row *row = step->row;
    if (op->input_count < row->least || op->input_count > row->most)
        return step_err(step, "it has %zu inputs, %zu to %zu are supported", op->input_count,
                        row->least, row->most);
    if (op->output_count == 0)
        return step_err(step, "it has no output");
    TRITONSERVER_Error *err = NULL;
    for (size_t i = 0; i < op->arg_count && !err; i++)
        err = operators_check_argument(step, op->args[i].name);
    return err;
}

TRITONSERVER_Error *operators_translate(struct step *step)
{
    TRITONSERVER_Error *err = check_operator(step);
    return err ? err : step->row->translate(step);
}
