#pragma once

#include "asked.h"

/* The metrics that a model makes. */

/* metrics_do - do one of the operations on metrics.
 * ret_number, ret_real  what comes of it
 * errors  of the server; INVALID_ARG for what is no metric or family */
TRITONSERVER_Error *metrics_do(struct host *host, uint32_t op, const struct asked_value *values,
                               size_t count, int64_t *ret_number, double *ret_real);

/* metrics_free - delete the metrics of a stub that is gone. */
void metrics_free(struct host *host);
