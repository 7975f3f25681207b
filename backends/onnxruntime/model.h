#pragma once

#include <stdatomic.h>
#include <yyjson.h>

#include "../common/bfind.h"
#include "../common/brun.h"
#include "ort.h"

/* A loaded model: its sessions, and the description of its tensors. Read-only once model_init has
 * returned, except for atomics and what the lock is for. */

/* Whether an output had its declared shape in earlier runs. */
enum model_promise { PROMISE_UNTRIED, PROMISE_KEPT, PROMISE_BROKEN };

struct batch_input;
struct session;

struct model_tensor {
    char *name; /* memory of the ONNX Runtime that it was read with */
    ONNXTensorElementDataType type;
    TRITONSERVER_DataType datatype;
    size_t rank;
    int64_t dims[BRUN_MAX_DIMS]; /* as declared in the model; -1 = any */

    /* Inputs only. */
    bool initializer; /* has a default, so it may be missing */
    bool ragged;      /* requests of a batch may have different shapes; the model gets one row */

    /* Outputs only. */
    bool served;        /* the configuration lists it as an output */
    bool is_state;      /* the configuration lists it as a state of sequences */
    size_t served_rank; /* if the rank is 0 in the model: the shape in the configuration */
    int64_t served_dims[BRUN_MAX_DIMS];
    /* the input whose shape divides it; NULL = divided by rows */
    const struct model_tensor *divided_by;
    atomic_int promise; /* enum model_promise; only a hint */
};

struct model {
    struct ort *ort;        /* that of the process; a session may have another one */
    const OrtApi *read_api; /* of the session that the tensors were read from */
    TRITONBACKEND_Model *handle;
    const char *name; /* borrowed from the handle */
    yyjson_doc *config_doc;
    yyjson_val *config;
    int64_t max_batch_size;
    bool batching_filled_in; /* max_batch_size is not of the configuration's file */
    bool is_netdef; /* Caffe2's: translated, and what its tensors are the configuration says */
    pthread_mutex_t lock;   /* for the sessions */
    struct session *on_cpu; /* that of all instances on the CPU; NULL until it is needed */
    struct session *spare;  /* for the first instance on a GPU; NULL once it is taken */
    size_t input_count;     /* required inputs first, then initializers */
    size_t required_count;
    struct model_tensor *inputs;
    size_t output_count;
    struct model_tensor *outputs;
    size_t batch_input_count;
    struct batch_input *batch_inputs; /* computed from the batch; owned by batch_io.c */
};

/* model_find - find a tensor by name.
 * returns  NULL if there is none */
static inline struct model_tensor *model_find(struct model_tensor *tensors, size_t count,
                                              const char *name)
{
    return bfind_named(tensors, count, sizeof *tensors, name);
}
