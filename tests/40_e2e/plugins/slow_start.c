/* A backend that is not ready before somebody opens the pipe named by SLOW_START_DOOR to write. */
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "triton/core/tritonbackend.h"

TRITONSERVER_Error *TRITONBACKEND_Initialize(TRITONBACKEND_Backend *backend)
{
    (void)backend;
    int door = open(getenv("SLOW_START_DOOR"), O_RDONLY | O_CLOEXEC);
    if (door >= 0)
        close(door);
    return NULL;
}

TRITONSERVER_Error *TRITONBACKEND_ModelInstanceExecute(TRITONBACKEND_ModelInstance *instance,
                                                       TRITONBACKEND_Request **requests,
                                                       const uint32_t count)
{
    (void)instance;
    (void)requests;
    (void)count;
    return TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_UNSUPPORTED, "nothing is run here");
}
