#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include "../common/brun.h"
#include "options.h"

/* A loaded model: its file in memory, and which tensor of the configuration is which argument or
 * result. Read-only once model_init has returned, except for atomics. */

struct model_input {
    const char *name; /* borrowed from the configuration */
    TRITONSERVER_DataType datatype;
    size_t argument;
    int64_t element; /* its index in an argument that is a list */
};

struct model_output {
    const char *name; /* borrowed from the configuration */
    TRITONSERVER_DataType datatype;
    int64_t index; /* index of the result, unless the name is its key; -1 = it is a key */
    bool served;   /* it is an output of the configuration */
    bool is_state; /* of sequences */
};

/* The file in memory, on one device. Instances share a copy only if the model is configured so. */
struct model_copy {
    struct model_copy *next;
    int32_t device; /* a GPU, or LIBTORCH_CPU */
    struct libtorch_module *module;
    uint32_t users;
    bool alone; /* not listed: its one instance frees it */
};

struct model {
    TRITONBACKEND_Model *handle;
    const char *name; /* borrowed from the handle */
    yyjson_doc *config_doc;
    yyjson_val *config;
    int64_t max_batch_size;
    struct options options;
    bool is_package; /* of AOTInductor; else TorchScript */
    char *path;      /* of the model's file */
    pthread_mutex_t lock;
    struct model_copy *copies;      /* under `lock`: the first that was read, and what is shared */
    struct libtorch_module *module; /* borrowed of the first, which is the last of the list */
    bool was_on_gpu;                /* under `lock` */
    const struct libtorch_argument *arguments;
    size_t argument_count; /* that a call gets; later ones have default values */
    size_t input_count;
    struct model_input *inputs; /* in the order of the arguments and of list elements */
    size_t output_count;
    struct model_output *outputs;
    bool serves_all; /* the configuration lists no outputs */
    /* the least number of rows that a package takes, once a run has shown it; 0 = not known yet.
     * Only a hint */
    _Atomic int64_t least_rows;
};

/* model_take_copy - get the file in memory of a device, for an instance; reads it if need be.
 * ret_copy  given back with model_give_copy */
TRITONSERVER_Error *model_take_copy(struct model *model, int32_t device,
                                    struct model_copy **ret_copy);

/* model_give_copy - NULL is allowed. */
void model_give_copy(struct model *model, struct model_copy *copy);
