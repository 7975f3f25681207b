#pragma once

#include <yyjson.h>

#include "trt.h"

/* Executions that are recorded when an instance is made, as graphs of CUDA's: for which shapes, and
 * which of them serves a batch. No GPU and no TensorRT is needed for what is here; record.h makes
 * the recordings. */

struct cuda_graph_exec;

/* An entry of graph_spec, or one of the usual batch sizes. */
struct graph_spec {
    int64_t rows, least_rows; /* 0 = the model does not batch */
    yyjson_val *inputs; /* shapes and values by name; NULL = those that a profile is best for */
    yyjson_val *least_inputs; /* the same of its lower bound */
};

/* A tensor of a recording. */
struct graph_tensor {
    size_t rank;
    int64_t dims[PROFILE_MOST_DIMS]; /* of an output */
    void *host;                      /* owned; the values of a shape tensor */
};

struct graph {
    int64_t rows;                 /* 0 = the model does not batch */
    struct profile_given *most;   /* owned: what was recorded, for each input */
    struct profile_given *least;  /* in the same memory: what the recording may stand for */
    struct graph_tensor *tensors; /* owned; one for each of the plan's */
    struct cuda_graph_exec *recording;
};

/* graph_list - which executions a configuration wants to be recorded: its graph_spec, or else batch
 * sizes as in the reference: the smallest, the largest and the preferred ones; with neither the
 * dynamic batcher nor sequences in the order of their arrival 1, 2, 3, 4, 6, 8, 12 and 16.
 * config  the configuration's root
 * ret     owned by the caller: free; points into the configuration
 * errors  INVALID_ARG for batch sizes, bounds and dimensions that cannot be */
TRITONSERVER_Error *graph_list(yyjson_val *config, int64_t max_batch_size, struct graph_spec **ret,
                               size_t *ret_count);

/* graph_init - what a specification means under a profile. Of a shape tensor it has the values of a
 * request.
 * tensors  `count` of the plan
 * ret      owned by the caller: graph_fini
 * errors   INVALID_ARG if an input is missing, or the profile does not allow it; UNSUPPORTED for
 *          bounds of formats that are not linear */
TRITONSERVER_Error *graph_init(const struct graph_spec *spec, const struct profile *profile,
                               const struct trt_tensor *tensors, size_t count, const char *instance,
                               struct graph *ret);

/* graph_fini - its recording is gone. */
void graph_fini(struct graph *graph, size_t count);

/* graph_same - whether two were recorded for the same.
 * inputs  the number of the plan's inputs */
bool graph_same(const struct graph *a, const struct graph *b, size_t inputs);

/* graph_choose - the smallest recording that covers an execution: fewest rows, then the first
 * input's least dimensions and values, and so on.
 * returns  borrowed; NULL if none does */
const struct graph *graph_choose(const struct graph *graphs, size_t graph_count,
                                 const struct profile_given *given, size_t inputs);

/* graph_block - how the contents of a shape lie in those of a larger one: in pieces.
 * ret_elements  of a piece
 * returns       the number of pieces
 * graph_offset - where a piece begins in the larger one, in elements */
int64_t graph_block(const int64_t *small, const int64_t *large, size_t rank, int64_t *ret_elements);
int64_t graph_offset(const int64_t *small, const int64_t *large, size_t rank, int64_t piece);
