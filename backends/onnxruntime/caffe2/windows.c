#include "windows.h"

/* Values of Caffe2's argument legacy_pad: how the margins of the image are found. */
enum { PAD_TOLD = 0, PAD_NONE = 1, PAD_SAME = 2, PAD_CAFFE = 3 };

enum { MAX_PLACES = 8 };

struct window {
    bool transposed;
    bool whole;    /* the window is the whole image */
    size_t places; /* number of dimensions without batch and channels */
    int64_t kernel[GRAPH_MAX_INTS], stride[GRAPH_MAX_INTS], dilation[GRAPH_MAX_INTS];
    int64_t pads[GRAPH_MAX_INTS], more[GRAPH_MAX_INTS];
    int64_t padding; /* a value PAD_... */
};

/* The arguments that give sizes: a list for all dimensions; or for height and width, one value
 * for all sizes, or an argument for each size. */
struct size_arguments {
    const char *several, *one, *each[4];
    size_t sides; /* number of sizes for each dimension */
    int64_t absent;
};

static const struct size_arguments kernels = {"kernels", "kernel", {"kernel_h", "kernel_w"}, 1, 0};
static const struct size_arguments strides = {"strides", "stride", {"stride_h", "stride_w"}, 1, 1};
static const struct size_arguments dilations = {
    "dilations", "dilation", {"dilation_h", "dilation_w"}, 1, 1};
static const struct size_arguments adjs = {"adjs", "adj", {"adj_h", "adj_w"}, 1, 0};
static const struct size_arguments margins = {
    "pads", "pad", {"pad_t", "pad_l", "pad_b", "pad_r"}, 2, 0};

/* Read sizes. As in Caffe2, arguments for each size count only if all of them are there.
 * ret_count  the number of sizes that the operator gives; 0 = none */
static TRITONSERVER_Error *read_sizes(const struct step *step, const struct window *window,
                                      const struct size_arguments *arguments, int64_t *ret_sizes,
                                      size_t *ret_count)
{
    const struct netdef_op *op = step->op;
    size_t wanted = arguments->sides * window->places, single = 2 * arguments->sides;
    TRITONSERVER_Error *err = step_ints(step, arguments->several, ret_sizes, ret_count);
    bool one = netdef_has(op, arguments->one), each = true;
    for (size_t i = 0; i < single; i++)
        each = each && netdef_has(op, arguments->each[i]);
    if (!err && *ret_count && (one || each))
        err = step_err(step, "both '%s' and '%s' are given", arguments->several,
                       one ? arguments->one : arguments->each[0]);
    if (err)
        return err;
    for (size_t i = 0; i < single && (one || each); i++)
        ret_sizes[(*ret_count)++] = netdef_int(op, one ? arguments->one : arguments->each[i], 0);
    for (size_t i = 0; i < wanted && *ret_count == 0; i++)
        ret_sizes[i] = arguments->absent;
    if (*ret_count && *ret_count != wanted && !window->whole)
        return step_err(step, "%s has %zu values for images of %zu dimensions", arguments->several,
                        *ret_count, window->places);
    return NULL;
}

static TRITONSERVER_Error *read_pads(const struct step *step, struct window *window)
{
    size_t count;
    TRITONSERVER_Error *err = read_sizes(step, window, &margins, window->pads, &count);
    if (err)
        return err;
    window->padding = netdef_int(step->op, "legacy_pad", PAD_TOLD);
    if (window->padding < PAD_TOLD || window->padding > PAD_CAFFE)
        return step_err(step, "legacy_pad is %lld", (long long)window->padding);
    if (count && (window->padding == PAD_NONE || window->padding == PAD_SAME))
        return step_err(step, "both pads and a legacy_pad that finds them are given");
    /* Caffe2 handles both alike here. */
    if (window->transposed && window->padding == PAD_SAME)
        window->padding = PAD_NONE;
    /* Caffe has no margins of their own behind the image. */
    for (size_t i = 0; i < window->places && window->padding == PAD_CAFFE; i++)
        window->pads[window->places + i] = window->pads[i];
    return NULL;
}

/* A window that is the whole image cannot be moved. Its kernel is passed over. */
static TRITONSERVER_Error *check_whole_image(const struct step *step, const struct window *window)
{
    for (size_t i = 0; i < window->places; i++)
        if (window->stride[i] > 1 || window->dilation[i] > 1 || window->pads[i] ||
            window->pads[window->places + i])
            return step_err(step, "global_pooling takes no stride, dilation or margins");
    return NULL;
}

/* Checks that all operators with windows share. */
static TRITONSERVER_Error *check_window(const struct step *step, const struct window *window)
{
    for (size_t i = 0; i < window->places; i++) {
        if (window->kernel[i] < 1 || window->stride[i] < 1 || window->dilation[i] < 1)
            return step_err(step, "kernel, stride or dilation is less than 1");
        if (window->padding == PAD_SAME && window->dilation[i] > 1)
            return step_err(step, "legacy_pad SAME is not there with dilation");
        /* Such a Caffe2 window begins inside the image or ends beyond it; ONNX cannot express
         * that. */
        if ((window->padding == PAD_SAME || window->padding == PAD_CAFFE) &&
            window->stride[i] > window->kernel[i])
            return step_err(step, "legacy_pad with a stride above the kernel is not supported");
    }
    return NULL;
}

static TRITONSERVER_Error *read_window(const struct step *step, const struct step_image *image,
                                       struct window *window)
{
    size_t count;
    window->places = (size_t)image->rank - 2;
    if (window->places > MAX_PLACES)
        return step_err(step, "images of %zu dimensions are not supported", window->places);
    TRITONSERVER_Error *err = read_sizes(step, window, &kernels, window->kernel, &count);
    if (!err)
        err = read_sizes(step, window, &strides, window->stride, &count);
    if (!err)
        err = read_sizes(step, window, &dilations, window->dilation, &count);
    if (!err)
        err = read_sizes(step, window, &adjs, window->more, &count);
    if (!err)
        err = read_pads(step, window);
    if (err)
        return err;
    return window->whole ? check_whole_image(step, window) : check_window(step, window);
}

static void put_window(struct graph *graph, const struct window *window)
{
    graph_ints(graph, "kernel_shape", window->kernel, window->places);
    graph_ints(graph, "strides", window->stride, window->places);
    if (window->padding == PAD_SAME)
        graph_text(graph, "auto_pad", "SAME_UPPER");
    else
        graph_ints(graph, "pads", window->pads, 2 * window->places);
}

static void end_window(struct step *step, const struct step_image *image, size_t node)
{
    graph_end(step->graph, node);
    step_end_image(step, image);
}

/* Translate Conv and ConvTranspose (transposed). */
static TRITONSERVER_Error *convolve(struct step *step, bool transposed)
{
    struct graph *graph = step->graph;
    struct window window = {.transposed = transposed};
    struct step_image image;
    TRITONSERVER_Error *err = step_begin_image(step, 3, &image);
    if (!err)
        err = read_window(step, &image, &window);
    if (!err && window.padding == PAD_CAFFE)
        err = step_err(step, "legacy_pad %d is for pooling", PAD_CAFFE);
    if (err)
        return err;
    const char *inputs[4] = {image.input, step_image_order(step, &image, step->in[1]->name)};
    if (step->op->input_count > 2)
        inputs[2] = step->in[2]->name;
    size_t node = graph_begin(graph, step->row->onnx, inputs, image.output);
    put_window(graph, &window);
    graph_int(graph, "group", netdef_int(step->op, "group", 1));
    if (transposed)
        graph_ints(graph, "output_padding", window.more, window.places);
    else
        graph_ints(graph, "dilations", window.dilation, window.places);
    end_window(step, &image, node);
    return NULL;
}

TRITONSERVER_Error *windows_conv(struct step *step)
{
    return convolve(step, false);
}

TRITONSERVER_Error *windows_conv_transpose(struct step *step)
{
    return convolve(step, true);
}

static TRITONSERVER_Error *pool(struct step *step, const char *whole)
{
    struct window window = {.whole = netdef_int(step->op, "global_pooling", 0)};
    struct step_image image;
    TRITONSERVER_Error *err = step_begin_image(step, 3, &image);
    if (!err)
        err = read_window(step, &image, &window);
    if (err)
        return err;
    if (window.whole) {
        graph_node(step->graph, whole, image.input, image.output);
        step_end_image(step, &image);
        return NULL;
    }
    int64_t count_margin = netdef_int(step->op, "count_include_pad", 0);
    for (size_t i = 0; !err && i < window.places; i++)
        if (window.dilation[i] != 1)
            err = step_err(step, "pooling with dilation is not there");
    if (!err && count_margin && window.padding == PAD_CAFFE)
        err = step_err(step, "count_include_pad is not supported with legacy_pad %d", PAD_CAFFE);
    if (err)
        return err;
    size_t node = graph_begin(step->graph, step->row->onnx, (const char *[]){image.input, NULL},
                              image.output);
    put_window(step->graph, &window);
    graph_int(step->graph, "ceil_mode", window.padding == PAD_CAFFE);
    if (count_margin)
        graph_int(step->graph, "count_include_pad", 1);
    end_window(step, &image, node);
    return NULL;
}

TRITONSERVER_Error *windows_max_pool(struct step *step)
{
    return pool(step, "GlobalMaxPool");
}

TRITONSERVER_Error *windows_average_pool(struct step *step)
{
    return pool(step, "GlobalAveragePool");
}
