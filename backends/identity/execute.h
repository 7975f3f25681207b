#pragma once

#include "model.h"

/* execute_run - answer a batch of requests by copying their inputs.
 * handle    the instance, for statistics
 * requests  taken over: each is answered with a result or an error of its own, and released
 * thread    one call at a time for an instance; makes no allocation, and waits only when the model
 *           asks for a delay */
void execute_run(const struct instance *instance, TRITONBACKEND_ModelInstance *handle,
                 TRITONBACKEND_Request **requests, uint32_t request_count);
