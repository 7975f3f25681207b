#include "windows.h"

/* Values of Caffe2's argument legacy_pad: how the margins of the image are found. */
enum { PAD_TOLD = 0, PAD_NONE = 1, PAD_SAME = 2, PAD_CAFFE = 3 };

enum { MAX_PLACES = 8 };

struct window {
    size_t places; /* number of dimensions without batch and channels */
    int64_t kernel[GRAPH_MAX_INTS], stride[GRAPH_MAX_INTS], dilation[GRAPH_MAX_INTS];
    int64_t pads[GRAPH_MAX_INTS], more[GRAPH_MAX_INTS];
    int64_t padding; /* a value PAD_... */
};

/* Read sizes, one for each dimension: from the list `several`; or for height and width, from
 * `one` (both have that value) or from `first` and `second`. */
static TRITONSERVER_Error *read_sizes(const struct step *step, size_t places, const char *several,
                                      const char *one, const char *first, const char *second,
                                      int64_t absent, int64_t *ret_sizes)
{
    const struct netdef_op *op = step->op;
    size_t count = 0;
    TRITONSERVER_Error *err = step_ints(step, several, ret_sizes, &count);
    if (err)
        return err;
    if (netdef_has(op, one) || (netdef_has(op, first) && netdef_has(op, second))) {
        count = 2;
        ret_sizes[0] = netdef_int(op, one, netdef_int(op, first, absent));
        ret_sizes[1] = netdef_int(op, one, netdef_int(op, second, absent));
    }
    for (; count == 0 && places > 0; places--)
        ret_sizes[places - 1] = absent;
    if (count && count != places)
        return step_err(step, "%s has %zu values for images of %zu dimensions", several, count,
                        places);
    return NULL;
}

static TRITONSERVER_Error *read_pads(const struct step *step, struct window *window)
{
    static const char *const sides[] = {"pad_t", "pad_l", "pad_b", "pad_r"};
    const struct netdef_op *op = step->op;
    size_t count = 0;
    TRITONSERVER_Error *err = step_ints(step, "pads", window->pads, &count);
    if (err)
        return err;
    for (size_t i = 0; i < 4; i++)
        if (netdef_has(op, "pad") || netdef_has(op, sides[i])) {
            window->pads[i] = netdef_int(op, "pad", netdef_int(op, sides[i], 0));
            count = 4;
        }
    if (count && count != 2 * window->places)
        return step_err(step, "pads has %zu values for images of %zu dimensions", count,
                        window->places);
    window->padding = netdef_int(op, "legacy_pad", PAD_TOLD);
    if (window->padding < PAD_TOLD || window->padding > PAD_CAFFE)
        return step_err(step, "legacy_pad is %lld", (long long)window->padding);
    if (count && (window->padding == PAD_NONE || window->padding == PAD_SAME))
        return step_err(step, "both pads and a legacy_pad that finds them are given");
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
    window->places = (size_t)image->rank - 2;
    if (window->places > MAX_PLACES)
        return step_err(step, "images of %zu dimensions are not supported", window->places);
    TRITONSERVER_Error *err = read_sizes(step, window->places, "kernels", "kernel", "kernel_h",
                                         "kernel_w", 0, window->kernel);
    if (!err)
        err = read_sizes(step, window->places, "strides", "stride", "stride_h", "stride_w", 1,
                         window->stride);
    if (!err)
        err = read_sizes(step, window->places, "dilations", "dilation", "dilation_h", "dilation_w",
                         1, window->dilation);
    if (!err)
        err = read_sizes(step, window->places, "adjs", "adj", "adj_h", "adj_w", 0, window->more);
    if (!err)
        err = read_pads(step, window);
    return err ? err : check_window(step, window);
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
    struct window window = {0};
    struct step_image image;
    TRITONSERVER_Error *err = step_begin_image(step, 3, &image);
    if (!err)
        err = read_window(step, &image, &window);
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
    if (netdef_int(step->op, "legacy_pad", PAD_TOLD) == PAD_CAFFE)
        return step_err(step, "legacy_pad %d is for pooling", PAD_CAFFE);
    return convolve(step, false);
}

TRITONSERVER_Error *windows_conv_transpose(struct step *step)
{
    return convolve(step, true);
}

static TRITONSERVER_Error *pool(struct step *step, const char *whole)
{
    struct window window = {0};
    struct step_image image;
    TRITONSERVER_Error *err = step_begin_image(step, 3, &image);
    if (err)
        return err;
    if (netdef_int(step->op, "global_pooling", 0)) {
        graph_node(step->graph, whole, image.input, image.output);
        step_end_image(step, &image);
        return NULL;
    }
    int64_t count_margin = netdef_int(step->op, "count_include_pad", 0);
    err = read_window(step, &image, &window);
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
