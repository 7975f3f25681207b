#pragma once

#include <yyjson.h>

#include "trt.h"

/* Checks a configuration against a plan, with the reference's messages. No GPU and no TensorRT is
 * needed for what is here. */

/* What an input or output of a plan is in the configuration. */
struct check_role {
    bool configured; /* an input or output, a control of sequences or a state */
    bool served;     /* an output */
    bool is_state;   /* an output that becomes a state */
};

/* check_tensors - check names, data types and shapes, and that each input is given something.
 * model      its name, for errors
 * config     the configuration's root
 * tensors    `count` of the plan
 * ret_roles  one for each of them; all zero before
 * errors     INVALID_ARG or INTERNAL, naming the tensor; UNSUPPORTED for formats, data types and
 *            dimensions that are not served */
TRITONSERVER_Error *check_tensors(const char *model, yyjson_val *config,
                                  const struct trt_tensor *tensors, size_t count,
                                  struct check_role *ret_roles);

/* check_find - the place of a tensor in the list; `count` if it is not there. */
size_t check_find(const struct trt_tensor *tensors, size_t count, const char *name);
