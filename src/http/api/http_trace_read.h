#pragma once
/* What a client wants of the settings of traces, out of its JSON. Pure. */
#include "base/err.h"

#include <yyjson.h>

struct tracing_change;

/* http_trace_read - what is no object names nothing.
 * root    NULL is nothing
 * errors  INTERNAL, INVALID_ARG, UNSUPPORTED, in the order and the words of the reference */
struct err *http_trace_read(yyjson_val *root, struct tracing_change *ret);
