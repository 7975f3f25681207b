#pragma once

#include <yyjson.h>

#include "libtorch.h"

/* What the parameters of a model's configuration ask for. */
struct options {
    struct libtorch_mode mode;
    bool shares_weights; /* ENABLE_WEIGHT_SHARING: the instances have one copy of the file */
};

/* options_begin - settle what models do not ask for: as many threads as the process may keep
 * busy. */
void options_begin(void);

/* options_read - read the parameters of a configuration. Numbers of threads count for all
 * models: the first model that names one settles it.
 * config   root of the model's configuration
 * errors   INVALID_ARG for a value that is none of the parameter's, naming both */
TRITONSERVER_Error *options_read(const char *model, yyjson_val *config,
                                 struct options *ret_options);

/* options_settle - no model has been executed before: what is not settled by then is. */
void options_settle(void);
