#pragma once

#include "model.h"

/* sequence_check_controls - check the inputs through which the sequence batcher passes start,
 * end, ready and the correlation id.
 * sequence   the configuration's sequence_batching; NULL allowed
 * ret_count  number of the model's inputs that are controls
 * errors     INVALID_ARG or INTERNAL, naming the control */
TRITONSERVER_Error *sequence_check_controls(const struct model *model, yyjson_val *sequence,
                                            size_t *ret_count);
