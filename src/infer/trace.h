#pragma once
/* What happens to one request, told to callbacks: the TRITONSERVER_InferenceTrace of the C ABI.
 * A request that is not traced has none and pays for none. */
#include "model/datatype.h"
#include "os/clock.h"
#include "triton/core/tritonserver.h"

#include <stdint.h>

struct request;
struct response;
struct trace;

/* The callbacks of a trace and of the child traces that it spawns. They run on the thread on
 * which the event happens. */
struct trace_listener {
    TRITONSERVER_InferenceTraceActivityFn_t activity;     /* NULL = no callback */
    TRITONSERVER_InferenceTraceTensorActivityFn_t tensor; /* NULL = no callback */
    TRITONSERVER_InferenceTraceReleaseFn_t release;
    void *userp;
    /* An activity with a name of its own, in place of `activity`. NULL = it is told there. */
    void (*named)(struct trace *t, const char *name, time_ns when, void *userp);
    /* Each trace holds a reference on userp from its beginning to its end. NULL = it does not. */
    void (*ref)(void *userp);
    void (*unref)(void *userp);
};

/* trace_new - make a trace with its own number. level: bits of TRITONSERVER_InferenceTraceLevel;
 * parent: 0 = none. */
struct trace *trace_new(uint32_t level, uint64_t parent, const struct trace_listener *listener);

/* trace_spawn - make a child with the same level and listener. */
struct trace *trace_spawn(const struct trace *t);
void trace_free(struct trace *t);

/* trace_of - the object behind an ABI handle; NULL if the handle is none. */
struct trace *trace_of(const void *handle);

/* trace_request - r, which is about to be submitted, is traced by t, which is its own from here
 * on: who it is for, REQUEST_START at r->times.start, its inputs, QUEUE_START. */
void trace_request(struct request *r, struct trace *t, const char *model, int64_t version);

/* trace_report - report a time stamp, if the level includes them. */
void trace_report(struct trace *t, TRITONSERVER_InferenceTraceActivity activity, time_ns when);

/* trace_report_custom - report an activity with a name, which is kept in the context under its
 * time. */
void trace_report_custom(struct trace *t, time_ns when, const char *name);

/* trace_inputs, trace_outputs - report the contents of tensors, if the level includes them.
 * r->trace, or r->request->trace, is set. */
void trace_inputs(const struct request *r, TRITONSERVER_InferenceTraceActivity activity);
void trace_outputs(const struct response *r, TRITONSERVER_InferenceTraceActivity activity);

/* trace_tensor - the contents of one, if the level has them. data is borrowed for the call. */
void trace_tensor(struct trace *t, TRITONSERVER_InferenceTraceActivity activity, const char *name,
                  enum datatype datatype, const void *data, size_t bytes, const int64_t *shape,
                  uint64_t rank);

/* trace_release - nothing more will be reported: the listener owns it from here on. */
void trace_release(struct trace *t);

/* trace_activity_name - as traces name it; static. */
const char *trace_activity_name(TRITONSERVER_InferenceTraceActivity activity);

/* trace_handle - what the C ABI gives out for it. */
TRITONSERVER_InferenceTrace *trace_handle(struct trace *t);

uint64_t trace_id(const struct trace *t);
uint64_t trace_parent(const struct trace *t);
const char *trace_model(const struct trace *t);
int64_t trace_version(const struct trace *t);
const char *trace_request_id(const struct trace *t);

/* trace_context, trace_set_context - JSON text, copied; "" at first. Valid until it changes. */
const char *trace_context(struct trace *t);
void trace_set_context(struct trace *t, const char *json);
