#pragma once

#include "model.h"

/* execute_run - answer a batch of requests by copying their inputs.
 * handle    the instance, for statistics
 * requests  owned by the callee: each is answered with a result or its own error, and released
 * thread    one call at a time for an instance; allocates no memory, and waits only if the model
 *           is configured with a delay */
void execute_run(const struct instance *instance, TRITONBACKEND_ModelInstance *handle,
                 TRITONBACKEND_Request **requests, uint32_t request_count);
