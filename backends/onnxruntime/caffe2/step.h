#pragma once

#include "graph.h"

/* The translation of one operator of the network. The function of its type writes the ONNX nodes
 * and sets the ranks of the outputs. */

struct step;

typedef TRITONSERVER_Error *step_fn(struct step *step);

/* A type of operators: a row of the table in operators.c. */
struct step_row {
    const char *type;
    step_fn *translate;
    const char *onnx; /* the type of the ONNX node, if one function serves several types */
    /* names of the arguments that are translated, each with a space on both sides */
    const char *args;
    size_t least, most; /* allowed number of inputs */
    size_t outputs;     /* number of outputs that are translated; every operator has at least one */
};

struct step {
    struct graph *graph;
    const struct netdef_op *op;
    const struct step_row *row;
    struct graph_value **in;  /* all inputs of the operator */
    struct graph_value **out; /* NULL for outputs that the operator does not have */
};

/* step_err - make an error that names this operator. */
TRITONSERVER_Error *step_err(const struct step *step, const char *fmt, ...)
    __attribute__((format(printf, 2, 3), returns_nonnull));

/* step_rank - the number of dimensions of an input.
 * errors   the number is unknown, or below `least` */
TRITONSERVER_Error *step_rank(const struct step *step, size_t input, int least, int *ret_rank);

/* step_axis - read the argument that names a dimension. A negative value counts from the end.
 * absent   the value if the operator does not have the argument
 * dims     number of dimensions
 * errors   there is no such dimension */
TRITONSERVER_Error *step_axis(const struct step *step, const char *name, int64_t absent, int dims,
                              int64_t *ret_axis);

/* step_kind - check that an argument that is there is one value of this kind.
 * errors   it is something else; Caffe2 refuses that too */
TRITONSERVER_Error *step_kind(const struct step *step, const char *name, enum netdef_kind kind);

/* step_ints - read an argument that is a list of integers.
 * ret_values  room for GRAPH_MAX_INTS values
 * errors      the list is longer */
TRITONSERVER_Error *step_ints(const struct step *step, const char *name, int64_t *ret_values,
                              size_t *ret_count);

/* An operator on images. ONNX expects the dimensions as batch, channels, then height and so on. */
struct step_image {
    bool channels_last; /* the network's order is batch, height and so on, then channels */
    int rank;
    const char *input;  /* name of the first input, in ONNX's order */
    const char *output; /* name of the output that the node writes, in ONNX's order */
};

/* step_begin_image - transpose the first input to ONNX's order if the argument `order` says that
 * the network has another one.
 * errors   `order` is unknown; the rank is unknown, or below `least` */
TRITONSERVER_Error *step_begin_image(struct step *step, int least, struct step_image *ret_image);

/* step_image_order - transpose another tensor of the same rank to ONNX's order.
 * returns  its name after that */
const char *step_image_order(struct step *step, const struct step_image *image, const char *input);

/* step_end_image - transpose the output back to the network's order. */
void step_end_image(struct step *step, const struct step_image *image);
