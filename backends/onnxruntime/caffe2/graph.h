#pragma once

#include "netdef.h"

/* The ONNX graph that a NetDef becomes, written while its operators are gone through. A blob can
 * be written again and again; a value of ONNX cannot, so that each writing gives a value of its
 * own. */

enum { GRAPH_MAX_RANK = 32, GRAPH_MAX_INTS = 64 };

/* The numbers that ONNX gives data types. */
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

/* What a blob holds at this point of the network. */
struct graph_value {
    const char *blob;
    const char *name;    /* in the ONNX graph */
    int rank;            /* -1 = not known */
    int64_t elements;    /* -1 = not known */
    const int64_t *ints; /* its contents, where they are whole numbers, known and few */
};

struct graph {
    struct scratch *memory; /* where names and values lie */
    struct wire_out out;    /* a GraphProto's fields */
    void *values;           /* of blobs, for tsearch */
    unsigned names;         /* that were made up */
};

/* graph_free - free what the graph holds beside its scratch. */
void graph_free(struct graph *graph);

/* graph_find - what a blob holds now; NULL when nothing was written. */
struct graph_value *graph_find(const struct graph *graph, const char *blob);

/* graph_write - a blob gets a new value, of unknown rank as yet.
 * name     its name in ONNX
 * returns  NULL when there is no memory */
struct graph_value *graph_write(struct graph *graph, const char *blob, const char *name);

/* graph_name - make up a name that no blob has.
 * returns  the scratch's; never NULL: where there is no memory, the graph has failed */
const char *graph_name(struct graph *graph);

/* graph_begin - begin a node.
 * inputs   ends with NULL
 * output   its first output
 * returns  what graph_end wants */
size_t graph_begin(struct graph *graph, const char *type, const char *const *inputs,
                   const char *output);
void graph_end(struct graph *graph, size_t begun);

/* graph_output - a further output of the node. */
void graph_output(struct graph *graph, const char *output);

/* graph_int, graph_float, graph_ints, graph_text - an attribute of the node. */
void graph_int(struct graph *graph, const char *name, int64_t value);
void graph_float(struct graph *graph, const char *name, float value);
void graph_ints(struct graph *graph, const char *name, const int64_t *values, size_t count);
void graph_text(struct graph *graph, const char *name, const char *value);

/* graph_scalar - an attribute of the node that is a tensor of one element.
 * value    of `size` bytes */
void graph_scalar(struct graph *graph, const char *name, enum graph_type type, const void *value,
                  size_t size);

/* graph_node - a node of one input without attributes, or with one that is `axis`, `axes`.
 * returns  the name of its output, which is `output`, or made up where that is NULL */
const char *graph_node(struct graph *graph, const char *type, const char *input,
                       const char *output);
const char *graph_axis(struct graph *graph, const char *type, const char *input, int64_t axis,
                       const char *output);
const char *graph_axes(struct graph *graph, const char *type, const char *input,
                       const int64_t *axes, size_t count, const char *output);

/* graph_permute - a transposition. */
const char *graph_permute(struct graph *graph, const char *input, const int64_t *axes, size_t count,
                          const char *output);

/* graph_constant - a tensor that the graph brings along.
 * size     of its contents
 * returns  where they go: borrowed until the graph is written to; NULL when there is no memory */
void *graph_constant(struct graph *graph, const char *name, enum graph_type type,
                     const int64_t *dims, size_t rank, size_t size);

/* graph_list - a list of whole numbers that the graph brings along.
 * returns  its name */
const char *graph_list(struct graph *graph, const int64_t *values, size_t count);
