#pragma once
/* The backend of a decoupled model inside a fuzzer: it answers a request as often as its parameter
 * `count` says, else its INPUT1 (1; 16 at most), with its inputs: INPUTn comes back as OUTPUTn. The response whose
 * number is `fail_at` is an error. */
#include "triton/core/tritonbackend.h"

TRITONSERVER_Error *fuzz_recite_execute(TRITONBACKEND_ModelInstance *instance,
                                        TRITONBACKEND_Request **requests, const uint32_t count);
