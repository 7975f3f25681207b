#pragma once

#include "triton/core/tritonbackend.h"

struct host;

/* instance_revive - see to it that a host's stub runs and has the model in it; one that has died is
 * started again. The thread that executes.
 * errors  it does not; the next call tries again, not before a second has passed */
TRITONSERVER_Error *instance_revive(struct host *host);
