#pragma once
/* What happens to one request, told to callbacks: the TRITONSERVER_InferenceTrace of the C ABI.
 * A request that is not traced has none and pays for none. */
#include "os/clock.h"
#include "triton/core/tritonserver.h"

#include <stdint.h>

struct request;
struct response;
struct trace;

/* Who listens to a trace and to the children that it spawns; callbacks run on whichever thread
 * gets there. */
struct trace_listener {
    TRITONSERVER_InferenceTraceActivityFn_t activity;     /* NULL = not wanted */
    TRITONSERVER_InferenceTraceTensorActivityFn_t tensor; /* NULL = not wanted */
    TRITONSERVER_InferenceTraceReleaseFn_t release;
    void *userp;
};

/* trace_new - level: bits of TRITONSERVER_InferenceTraceLevel; parent: 0 = none. The trace gets
 * a number of its own. */
struct trace *trace_new(uint32_t level, uint64_t parent, const struct trace_listener *listener);

/* trace_spawn - a child with the same level and listener. */
struct trace *trace_spawn(const struct trace *t);
void trace_free(struct trace *t);

/* trace_of - the object behind an ABI handle; NULL when it is none. */
struct trace *trace_of(const void *handle);

/* trace_begin - the trace is for this request now; names are copied. */
void trace_begin(struct trace *t, const char *model, int64_t version, const char *request_id);

/* trace_report - a time stamp, if the level has them. */
void trace_report(struct trace *t, TRITONSERVER_InferenceTraceActivity activity, time_ns when);

/* trace_report_custom - an activity with a name, which is kept in the context under its time. */
void trace_report_custom(struct trace *t, time_ns when, const char *name);

/* trace_inputs, trace_outputs - the contents of tensors, if the level has them. r->trace,
 * r->request->trace are set. */
void trace_inputs(const struct request *r, TRITONSERVER_InferenceTraceActivity activity);
void trace_outputs(const struct response *r, TRITONSERVER_InferenceTraceActivity activity);

/* trace_release - nothing more will be reported: the listener owns it from here on. */
void trace_release(struct trace *t);

uint64_t trace_id(const struct trace *t);
uint64_t trace_parent(const struct trace *t);
const char *trace_model(const struct trace *t);
int64_t trace_version(const struct trace *t);
const char *trace_request_id(const struct trace *t);

/* trace_context, trace_set_context - JSON text, copied; "" at first. Valid until it changes. */
const char *trace_context(struct trace *t);
void trace_set_context(struct trace *t, const char *json);
