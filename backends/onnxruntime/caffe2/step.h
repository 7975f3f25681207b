#pragma once

#include "graph.h"

/* One operator of the network on its way into the graph. A function that translates operators
 * writes the nodes and tells the ranks of the outputs. */

struct step;

typedef TRITONSERVER_Error *step_fn(struct step *step);

/* What operators of a type look like: a row of operators.c. */
struct step_row {
    const char *type;
    step_fn *translate;
    const char *onnx;   /* the node that it becomes, where the function serves several */
    const char *args;   /* the arguments that are translated, between spaces */
    size_t least, most; /* inputs */
    size_t outputs;     /* those that are translated; there is at least one */
};

struct step {
    struct graph *graph;
    const struct netdef_op *op;
    const struct step_row *row;
    struct graph_value **in;  /* all inputs of the operator */
    struct graph_value **out; /* NULL beyond those that the operator has */
};

/* step_err - an error about this operator, which names it. */
TRITONSERVER_Error *step_err(const struct step *step, const char *fmt, ...)
    __attribute__((format(printf, 2, 3), returns_nonnull));

/* step_rank - the number of dimensions of an input.
 * errors   it is not known, or less than `least` */
TRITONSERVER_Error *step_rank(const struct step *step, size_t input, int least, int *ret_rank);

/* step_axis - the argument that names a dimension, counted from the end where it is negative.
 * dims     how many dimensions there are
 * errors   there is no such dimension */
TRITONSERVER_Error *step_axis(const struct step *step, const char *name, int64_t absent, int dims,
                              int64_t *ret_axis);

/* step_ints - an argument with several whole numbers.
 * ret_values  GRAPH_MAX_INTS slots
 * errors      there are more */
TRITONSERVER_Error *step_ints(const struct step *step, const char *name, int64_t *ret_values,
                              size_t *ret_count);

/* Tensors of images: dimensions in the order that ONNX knows (batch, channels, places). */
struct step_image {
    bool channels_last; /* the network's own order */
    int rank;
    const char *input;  /* in ONNX's order */
    const char *output; /* the same: what the node writes */
};

/* step_begin_image - bring the first input into ONNX's order, as the argument `order` demands it.
 * errors   an order that is none; the rank is not known, or less than `least` */
TRITONSERVER_Error *step_begin_image(struct step *step, int least, struct step_image *ret_image);

/* step_image_order - bring another tensor of this rank into ONNX's order.
 * returns  its name then */
const char *step_image_order(struct step *step, const struct step_image *image, const char *input);

/* step_end_image - bring the output into the network's order. */
void step_end_image(struct step *step, const struct step_image *image);
