#pragma once

#include "../common/bcuda.h"
#include "engine.h"
#include "graph.h"

/* Memory for one input or output. */
struct room {
    void *memory; /* grows when an execution needs more */
    uint64_t size;
    void *fixed; /* where recordings have it; NULL = in none */
    uint64_t fixed_size;
};

/* What was recorded under a profile: graph.h. */
struct graph_set {
    struct graph *graphs;
    size_t count;
};

/* An instance of a model: what one execution needs in addition to the engine. */
struct instance {
    struct brun_place place;
    const char *name; /* borrowed from the handle */
    struct model *model;
    struct engine *engine;
    struct bcuda *cuda;
    size_t profile_count; /* those that the configuration names, or the first */
    struct profile *profiles;
    struct trt_context **contexts; /* one for each profile */
    struct graph_set *recorded;    /* one for each profile; NULL = nothing is */
    struct room *rooms;            /* one for each input and output of the engine */
};

/* instance_room - memory of the GPU for an input or output of an execution, aligned as TensorRT
 * wants it. What it held before is gone.
 * ret  until the next call for this tensor; never NULL */
TRITONSERVER_Error *instance_room(struct instance *instance, size_t tensor, uint64_t size,
                                  void **ret);
