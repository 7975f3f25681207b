#pragma once

#include "netdef.h"

/* Translate a Caffe2 network into an ONNX model. */

/* An input that the caller sends, or an output that it asks for. */
struct translate_tensor {
    const char *name;
    TRITONSERVER_DataType datatype;
    size_t rank;
    const int64_t *dims; /* -1 = any size */
};

struct translate_network {
    /* the file that fills the weights (NULL = none), and the file that computes */
    const struct netdef *init, *net;
    size_t input_count, output_count;
    const struct translate_tensor *inputs, *outputs;
};

/* translate_network - make the ONNX file's contents.
 * memory      scratch memory for names; the result does not point into it
 * ret_model   must be zeroed before; owned by the caller: free it with wire_free
 * errors      UNSUPPORTED, with the operator's name and what is not supported; INVALID_ARG, with
 *             the blob's name, for an input or output that the network does not have */
TRITONSERVER_Error *translate_network(struct scratch *memory,
                                      const struct translate_network *network,
                                      struct wire_out *ret_model);
