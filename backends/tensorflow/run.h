#pragma once

#include "instance.h"

/* run_requests - answer requests: brun_requests on TensorFlow.
 * requests  owned by the callee
 * thread    one call at a time for an instance */
void run_requests(struct instance *instance, TRITONBACKEND_Request **requests, uint32_t count);
