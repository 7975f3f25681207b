#pragma once
/* The W3C trace context: which trace of a larger system a request belongs to. Pure.
 * source  W3C Trace Context, "traceparent Header" */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TRACING_TRACE_ID_BYTES  16u
#define TRACING_SPAN_ID_BYTES   8u
#define TRACING_CONTEXT_BYTES   56u  /* a traceparent and its NUL */
#define TRACING_MAX_STATE_BYTES 512u /* a longer tracestate is left out, as the source allows */

struct tracing_context {
    uint8_t trace_id[TRACING_TRACE_ID_BYTES];
    uint8_t span_id[TRACING_SPAN_ID_BYTES];
    uint8_t flags;
};

/* tracing_context_parse - false: it is none, and the request begins a trace of its own. */
bool tracing_context_parse(const char *text, size_t len, struct tracing_context *ret);

/* tracing_context_format - as version 00. */
void tracing_context_format(const struct tracing_context *c, char ret[TRACING_CONTEXT_BYTES]);

/* tracing_context_state_fits - whether a tracestate may be passed on as it is: not too long, and
 * of characters that a header has. */
bool tracing_context_state_fits(const char *text, size_t len);
