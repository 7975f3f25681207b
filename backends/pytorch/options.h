#pragma once

#include <yyjson.h>

#include "libtorch.h"

/* The settings in the parameters of a model's configuration. */
struct options {
    struct libtorch_mode mode;
    bool empties_cache;  /* ENABLE_CACHE_CLEANING: of GPUs, after each execution */
    bool shares_weights; /* ENABLE_WEIGHT_SHARING: all instances share one copy of the file */
    bool without_cudnn;  /* DISABLE_CUDNN */
    int intra_threads, inter_threads; /* 0 = not set */
};

/* options_begin - set the defaults of the process: as many threads as it may use processors. */
void options_begin(void);

/* options_read - read the parameters of a configuration.
 * config   root of the model's configuration
 * errors   INVALID_ARG for an invalid value, naming the parameter and the value */
TRITONSERVER_Error *options_read(const char *model, yyjson_val *config,
                                 struct options *ret_options);

/* options_apply - make the settings of a model that count for the whole process. Of numbers of
 * threads the first one decides; a later one is told. */
void options_apply(const char *model, const struct options *options);

/* options_settle - call it before the first model is executed: settings that are not made yet
 * get their defaults. */
void options_settle(void);
