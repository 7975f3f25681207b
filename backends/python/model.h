#pragma once

#include <pthread.h>
#include <stdbool.h>

#include "environment.h"
#include "options.h"
#include "triton/core/tritonbackend.h"

struct host;

/* What all models share: the backend's state. */
struct runtime {
    struct options *options;
    struct environments *environments;
};

/* A loaded version of a model. */
struct model {
    TRITONBACKEND_Model *handle;
    TRITONSERVER_Server *server;
    const struct runtime *runtime;
    char *name, *repository, *file, *config; /* config: JSON */
    struct environment *environment;         /* NULL = none */
    uint64_t version;
    bool decoupled;
    bool gpu_inputs; /* those that lie on the GPU of an instance are given to it there */
    int64_t max_batch_size;
    uint64_t execute_ns; /* how long an execution may take; 0 = as long as it likes */
    pthread_mutex_t lock;
    struct host *spare; /* guarded by lock: completed the configuration; the first instance's */
};
