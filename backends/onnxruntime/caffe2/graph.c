#include "graph.h"

#include <search.h>
#include <stdio.h>
#include <string.h>

/* Field numbers of onnx.proto. */
enum { GRAPH_NODE = 1, GRAPH_INITIALIZER = 5 };
enum { NODE_INPUT = 1, NODE_OUTPUT = 2, NODE_TYPE = 4, NODE_ATTRIBUTE = 5 };
enum { ATTRIBUTE_NAME = 1, ATTRIBUTE_FLOAT = 2, ATTRIBUTE_INT = 3, ATTRIBUTE_TEXT = 4 };
enum { ATTRIBUTE_TENSOR = 5, ATTRIBUTE_INTS = 8, ATTRIBUTE_TYPE = 20 };
enum { IS_FLOAT = 1, IS_INT = 2, IS_TEXT = 3, IS_TENSOR = 4, IS_INTS = 7 };
enum { TENSOR_DIMS = 1, TENSOR_TYPE = 2, TENSOR_NAME = 8, TENSOR_CONTENT = 9 };

static int by_blob(const void *left, const void *right)
{
    const struct graph_value *const a = left, *const b = right;
    return strcmp(a->blob, b->blob);
}

static void leave_value(void *value)
{
    (void)value; /* the scratch memory owns it */
}

void graph_free(struct graph *graph)
{
    tdestroy(graph->values, leave_value);
    graph->values = NULL;
    wire_free(&graph->out);
}

struct graph_value *graph_find(const struct graph *graph, const char *blob)
{
    struct graph_value wanted = {.blob = blob};
    struct graph_value **found = tfind(&wanted, &graph->values, by_blob);
    return found ? *found : NULL;
}

struct graph_value *graph_write(struct graph *graph, const char *blob, const char *name)
{
    struct graph_value *value = scratch_array(graph->memory, 1, sizeof *value);
    if (!value)
        return NULL;
    *value = (struct graph_value){.blob = blob, .name = name, .rank = -1, .elements = -1};
    struct graph_value **place = tsearch(value, &graph->values, by_blob);
    if (!place)
        return NULL;
    *place = value; /* a step that holds the blob's previous value keeps using that one */
    return value;
}

const char *graph_name(struct graph *graph)
{
    enum { LONGEST = 32 };
    char *name = scratch_take(graph->memory, LONGEST);
    if (!name) {
        graph->out.failed = true;
        return "";
    }
    snprintf(name, LONGEST, GRAPH_NAMES "%u", graph->names++);
    return name;
}

size_t graph_begin(struct graph *graph, const char *type, const char *const *inputs,
                   const char *output)
{
    size_t node = wire_begin(&graph->out, GRAPH_NODE);
    for (; *inputs; inputs++)
        wire_put_text(&graph->out, NODE_INPUT, *inputs);
    wire_put_text(&graph->out, NODE_OUTPUT, output);
    wire_put_text(&graph->out, NODE_TYPE, type);
    return node;
}

void graph_end(struct graph *graph, size_t begun)
{
    wire_end(&graph->out, begun);
}

void graph_output(struct graph *graph, const char *output)
{
    wire_put_text(&graph->out, NODE_OUTPUT, output);
}

static size_t begin_attribute(struct graph *graph, const char *name, int type)
{
    size_t attribute = wire_begin(&graph->out, NODE_ATTRIBUTE);
    wire_put_text(&graph->out, ATTRIBUTE_NAME, name);
    wire_put_number(&graph->out, ATTRIBUTE_TYPE, type);
    return attribute;
}

void graph_int(struct graph *graph, const char *name, int64_t value)
{
    size_t attribute = begin_attribute(graph, name, IS_INT);
    wire_put_number(&graph->out, ATTRIBUTE_INT, value);
    wire_end(&graph->out, attribute);
}

void graph_float(struct graph *graph, const char *name, float value)
{
    size_t attribute = begin_attribute(graph, name, IS_FLOAT);
    wire_put_float(&graph->out, ATTRIBUTE_FLOAT, value);
    wire_end(&graph->out, attribute);
}

void graph_ints(struct graph *graph, const char *name, const int64_t *values, size_t count)
{
    size_t attribute = begin_attribute(graph, name, IS_INTS);
    for (size_t i = 0; i < count; i++)
        wire_put_number(&graph->out, ATTRIBUTE_INTS, values[i]);
    wire_end(&graph->out, attribute);
}

void graph_text(struct graph *graph, const char *name, const char *value)
{
    size_t attribute = begin_attribute(graph, name, IS_TEXT);
    wire_put_text(&graph->out, ATTRIBUTE_TEXT, value);
    wire_end(&graph->out, attribute);
}

static void *put_content(struct graph *graph, enum graph_type type, const int64_t *dims,
                         size_t rank, size_t size)
{
    for (size_t i = 0; i < rank; i++)
        wire_put_number(&graph->out, TENSOR_DIMS, dims[i]);
    wire_put_number(&graph->out, TENSOR_TYPE, type);
    return wire_put_space(&graph->out, TENSOR_CONTENT, size);
}

void graph_scalar(struct graph *graph, const char *name, enum graph_type type, const void *value,
                  size_t size)
{
    static const int64_t one = 1;
    size_t attribute = begin_attribute(graph, name, IS_TENSOR);
    size_t tensor = wire_begin(&graph->out, ATTRIBUTE_TENSOR);
    void *space = put_content(graph, type, &one, 1, size);
    if (space)
        memcpy(space, value, size);
    wire_end(&graph->out, tensor);
    wire_end(&graph->out, attribute);
}

const char *graph_node(struct graph *graph, const char *type, const char *input, const char *output)
{
    return graph_axes(graph, type, input, NULL, 0, output);
}

const char *graph_axis(struct graph *graph, const char *type, const char *input, int64_t axis,
                       const char *output)
{
    const char *name = output ? output : graph_name(graph);
    size_t node = graph_begin(graph, type, (const char *[]){input, NULL}, name);
    graph_int(graph, "axis", axis);
    graph_end(graph, node);
    return name;
}

static const char *list_node(struct graph *graph, const char *type, const char *input,
                             const char *attribute, const int64_t *values, size_t count,
                             const char *output)
{
    const char *name = output ? output : graph_name(graph);
    size_t node = graph_begin(graph, type, (const char *[]){input, NULL}, name);
    if (count)
        graph_ints(graph, attribute, values, count);
    graph_end(graph, node);
    return name;
}

const char *graph_axes(struct graph *graph, const char *type, const char *input,
                       const int64_t *axes, size_t count, const char *output)
{
    return list_node(graph, type, input, "axes", axes, count, output);
}

const char *graph_permute(struct graph *graph, const char *input, const int64_t *axes, size_t count,
                          const char *output)
{
    return list_node(graph, "Transpose", input, "perm", axes, count, output);
}

void *graph_constant(struct graph *graph, const char *name, enum graph_type type,
                     const int64_t *dims, size_t rank, size_t size)
{
    size_t tensor = wire_begin(&graph->out, GRAPH_INITIALIZER);
    wire_put_text(&graph->out, TENSOR_NAME, name);
    unsigned char *space = put_content(graph, type, dims, rank, size);
    wire_end(&graph->out, tensor);
    return space;
}

const char *graph_list(struct graph *graph, const int64_t *values, size_t count)
{
    const char *name = graph_name(graph);
    const int64_t dims = (int64_t)count;
    void *space = graph_constant(graph, name, GRAPH_INT64, &dims, 1, count * sizeof *values);
    if (space && count)
        memcpy(space, values, count * sizeof *values);
    return name;
}
