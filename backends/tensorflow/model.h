#pragma once

#include <pthread.h>

#include "../common/bfind.h"
#include "../common/bcomputed.h"
#include "options.h"
#include "session.h"

/* A loaded model: its tensors, and where they are in its graph. Read-only once model_init has
 * returned, except for the session that instances share. */

struct model_tensor {
    char *name;   /* its name in requests */
    char *source; /* in the graph: an operation, or one of its results as "operation:1" */
    TF_DataType type;
    TRITONSERVER_DataType datatype;
    bool has_shape; /* false: the file does not say */
    size_t rank;
    int64_t dims[BRUN_MAX_DIMS]; /* -1 = any */

    /* Inputs only. */
    bool ragged;                  /* its shapes may differ within a batch */
    enum bcomputed_kind computed; /* not an input of requests */
    size_t told_by;               /* of a computed input: the input whose shapes are used */

    /* Outputs only. */
    bool served;     /* the configuration lists it */
    bool is_state;   /* the server keeps it for the sequence */
    bool is_divided; /* divided among requests by the shapes of an input */
    size_t divided_by;
    size_t served_rank;
    int64_t served_dims[BRUN_MAX_DIMS]; /* of the configuration */
};

struct model_list {
    size_t count;
    struct model_tensor *tensors;
};

struct model {
    const struct runtime *runtime;
    TRITONBACKEND_Model *handle;
    const char *name; /* borrowed from the handle */
    yyjson_doc *config_doc;
    yyjson_val *config;
    int64_t max_batch_size;
    struct options options;
    char *path; /* of the model's file or directory */
    /* a GraphDef, which does not describe its inputs and outputs; else a SavedModel */
    bool is_graph;
    struct model_list inputs, outputs;
    size_t given_count; /* inputs of requests; computed inputs follow them */

    pthread_mutex_t lock;     /* guards sessions, and who uses them */
    struct session *sessions; /* all; the first that is opened is used by no instance for a while */
};

/* model_find - find a tensor by its name in requests.
 * returns  NULL if there is none */
static inline struct model_tensor *model_find(const struct model_list *list, const char *name)
{
    return bfind_named(list->tensors, list->count, sizeof *list->tensors, name);
}

/* model_take_session - the session for one more instance: one that others of its place use if it
 * has room, else a new one.
 * place        a GPU, or OPTIONS_ON_CPU or OPTIONS_BY_MODEL
 * ret_session  given back with model_leave_session */
TRITONSERVER_Error *model_take_session(struct model *model, int32_t place,
                                       struct session **ret_session);

/* model_leave_session - an instance ends. */
void model_leave_session(struct model *model, struct session *session);
