#pragma once

#include <pthread.h>

#include "../common/brun.h"
#include "options.h"

/* A loaded model. Read-only once model_init has returned, except for its engines. */

struct engine;

struct model {
    TRITONBACKEND_Model *handle;
    const char *name; /* borrowed from the handle */
    const struct runtime *runtime;
    yyjson_doc *config_doc;
    yyjson_val *config;
    int64_t max_batch_size;
    struct options options;
    pthread_mutex_t lock;
    struct engine *engines; /* under `lock`; engine.c's */
};
