#pragma once

#include "netdef.h"

/* The ONNX graph that a NetDef becomes. It is written while the translator walks through the
 * operators. Operators of Caffe2 can write a blob several times; a value of ONNX is written
 * once. Therefore each write of a blob makes a new value with a name of its own. */

enum { GRAPH_MAX_RANK = 32, GRAPH_MAX_INTS = 64 };

/* ONNX's numbers of the data types. */
enum graph_type {
    GRAPH_FLOAT = 1,
    GRAPH_UINT8 = 2,
    GRAPH_INT8 = 3,
    GRAPH_UINT16 = 4,
    GRAPH_INT16 = 5,
    GRAPH_INT32 = 6,
    GRAPH_INT64 = 7,
    GRAPH_BOOL = 9,
    GRAPH_FLOAT16 = 10,
    GRAPH_DOUBLE = 11,
};

#define GRAPH_NAMES "nereid:"

/* The value that a blob has at this point of the network. */
struct graph_value {
    const char *blob;
    const char *name; /* of the value in the ONNX graph */
    int rank;         /* -1 = unknown */
    int64_t elements; /* -1 = unknown */
    /* the contents, if they are known, integers, and at most GRAPH_MAX_INTS; else NULL */
    const int64_t *ints;
};

struct graph {
    struct scratch *memory; /* owns names and values */
    struct wire_out out;    /* the fields of the GraphProto */
    void *values;           /* the current values, by blob: a tree of tsearch */
    unsigned names;         /* number of names that graph_name made */
};

/* graph_free - free what the graph owns. The scratch memory stays. */
void graph_free(struct graph *graph);

/* graph_find - the current value of a blob; NULL if nothing wrote the blob yet. */
struct graph_value *graph_find(const struct graph *graph, const char *blob);

/* graph_write - give a blob a new value, whose rank is unknown at first.
 * name     the value's name in ONNX
 * returns  NULL if memory ran out */
struct graph_value *graph_write(struct graph *graph, const char *blob, const char *name);

/* graph_name - make a name that no tensor of the configuration has: it begins with GRAPH_NAMES.
 * returns  owned by the scratch memory; never NULL: if memory ran out, out.failed is set */
const char *graph_name(struct graph *graph);

/* graph_begin, graph_end - write a node; its attributes are written between the two calls.
 * inputs   names; NULL ends the list
 * output   name of the node's first output
 * returns  the argument `begun` of graph_end */
size_t graph_begin(struct graph *graph, const char *type, const char *const *inputs,
                   const char *output);
void graph_end(struct graph *graph, size_t begun);

/* graph_output - add a second or later output to the node. */
void graph_output(struct graph *graph, const char *output);

/* graph_int, graph_float, graph_ints, graph_text - add an attribute to the node. */
void graph_int(struct graph *graph, const char *name, int64_t value);
void graph_float(struct graph *graph, const char *name, float value);
void graph_ints(struct graph *graph, const char *name, const int64_t *values, size_t count);
void graph_text(struct graph *graph, const char *name, const char *value);

/* graph_scalar - add an attribute to the node: a tensor of one element.
 * value    of `size` bytes */
void graph_scalar(struct graph *graph, const char *name, enum graph_type type, const void *value,
                  size_t size);

/* graph_node, graph_axis, graph_axes - write a node with one input, and with no attributes, with
 * the attribute `axis`, or with the attribute `axes`.
 * output   the output's name; NULL = make one
 * returns  the output's name */
const char *graph_node(struct graph *graph, const char *type, const char *input,
                       const char *output);
const char *graph_axis(struct graph *graph, const char *type, const char *input, int64_t axis,
                       const char *output);
const char *graph_axes(struct graph *graph, const char *type, const char *input,
                       const int64_t *axes, size_t count, const char *output);

/* graph_permute - write a Transpose node. `output` and the return value: as graph_node's. */
const char *graph_permute(struct graph *graph, const char *input, const int64_t *axes, size_t count,
                          const char *output);

/* graph_constant - write a tensor with constant contents.
 * size     of the contents, in bytes
 * returns  the place for the contents, which the caller fills in: borrowed until the next write
 *          to the graph; NULL if memory ran out */
void *graph_constant(struct graph *graph, const char *name, enum graph_type type,
                     const int64_t *dims, size_t rank, size_t size);

/* graph_list - write a constant: a list of integers.
 * returns  its name */
const char *graph_list(struct graph *graph, const int64_t *values, size_t count);
