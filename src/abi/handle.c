#include "abi/handle.h"

#include <inttypes.h>

TRITONSERVER_Error *handle_invalid(const char *type)
{
    return handle_error(
        err_new(STATUS_INVALID_ARG, "expected a %s, found NULL or an object that is none", type));
}

TRITONSERVER_Error *handle_null(const char *argument)
{
    return handle_error(err_new(STATUS_INVALID_ARG, "'%s' must not be NULL", argument));
}

TRITONSERVER_Error *handle_bounds(const char *what, uint64_t index, uint64_t count)
{
    return handle_error(err_new(STATUS_INVALID_ARG,
                                "out of bounds index %" PRIu64 ": there are %" PRIu64 " %s", index,
                                count, what));
}
