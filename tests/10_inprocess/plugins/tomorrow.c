/* A backend that needs a function which no server of today has. */
#include "triton/core/tritonbackend.h"

TRITONSERVER_Error *TRITONBACKEND_OfTomorrow(TRITONBACKEND_ModelInstance *instance);

TRITONBACKEND_ISPEC TRITONSERVER_Error *
TRITONBACKEND_ModelInstanceExecute(TRITONBACKEND_ModelInstance *instance,
                                   TRITONBACKEND_Request **requests, const uint32_t count)
{
    (void)requests;
    (void)count;
    return TRITONBACKEND_OfTomorrow(instance);
}
