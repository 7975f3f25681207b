#include "plugin/handle.h"

#include "base/log.h"
#include "base/mem.h"
#include "plugin/offender.h"

#include <inttypes.h>

static const struct {
    const char *type;
    const char *rule;
} kinds[] = {
    [TOKEN_REQUEST] = {"TRITONBACKEND_Request",
                       "the request was released before; it ends for the backend with that"},
    [TOKEN_INPUT] = {"TRITONBACKEND_Input",
                     "the request of the input was released before; its inputs end with that"},
    [TOKEN_FACTORY] = {"TRITONBACKEND_ResponseFactory", "the response factory was deleted before"},
    [TOKEN_RESPONSE] = {"TRITONBACKEND_Response",
                        "the response was sent or deleted before; it ends for the backend with "
                        "either"},
    [TOKEN_OUTPUT] = {"TRITONBACKEND_Output", "the response of the output was sent or deleted "
                                              "before; its outputs end with that"},
};

const char handle_not_lent[] =
    "the request was not given to the backend to execute it, so it still belongs to the server";

TRITONSERVER_Error *handle_rule(const char *function, const char *rule, const void *caller)
{
    char *who = offender_name(caller);
    LOG_ERROR("%s broke a rule: %s: %s", who, function, rule);
    mem_free(who);
    return handle_error(err_new(STATUS_INVALID_ARG, "%s: %s", function, rule));
}

TRITONSERVER_Error *handle_broken(const char *function, enum token_kind kind, const void *handle,
                                  const void *caller)
{
    if (token_was(handle, kind))
        return handle_rule(function, kinds[kind].rule, caller);
    TRITONSERVER_Error *e = handle_invalid(kinds[kind].type);
    if (handle) {
        char *who = offender_name(caller);
        LOG_ERROR("%s broke a rule: %s: %s", who, function, err_message((struct err *)e));
        mem_free(who);
    }
    return e;
}

TRITONSERVER_Error *handle_invalid(const char *type)
{
    return handle_error(
        err_new(STATUS_INVALID_ARG, "expected a %s, found NULL or an object that is none", type));
}

TRITONSERVER_Error *handle_null(const char *function, const char *argument)
{
    return handle_error(
        err_new(STATUS_INVALID_ARG, "%s: '%s' must not be NULL", function, argument));
}

TRITONSERVER_Error *handle_bounds(const char *what, uint64_t index, uint64_t count)
{
    return handle_error(err_new(STATUS_INVALID_ARG,
                                "out of bounds index %" PRIu64 ": there are %" PRIu64 " %s", index,
                                count, what));
}
