#pragma once

#include "model.h"

/* sequence_check_controls - check the inputs by which the sequence batcher tells a model about
 * start, end, readiness and correlation id.
 * sequence   the configuration's sequence_batching; NULL allowed
 * ret_count  inputs of the model that are controls
 * errors     INVALID_ARG or INTERNAL, naming the control */
TRITONSERVER_Error *sequence_check_controls(const struct model *model, yyjson_val *sequence,
                                            size_t *ret_count);
