#pragma once

#include "model.h"

/* The configuration against the model, in the words of the reference. */

/* check_inputs - before the graph is prepared: number, names, data types and shapes of the
 * inputs.
 * errors   INVALID_ARG naming the model and the tensor; INTERNAL for a data type that OpenVINO
 *          does not have */
TRITONSERVER_Error *check_inputs(const struct model *model);

/* check_outputs - after that: names, data types and shapes of the outputs; marks those that are
 * served.
 * errors   as check_inputs */
TRITONSERVER_Error *check_outputs(struct model *model);

/* check_read_shape - the shape in which the backend sees a tensor of the configuration: reshape
 * where there is one, else dims.
 * ret_dims  room for BRUN_MAX_DIMS
 * errors    INVALID_ARG for more dimensions than that */
TRITONSERVER_Error *check_read_shape(const struct model *model, yyjson_val *entry,
                                     int64_t *ret_dims, size_t *ret_rank);
