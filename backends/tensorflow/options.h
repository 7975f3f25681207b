#pragma once

#include <yyjson.h>

#include "../common/wire.h"
#include "runtime.h"

/* The settings of a model's configuration for TensorFlow. */

/* Where an instance computes: a GPU, by its number, or one of these. */
enum { OPTIONS_ON_CPU = -1, OPTIONS_BY_MODEL = -2 };

struct options {
    const char *tag;       /* of the graph in a SavedModel; borrowed, like the next two */
    const char *signature; /* NULL = the default one */
    const char *init_ops;  /* the file with the initial operations; NULL = none */
    int64_t share_count;   /* how many instances share a session */
    int32_t place;         /* of the first instance */
    /* of instances that are not on the CPU */
    bool wants_tensorrt, mixed_precision, gpu_io;
    struct wire_out on_cpu, on_devices; /* ConfigProtos of sessions, on the CPU and elsewhere */
};

/* options_read - read the parameters, the graph level and the accelerators.
 * config       the configuration's root; outlives the options
 * ret_options  zeros, or options that these take the place of; owned by the caller: options_free
 * errors       INVALID_ARG naming the model and the setting */
TRITONSERVER_Error *options_read(const struct runtime *runtime, const char *model,
                                 yyjson_val *config, struct options *ret_options);

/* options_tell - log what of the accelerators has no effect: on the CPU they have none.
 * config  that of the options */
void options_tell(const char *model, yyjson_val *config, const struct options *options);

/* options_free - free what options hold; zeros are allowed. */
void options_free(struct options *options);
