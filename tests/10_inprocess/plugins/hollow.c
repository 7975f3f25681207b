/* A backend without TRITONBACKEND_ModelInstanceExecute. */
#include "triton/core/tritonbackend.h"

#include <stddef.h>

TRITONBACKEND_ISPEC TRITONSERVER_Error *TRITONBACKEND_ModelInitialize(TRITONBACKEND_Model *model)
{
    (void)model;
    return NULL;
}
