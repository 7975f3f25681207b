#pragma once

#include "netdef.h"

/* A network of Caffe2 as a model of ONNX. */

/* A tensor that the network is asked with, or for. */
struct translate_tensor {
    const char *name;
    TRITONSERVER_DataType datatype;
    size_t rank;
    const int64_t *dims; /* -1 = any */
};

struct translate_network {
    const struct netdef *init, *net; /* what fills the weights, what computes; init may be NULL */
    size_t input_count, output_count;
    const struct translate_tensor *inputs, *outputs;
};

/* translate_network - translate.
 * memory      names lie there
 * ret_model   an ONNX file's contents; zeros before, owned by the caller: wire_free
 * errors      UNSUPPORTED, naming the operator and what of it is not translated; INVALID_ARG,
 *             naming the blob, for inputs and outputs that are not the network's */
TRITONSERVER_Error *translate_network(struct scratch *memory,
                                      const struct translate_network *network,
                                      struct wire_out *ret_model);
