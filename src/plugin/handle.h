#pragma once
/* The errors of the server as the C ABI shows them: the same object under the name of the public
 * headers. */
#include "base/err.h"
#include "base/token.h"
#include "triton/core/tritonserver.h"

/* handle_error - pass an error to a caller of the ABI. NULL stays NULL. */
static inline TRITONSERVER_Error *handle_error(struct err *e)
{
    return (TRITONSERVER_Error *)e;
}

/* handle_invalid - the INVALID_ARG for a handle that is NULL, stale, or not of the kind `type`. */
__attribute__((cold)) TRITONSERVER_Error *handle_invalid(const char *type);

/* HANDLE_BROKEN - as handle_invalid, for a function that plug-ins call. A stale or wrong handle
 * is also logged, with the rule and the plug-in that broke it. NULL is not logged. */
#define HANDLE_BROKEN(kind, handle) \
    handle_broken(__func__, (kind), (handle), __builtin_return_address(0))
__attribute__((cold)) TRITONSERVER_Error *handle_broken(const char *function, enum token_kind kind,
                                                        const void *handle, const void *caller);

/* HANDLE_RULE - a plug-in's call broke a rule of the ABI: log it, and return the INVALID_ARG for
 * the plug-in. */
#define HANDLE_RULE(rule) handle_rule(__func__, (rule), __builtin_return_address(0))
__attribute__((cold)) TRITONSERVER_Error *handle_rule(const char *function, const char *rule,
                                                      const void *caller);

/* The rule of calls that only who was given a request to execute it may make. */
extern const char handle_not_lent[];

/* HANDLE_NULL - the INVALID_ARG for an argument that must not be NULL; it names the function. */
#define HANDLE_NULL(argument) handle_null(__func__, (argument))
__attribute__((cold)) TRITONSERVER_Error *handle_null(const char *function, const char *argument);

/* handle_bounds - the INVALID_ARG for an index at or past `count`. */
__attribute__((cold)) TRITONSERVER_Error *handle_bounds(const char *what, uint64_t index,
                                                        uint64_t count);
