#pragma once

#include <stdbool.h>
#include <yyjson.h>

#include "vino.h"

/* The settings in the parameters of a model's configuration. */

enum { OPTIONS_MAX_PROPERTIES = 8, OPTIONS_MAX_VALUE = 256 };

struct options {
    char device[OPTIONS_MAX_VALUE]; /* TARGET_DEVICE, in capitals; default "CPU" */
    const char *extension;          /* CPU_EXTENSION_PATH, borrowed from the configuration; NULL */
    bool fixed_batch;               /* SKIP_OV_DYNAMIC_BATCHSIZE */
    bool pads;                      /* ENABLE_BATCH_PADDING */
    bool reshapes;                  /* RESHAPE_IO_LAYERS */
    size_t property_count;
    struct {
        const char *key; /* OpenVINO's name */
        char value[OPTIONS_MAX_VALUE];
    } properties[OPTIONS_MAX_PROPERTIES];
};

/* options_read - read the parameters of a configuration. Defaults: as many threads as the
 * process has processors, and as many streams as the model has instances.
 * config   root of the model's configuration; outlives the options
 * errors   INVALID_ARG, in the reference's words, for an invalid value of a parameter */
TRITONSERVER_Error *options_read(const struct vino *vino, yyjson_val *config,
                                 struct options *ret_options);
