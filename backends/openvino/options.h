#pragma once

#include <stdbool.h>
#include <yyjson.h>

#include "vino.h"

/* What the parameters of a model's configuration ask for. */

enum { OPTIONS_MAX_PROPERTIES = 8, OPTIONS_MAX_VALUE = 256 };

struct options {
    char device[OPTIONS_MAX_VALUE]; /* TARGET_DEVICE, in capitals; "CPU" */
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

/* options_read - read the parameters of a configuration. What is not given: as many threads as
 * the process may use processors, and as many streams as the model has instances.
 * config   root of the model's configuration; outlives the options
 * errors   INVALID_ARG, in the words of the reference, for a value that is none of the
 *          parameter's */
TRITONSERVER_Error *options_read(const struct vino *vino, yyjson_val *config,
                                 struct options *ret_options);
