#include "shapes.h"

#include <string.h>

#include "fillers.h"

/* The axis of Concat and Split: the argument `axis`; without it, the dimension of the channels. */
static TRITONSERVER_Error *channel_axis(const struct step *step, int dims, int64_t *ret_axis)
{
    int64_t channels = netdef_is(step->op, "order", "NHWC", false) ? 3 : 1;
    return step_axis(step, "axis", channels, dims, ret_axis);
}

TRITONSERVER_Error *shapes_concat(struct step *step)
{
    struct graph *graph = step->graph;
    bool adds = netdef_int(step->op, "add_axis", 0) != 0;
    size_t count = step->op->input_count;
    int rank;
    int64_t axis;
    const char **parts = scratch_array(graph->memory, count + 1, sizeof *parts);
    TRITONSERVER_Error *err = step_rank(step, 0, 0, &rank);
    if (!err)
        err = channel_axis(step, rank + adds, &axis);
    if (!err && !parts)
        err = step_err(step, "there is no memory");
    if (err)
        return err;
    for (size_t i = 0; i < count; i++)
        parts[i] = adds ? graph_axes(graph, "Unsqueeze", step->in[i]->name, &axis, 1, NULL)
                        : step->in[i]->name;
    size_t node = graph_begin(graph, "Concat", parts, step->out[0]->name);
    graph_int(graph, "axis", axis);
    graph_end(graph, node);
    step->out[0]->rank = rank + adds;
    return NULL;
}

/* Read a list of integers: from an input if the operator has it (then it must be a known
 * constant), else from an argument. */
static TRITONSERVER_Error *told_ints(const struct step *step, const char *name, size_t input,
                                     int64_t *ret_values, size_t *ret_count)
{
    TRITONSERVER_Error *err = step_ints(step, name, ret_values, ret_count);
    if (err || step->op->input_count <= input)
        return err;
    const struct graph_value *value = step->in[input];
    if (!value->ints)
        return step_err(step, "'%s' has to be a constant of at most %d elements", value->blob,
                        GRAPH_MAX_INTS);
    *ret_count = (size_t)value->elements;
    memcpy(ret_values, value->ints, *ret_count * sizeof *ret_values);
    return NULL;
}

TRITONSERVER_Error *shapes_split(struct step *step)
{
    struct graph *graph = step->graph;
    int rank;
    int64_t axis, sizes[GRAPH_MAX_INTS];
    size_t count = 0, outputs = step->op->output_count;
    TRITONSERVER_Error *err = step_rank(step, 0, 1, &rank);
    if (!err)
        err = channel_axis(step, rank, &axis);
    if (!err)
        err = told_ints(step, "split", 1, sizes, &count);
    if (!err && count && count != outputs)
        err = step_err(step, "split has %zu values for %zu outputs", count, outputs);
    if (err)
        return err;
    size_t node =
        graph_begin(graph, "Split", (const char *[]){step->in[0]->name, NULL}, step->out[0]->name);
    for (size_t i = 1; i < outputs; i++)
        graph_output(graph, step->out[i]->name);
    graph_int(graph, "axis", axis);
    if (count)
        graph_ints(graph, "split", sizes, count);
    graph_end(graph, node);
    for (size_t i = 0; i < outputs; i++)
        step->out[i]->rank = rank;
    return NULL;
}

static void cast_to(struct graph *graph, const char *input, enum graph_type type,
                    const char *output)
{
    size_t node = graph_begin(graph, "Cast", (const char *[]){input, NULL}, output);
    graph_int(graph, "to", type);
    graph_end(graph, node);
}

static const char *as_int64(struct graph *graph, const char *input)
{
    const char *name = graph_name(graph);
    cast_to(graph, input, GRAPH_INT64, name);
    return name;
}

static void reshape_to(struct step *step, const char *shape)
{
    graph_end(step->graph,
              graph_begin(step->graph, "Reshape", (const char *[]){step->in[0]->name, shape, NULL},
                          step->out[0]->name));
}

/* The second output of Reshape is the input's shape before the operator. */
TRITONSERVER_Error *shapes_reshape(struct step *step)
{
    struct graph *graph = step->graph;
    int64_t dims[GRAPH_MAX_INTS];
    size_t count = 0;
    TRITONSERVER_Error *err = step_ints(step, "shape", dims, &count);
    if (!err && step->op->input_count < 2 && !netdef_has(step->op, "shape"))
        err = step_err(step, "it has neither the argument shape nor a second input");
    if (err)
        return err;
    if (step->op->input_count > 1) {
        reshape_to(step, as_int64(graph, step->in[1]->name));
        step->out[0]->rank = step->in[1]->elements >= 0 && step->in[1]->elements <= GRAPH_MAX_RANK
                                 ? (int)step->in[1]->elements
                                 : -1;
    } else {
        reshape_to(step, graph_list(graph, dims, count));
        step->out[0]->rank = count <= GRAPH_MAX_RANK ? (int)count : -1;
    }
    if (step->out[1]) {
        graph_node(graph, "Shape", step->in[0]->name, step->out[1]->name);
        step->out[1]->rank = 1;
        step->out[1]->elements = step->in[0]->rank;
    }
    return NULL;
}

TRITONSERVER_Error *shapes_transpose(struct step *step)
{
    int64_t axes[GRAPH_MAX_INTS];
    size_t count = 0;
    TRITONSERVER_Error *err = step_ints(step, "axes", axes, &count);
    if (err)
        return err;
    graph_permute(step->graph, step->in[0]->name, axes, count, step->out[0]->name);
    step->out[0]->rank = step->in[0]->rank;
    return NULL;
}

/* Translate NCHW2NHWC (to_last) and NHWC2NCHW. */
static TRITONSERVER_Error *move_channels(struct step *step, bool to_last)
{
    int rank;
    int64_t axes[GRAPH_MAX_RANK];
    TRITONSERVER_Error *err = step_rank(step, 0, 3, &rank);
    if (err)
        return err;
    for (int i = 0; i < rank; i++)
        axes[i] = i == 0                          ? 0
                  : i == (to_last ? rank - 1 : 1) ? (to_last ? 1 : rank - 1)
                                                  : i + (to_last ? 1 : -1);
    graph_permute(step->graph, step->in[0]->name, axes, (size_t)rank, step->out[0]->name);
    step->out[0]->rank = rank;
    return NULL;
}

TRITONSERVER_Error *shapes_to_last(struct step *step)
{
    return move_channels(step, true);
}

TRITONSERVER_Error *shapes_to_first(struct step *step)
{
    return move_channels(step, false);
}

TRITONSERVER_Error *shapes_flatten(struct step *step)
{
    int rank;
    int64_t axis;
    TRITONSERVER_Error *err = step_rank(step, 0, 0, &rank);
    if (!err)
        err = step_axis(step, "axis", 1, rank + 1, &axis);
    if (!err && netdef_int(step->op, "axis", 1) < 0)
        err = step_err(step, "axis is negative");
    if (err)
        return err;
    graph_axis(step->graph, "Flatten", step->in[0]->name, axis, step->out[0]->name);
    step->out[0]->rank = 2;
    return NULL;
}

TRITONSERVER_Error *shapes_to_vector(struct step *step)
{
    static const int64_t all = -1;
    reshape_to(step, graph_list(step->graph, &all, 1));
    step->out[0]->rank = 1;
    return NULL;
}

/* Read the argument `dims`: the dimensions that are removed from `dims` dimensions, or added to
 * them (`come`). Sorted, each once. */
static TRITONSERVER_Error *read_dims(const struct step *step, int dims, bool come,
                                     int64_t *ret_axes, size_t *ret_count)
{
    int64_t told[GRAPH_MAX_INTS];
    bool named[GRAPH_MAX_RANK] = {false};
    size_t count = 0;
    TRITONSERVER_Error *err = step_ints(step, "dims", told, &count);
    if (err)
        return err;
    int64_t end = dims + (come ? (int64_t)count : 0);
    for (size_t i = 0; i < count; i++) {
        if (told[i] < 0 || told[i] >= GRAPH_MAX_RANK || told[i] >= end)
            return step_err(step, "dims names %lld", (long long)told[i]);
        named[told[i]] = true;
    }
    for (int64_t i = 0; i < GRAPH_MAX_RANK; i++)
        if (named[i])
            ret_axes[(*ret_count)++] = i;
    if (*ret_count == 0)
        return step_err(step, "dims is missing");
    return NULL;
}

/* Translate Squeeze and ExpandDims (come). */
static TRITONSERVER_Error *change_dims(struct step *step, bool come)
{
    int rank;
    int64_t axes[GRAPH_MAX_RANK];
    size_t count = 0;
    TRITONSERVER_Error *err = step_rank(step, 0, come ? 0 : 1, &rank);
    if (!err)
        err = read_dims(step, rank, come, axes, &count);
    if (err)
        return err;
    int changed = come ? rank + (int)count : rank - (int)count;
    if (changed > GRAPH_MAX_RANK)
        return step_err(step, "more than %d dimensions are not supported", GRAPH_MAX_RANK);
    graph_axes(step->graph, step->row->onnx, step->in[0]->name, axes, count, step->out[0]->name);
    step->out[0]->rank = changed;
    return NULL;
}

TRITONSERVER_Error *shapes_squeeze(struct step *step)
{
    return change_dims(step, false);
}

TRITONSERVER_Error *shapes_expand(struct step *step)
{
    return change_dims(step, true);
}

/* Convert negative positions. In Caffe2, -1 is the end itself; in ONNX, -1 is the last element. */
static void count_as_onnx(int64_t *places, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (places[i] < 0)
            places[i] = places[i] == -1 ? INT64_MAX : places[i] + 1;
}

TRITONSERVER_Error *shapes_slice(struct step *step)
{
    struct graph *graph = step->graph;
    int64_t starts[GRAPH_MAX_INTS], ends[GRAPH_MAX_INTS];
    size_t count = 0, end_count = 0;
    TRITONSERVER_Error *err = told_ints(step, "starts", 1, starts, &count);
    if (!err)
        err = told_ints(step, "ends", 2, ends, &end_count);
    if (!err && count != end_count)
        err = step_err(step, "starts has %zu values, ends has %zu", count, end_count);
    for (size_t i = 0; i < count && !err; i++)
        if (ends[i] < starts[i] && (ends[i] < 0) == (starts[i] < 0))
            err = step_err(step, "starts has %lld where ends has %lld", (long long)starts[i],
                           (long long)ends[i]);
    if (err)
        return err;
    count_as_onnx(starts, count);
    count_as_onnx(ends, count);
    const char *first = graph_list(graph, starts, count), *last = graph_list(graph, ends, count);
    graph_end(graph,
              graph_begin(graph, "Slice", (const char *[]){step->in[0]->name, first, last, NULL},
                          step->out[0]->name));
    step->out[0]->rank = step->in[0]->rank;
    return NULL;
}

TRITONSERVER_Error *shapes_gather(struct step *step)
{
    int rank, places;
    int64_t axis;
    TRITONSERVER_Error *err = step_rank(step, 0, 1, &rank);
    if (!err)
        err = step_rank(step, 1, 0, &places);
    if (!err)
        err = step_axis(step, "axis", 0, rank, &axis);
    if (!err && netdef_int(step->op, "match_outer", 0))
        err = step_err(step, "match_outer is not supported");
    if (err)
        return err;
    size_t node = graph_begin(step->graph, "Gather",
                              (const char *[]){step->in[0]->name, step->in[1]->name, NULL},
                              step->out[0]->name);
    graph_int(step->graph, "axis", axis);
    graph_end(step->graph, node);
    step->out[0]->rank = rank - 1 + places;
    return NULL;
}

TRITONSERVER_Error *shapes_resize(struct step *step)
{
    struct graph *graph = step->graph;
    struct step_image image;
    static const int64_t four = 4, none = 0;
    TRITONSERVER_Error *err = step_begin_image(step, 4, &image);
    if (!err && image.rank != 4)
        err = step_err(step, "'%s' has %d dimensions, 4 are needed", step->in[0]->blob, image.rank);
    if (err)
        return err;
    const float scales[4] = {1, 1, netdef_float(step->op, "height_scale", 1),
                             netdef_float(step->op, "width_scale", 1)};
    const char *region = graph_name(graph), *wanted = graph_name(graph);
    graph_constant(graph, region, GRAPH_FLOAT, &none, 1, 0);
    void *space = graph_constant(graph, wanted, GRAPH_FLOAT, &four, 1, sizeof scales);
    if (space)
        memcpy(space, scales, sizeof scales);
    size_t node = graph_begin(graph, "Resize", (const char *[]){image.input, region, wanted, NULL},
                              image.output);
    graph_text(graph, "mode", "nearest");
    graph_text(graph, "coordinate_transformation_mode", "asymmetric");
    graph_text(graph, "nearest_mode", "floor");
    graph_end(graph, node);
    step_end_image(step, &image);
    return NULL;
}

TRITONSERVER_Error *shapes_cast(struct step *step)
{
    enum graph_type type;
    TRITONSERVER_Error *err = fillers_type(step, "to", &type);
    if (err)
        return err;
    cast_to(step->graph, step->in[0]->name, type, step->out[0]->name);
    step->out[0]->rank = step->in[0]->rank;
    step->out[0]->elements = step->in[0]->elements;
    return NULL;
}
