#pragma once

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
    int64_t index; /* index of the result; -1 = the name is its key in a dictionary */
    bool served;   /* it is an output of the configuration */
    bool is_state; /* of sequences */
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
    struct libtorch_module *module;
    atomic_flag taken; /* an instance uses the module alone */
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

/* model_load - read the file again.
 * ret_module  owned by the caller: libtorch_free */
TRITONSERVER_Error *model_load(const struct model *model, struct libtorch_module **ret_module);
