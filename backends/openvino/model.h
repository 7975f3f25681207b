#pragma once

#include <stdatomic.h>

#include "../common/bfind.h"
#include "../common/brun.h"
#include "options.h"

/* A loaded model: compiled once for all its instances, and the description of its tensors.
 * Read-only once model_init has returned, except for atomics. */

/* Whether an output had its declared shape in earlier runs. */
enum model_promise { PROMISE_UNTRIED, PROMISE_KEPT, PROMISE_BROKEN };

struct model_tensor {
    char *name; /* OpenVINO's memory */
    ov_element_type_e element;
    TRITONSERVER_DataType datatype;
    size_t rank;
    int64_t dims[BRUN_MAX_DIMS]; /* -1 = any */

    /* Outputs only. */
    bool served;        /* the configuration lists it */
    size_t served_rank; /* if the rank is 0 in the model: the shape in the configuration */
    int64_t served_dims[BRUN_MAX_DIMS];
    atomic_int promise; /* enum model_promise; only a hint */
};

struct model_list {
    size_t count;
    struct model_tensor *tensors; /* in the runtime's order: the index is the port's index */
};

struct model {
    const struct vino *vino;
    TRITONBACKEND_Model *handle;
    const char *name; /* borrowed from the handle */
    yyjson_doc *config_doc;
    yyjson_val *config;
    int64_t max_batch_size;
    bool batching_filled_in; /* max_batch_size is not of the configuration's file */
    bool has_state;          /* variables: an infer request keeps them from run to run */
    int64_t fixed_batch;     /* the only batch size of the compiled model; 0 = any */
    struct options options;
    char *path;          /* of the model's file */
    ov_core_t *own_core; /* of a model with its own operators; else NULL */
    ov_model_t *graph;   /* only while it loads */
    struct model_list inputs, outputs;
    ov_compiled_model_t *compiled;
};

/* model_read - read the file into model->graph, replacing the earlier graph. */
TRITONSERVER_Error *model_read(struct model *model);

/* model_find - find a tensor by name.
 * returns  NULL if there is none */
static inline struct model_tensor *model_find(const struct model_list *list, const char *name)
{
    return bfind_named(list->tensors, list->count, sizeof *list->tensors, name);
}
