#pragma once

#include <yyjson.h>

#include "../common/bcuda.h"

/* The settings in a model's configuration that are for TensorRT, and those of the command line. */

struct options {
    enum bcuda_priority priority; /* optimization.priority */
    bool grows;  /* execution_context_allocation_strategy ON_PROFILE_CHANGE, not STATIC */
    bool graphs; /* optimization.cuda.graphs: executions are recorded; which, graph.h says */
    bool busy;   /* optimization.cuda.busy_wait_events: who waits for the GPU does not sleep */
};

/* What all models share. */
struct runtime {
    bool host_code; /* version-compatible */
};

/* options_read - read the settings of a model.
 * config  the configuration's root
 * errors  INVALID_ARG for an invalid value; UNSUPPORTED for a setting that is not served, naming
 *         it */
TRITONSERVER_Error *options_read(const char *model, yyjson_val *config, struct options *ret);

/* options_of_backend - read the settings of the command line, and open the libraries that it names
 * as plug-ins, parted by semicolons; one that cannot be opened is logged.
 * cmdline  NULL is allowed
 * errors   INVALID_ARG for an invalid value, naming the setting
 *
 * Both log a line for each setting that is taken and changes nothing. */
TRITONSERVER_Error *options_of_backend(yyjson_val *cmdline, struct runtime *ret);
