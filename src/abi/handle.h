#pragma once
/* How errors of the server appear in the C ABI: the same object under the name of the public headers. */
#include "base/err.h"
#include "triton/core/tritonserver.h"

/* handle_error - give an error to a caller of the ABI. NULL stays NULL. */
static inline TRITONSERVER_Error *handle_error(struct err *e)
{
    return (TRITONSERVER_Error *)e;
}
