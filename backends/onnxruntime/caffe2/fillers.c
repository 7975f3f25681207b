#include "fillers.h"

#include <stdlib.h>
#include <string.h>

#include "../../common/berr.h"

/* An ONNX file (one protocol buffer) cannot be larger than this. */
static const int64_t most_bytes = INT32_MAX;

static const struct {
    const char *name;
    int number; /* Caffe2's number of the type */
    enum graph_type type;
    size_t size;
} types[] = {
    {"FLOAT", 1, GRAPH_FLOAT, 4},      {"INT32", 2, GRAPH_INT32, 4},
    {"BOOL", 5, GRAPH_BOOL, 1},        {"UINT8", 6, GRAPH_UINT8, 1},
    {"INT8", 7, GRAPH_INT8, 1},        {"UINT16", 8, GRAPH_UINT16, 2},
    {"INT16", 9, GRAPH_INT16, 2},      {"INT64", 10, GRAPH_INT64, 8},
    {"FLOAT16", 12, GRAPH_FLOAT16, 2}, {"DOUBLE", 13, GRAPH_DOUBLE, 8},
};

static size_t size_of(enum graph_type type)
{
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (types[i].type == type)
            return types[i].size;
    return 0;
}

TRITONSERVER_Error *fillers_type(const struct step *step, const char *name,
                                 enum graph_type *ret_type)
{
    int64_t number = netdef_int(step->op, name, -1);
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (types[i].number == number || netdef_is(step->op, name, types[i].name, false)) {
            *ret_type = types[i].type;
            return NULL;
        }
    return step_err(step, "%s names no data type that is supported", name);
}

/* Write one element of a type: from `real` for floating-point types, from `whole` for others. */
static void put_fill_element(unsigned char *to, enum graph_type type, float real, int64_t whole)
{
    double precise = real;
    if (type == GRAPH_FLOAT)
        memcpy(to, &real, sizeof real);
    else if (type == GRAPH_DOUBLE)
        memcpy(to, &precise, sizeof precise);
    else if (type == GRAPH_BOOL)
        *to = whole != 0;
    else
        memcpy(to, &whole, size_of(type)); /* little-endian: the lowest bytes come first */
}

static bool is_real(enum graph_type type)
{
    return type == GRAPH_FLOAT || type == GRAPH_DOUBLE;
}

/* Read the argument `shape`: its dimensions, and the number of elements.
 * size     bytes of one element, for the limit */
static TRITONSERVER_Error *read_fill_shape(const struct step *step, size_t size, int64_t *ret_dims,
                                           size_t *ret_rank, size_t *ret_elements)
{
    int64_t total = (int64_t)size;
    TRITONSERVER_Error *err = step_ints(step, "shape", ret_dims, ret_rank);
    if (!err && *ret_rank > GRAPH_MAX_RANK)
        err = step_err(step, "more than %d dimensions are not supported", GRAPH_MAX_RANK);
    for (size_t i = 0; !err && i < *ret_rank; i++)
        if (ret_dims[i] < 0 || __builtin_mul_overflow(total, ret_dims[i], &total) ||
            total > most_bytes)
            err = step_err(step, "shape has a negative dimension, or is larger than 2 GiB");
    if (!err)
        *ret_elements = (size_t)total / size;
    return err;
}

static void told_shape(struct graph_value *value, size_t rank, size_t elements)
{
    value->rank = (int)rank;
    value->elements = (int64_t)elements;
}

/* Keep the contents of a small constant, for operators that need them during the translation. */
static void keep_ints(struct step *step, const int64_t *values, size_t count)
{
    int64_t *kept = scratch_array(step->graph->memory, count, sizeof *kept);
    if (!kept || count > GRAPH_MAX_INTS || step->out[0]->rank > 1)
        return;
    memcpy(kept, values, count * sizeof *kept);
    step->out[0]->ints = kept;
}

static TRITONSERVER_Error *wrong_count(const struct step *step, size_t found, size_t wanted)
{
    return step_err(step, "values has %zu elements for a shape of %zu", found, wanted);
}

static TRITONSERVER_Error *put_ints(struct step *step, enum graph_type type, const int64_t *dims,
                                    size_t rank, size_t elements)
{
    size_t size = size_of(type);
    size_t found = netdef_ints(step->op, "values", NULL, 0);
    if (found != elements)
        return wrong_count(step, found, elements);
    int64_t *values = calloc(elements + 1, sizeof *values);
    if (!values)
        return berr_no_memory();
    netdef_ints(step->op, "values", values, elements);
    unsigned char *space =
        graph_constant(step->graph, step->out[0]->name, type, dims, rank, elements * size);
    for (size_t i = 0; space && i < elements; i++)
        put_fill_element(space + i * size, type, 0, values[i]);
    if (elements <= GRAPH_MAX_INTS)
        keep_ints(step, values, elements);
    free(values);
    return NULL;
}

static TRITONSERVER_Error *put_reals(struct step *step, enum graph_type type, const int64_t *dims,
                                     size_t rank, size_t elements)
{
    size_t found = netdef_floats(step->op, "values", NULL, 0);
    if (found != elements)
        return wrong_count(step, found, elements);
    size_t size = size_of(type);
    unsigned char *space =
        graph_constant(step->graph, step->out[0]->name, type, dims, rank, elements * size);
    if (!space)
        return NULL; /* the graph remembers that memory ran out */
    float *values = calloc(elements + 1, sizeof *values);
    if (!values)
        return berr_no_memory();
    netdef_floats(step->op, "values", values, elements);
    for (size_t i = 0; i < elements; i++)
        put_fill_element(space + i * size, type, values[i], 0);
    free(values);
    return NULL;
}

/* GivenTensor...Fill: the argument dtype gives the type; without it, the operator's name does. */
TRITONSERVER_Error *fillers_given(struct step *step)
{
    enum graph_type type = GRAPH_FLOAT;
    int64_t dims[GRAPH_MAX_INTS];
    size_t rank = 0, elements = 0;
    TRITONSERVER_Error *err = NULL;
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (strcmp(types[i].name, step->row->onnx) == 0)
            type = types[i].type;
    if (netdef_has(step->op, "dtype"))
        err = fillers_type(step, "dtype", &type);
    if (!err && type == GRAPH_FLOAT16)
        err = step_err(step, "dtype FLOAT16 is not supported");
    if (!err)
        err = read_fill_shape(step, size_of(type), dims, &rank, &elements);
    if (err)
        return err;
    told_shape(step->out[0], rank, elements);
    return is_real(type) ? put_reals(step, type, dims, rank, elements)
                         : put_ints(step, type, dims, rank, elements);
}

/* GivenTensorByteStringToUInt8Fill: the argument `values` is one byte string. */
TRITONSERVER_Error *fillers_bytes(struct step *step)
{
    int64_t dims[GRAPH_MAX_INTS];
    size_t rank = 0, elements = 0;
    struct wire content = netdef_text(step->op, "values");
    TRITONSERVER_Error *err = read_fill_shape(step, 1, dims, &rank, &elements);
    if (!err && wire_size(content) != elements)
        err = wrong_count(step, wire_size(content), elements);
    if (err)
        return err;
    void *space =
        graph_constant(step->graph, step->out[0]->name, GRAPH_UINT8, dims, rank, elements);
    if (space && elements)
        memcpy(space, content.at, elements);
    told_shape(step->out[0], rank, elements);
    return NULL;
}

/* The shape of a ConstantFill: the argument `shape`; or with an input, that input's shape or its
 * contents (input_as_shape), followed by the dimensions in extra_shape.
 * size     bytes of one element, for the limit */
static TRITONSERVER_Error *constant_shape(struct step *step, size_t size, const char **ret_shape,
                                          int *ret_rank)
{
    struct graph *graph = step->graph;
    int64_t dims[GRAPH_MAX_INTS];
    size_t rank = 0, elements;
    if (step->op->input_count == 0) {
        TRITONSERVER_Error *err = read_fill_shape(step, size, dims, &rank, &elements);
        *ret_rank = (int)rank;
        *ret_shape = graph_list(graph, dims, rank);
        return err;
    }
    TRITONSERVER_Error *err = step_ints(step, "extra_shape", dims, &rank);
    if (err)
        return err;
    const char *shape = graph_name(graph);
    if (netdef_int(step->op, "input_as_shape", 0)) {
        size_t node = graph_begin(graph, "Cast", (const char *[]){step->in[0]->name, NULL}, shape);
        graph_int(graph, "to", GRAPH_INT64);
        graph_end(graph, node);
        *ret_rank = (int)step->in[0]->elements; /* -1 = unknown */
    } else {
        graph_node(graph, "Shape", step->in[0]->name, shape);
        *ret_rank = step->in[0]->rank;
    }
    *ret_shape = shape;
    if (rank == 0)
        return NULL;
    const char *more = graph_list(graph, dims, rank), *whole = graph_name(graph);
    size_t node = graph_begin(graph, "Concat", (const char *[]){shape, more, NULL}, whole);
    graph_int(graph, "axis", 0);
    graph_end(graph, node);
    *ret_shape = whole;
    *ret_rank = *ret_rank < 0 ? -1 : *ret_rank + (int)rank;
    return NULL;
}

/* The type of a ConstantFill: the argument dtype; without it, INT64 if the value was written as
 * an integer, FLOAT if not. */
static TRITONSERVER_Error *constant_type(const struct step *step, enum graph_type *ret_type)
{
    *ret_type = GRAPH_FLOAT;
    if (netdef_has(step->op, "dtype"))
        return fillers_type(step, "dtype", ret_type);
    if (netdef_holds(step->op, "value", NETDEF_WHOLE))
        *ret_type = GRAPH_INT64;
    return NULL;
}

TRITONSERVER_Error *fillers_constant(struct step *step)
{
    enum graph_type type;
    unsigned char value[8];
    const char *shape;
    int rank = -1;
    TRITONSERVER_Error *err = constant_type(step, &type);
    if (!err && type == GRAPH_FLOAT16)
        err = step_err(step, "dtype FLOAT16 is not supported");
    if (!err)
        err = step_kind(step, "value", is_real(type) ? NETDEF_REAL : NETDEF_WHOLE);
    if (!err)
        err = constant_shape(step, size_of(type), &shape, &rank);
    if (err)
        return err;
    put_fill_element(value, type, netdef_float(step->op, "value", 0),
                     netdef_int(step->op, "value", 0));
    size_t node = graph_begin(step->graph, "ConstantOfShape", (const char *[]){shape, NULL},
                              step->out[0]->name);
    graph_scalar(step->graph, "value", type, value, size_of(type));
    graph_end(step->graph, node);
    step->out[0]->rank = rank <= GRAPH_MAX_RANK ? rank : -1;
    return NULL;
}
