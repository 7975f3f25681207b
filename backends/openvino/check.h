#pragma once

#include "model.h"

/* Checks the configuration against the model, with the reference's messages. */

/* check_inputs - call it before the graph is prepared: checks number, names, data types and
 * shapes of the inputs.
 * errors   INVALID_ARG naming the model and the tensor; INTERNAL for a data type that OpenVINO
 *          does not have */
TRITONSERVER_Error *check_inputs(const struct model *model);

/* check_outputs - call it after that: checks names, data types and shapes of the outputs, and
 * marks those that are served.
 * errors   as check_inputs */
TRITONSERVER_Error *check_outputs(struct model *model);

/* check_warn_of_types - log a line for each tensor whose data type the runtime does not compute
 * with; call it when the tensors have the types that clients see.
 * kind     "input" or "output" */
void check_warn_of_types(const struct model *model, const char *kind,
                         const struct model_list *list);

/* check_read_shape - the shape that the backend sees for an entry of the configuration: reshape
 * if there is one, else dims.
 * ret_dims  room for BRUN_MAX_DIMS
 * errors    INVALID_ARG for more dimensions than that */
TRITONSERVER_Error *check_read_shape(const struct model *model, yyjson_val *entry,
                                     int64_t *ret_dims, size_t *ret_rank);
