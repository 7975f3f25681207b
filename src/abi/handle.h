#pragma once
/* How errors of the server appear in the C ABI: the same object under the name of the public headers. */
#include "base/err.h"
#include "triton/core/tritonserver.h"

/* handle_error - give an error to a caller of the ABI. NULL stays NULL. */
static inline TRITONSERVER_Error *handle_error(struct err *e)
{
    return (TRITONSERVER_Error *)e;
}

/* handle_invalid - the INVALID_ARG for a handle that is NULL, or is not (any more) what `type` says. */
__attribute__((cold)) TRITONSERVER_Error *handle_invalid(const char *type);

/* handle_null - the INVALID_ARG for an argument that must not be NULL. */
__attribute__((cold)) TRITONSERVER_Error *handle_null(const char *argument);

/* handle_bounds - the INVALID_ARG for an index at or past `count`. */
__attribute__((cold)) TRITONSERVER_Error *handle_bounds(const char *what, uint64_t index,
                                                        uint64_t count);
