#pragma once

#include <yyjson.h>

#include "triton/core/tritonserver.h"
#include "wire.h"

/* Parameters of requests and responses: the server has them one by one, a stub as JSON. */

/* One of the server's functions that give a parameter by its number. */
typedef TRITONSERVER_Error *parameters_get_fn(void *of, uint32_t i, const char **ret_name,
                                              TRITONSERVER_ParameterType *ret_type,
                                              const void **ret_value);

/* parameters_put - write `count` parameters for a stub.
 * errors  of `get`; INVALID_ARG for a type that JSON has not; no memory */
TRITONSERVER_Error *parameters_put(struct wire_out *out, uint32_t count, parameters_get_fn *get,
                                   void *of);

/* Gives the server one parameter. */
typedef TRITONSERVER_Error *parameters_set_fn(void *of, const char *name, yyjson_val *value);

/* parameters_take - read what a stub wrote, and set each parameter.
 * errors  the first of `set` */
TRITONSERVER_Error *parameters_take(struct wire_in *in, parameters_set_fn *set, void *of);
