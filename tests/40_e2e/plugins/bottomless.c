/* A backend whose execution calls itself until its thread has no stack left. */
#include "triton/core/tritonbackend.h"

static volatile int depth;

static int fall(volatile char *above)
{
    volatile char room[4096];
    room[0] = above ? above[0] : 1;
    if (depth++ < 0)
        return 0;
    return fall(room) + room[0];
}

TRITONSERVER_Error *TRITONBACKEND_ModelInstanceExecute(TRITONBACKEND_ModelInstance *instance,
                                                       TRITONBACKEND_Request **requests,
                                                       const uint32_t count)
{
    (void)instance;
    (void)requests;
    (void)count;
    depth = fall(0);
    return 0;
}
