/* TRITONSERVER_InferenceTrace functions. */
#include "plugin/handle.h"
#include "infer/trace.h"

static const char type[] = "TRITONSERVER_InferenceTrace";

const char *TRITONSERVER_InferenceTraceLevelString(TRITONSERVER_InferenceTraceLevel level)
{
    switch (level) {
    case TRITONSERVER_TRACE_LEVEL_DISABLED:
        return "DISABLED";
    case TRITONSERVER_TRACE_LEVEL_MIN:
        return "MIN";
    case TRITONSERVER_TRACE_LEVEL_MAX:
        return "MAX";
    case TRITONSERVER_TRACE_LEVEL_TIMESTAMPS:
        return "TIMESTAMPS";
    case TRITONSERVER_TRACE_LEVEL_TENSORS:
        return "TENSORS";
    }
    return "<unknown>";
}

const char *TRITONSERVER_InferenceTraceActivityString(TRITONSERVER_InferenceTraceActivity activity)
{
    return trace_activity_name(activity);
}

TRITONSERVER_Error *
TRITONSERVER_InferenceTraceNew(TRITONSERVER_InferenceTrace **trace,
                               TRITONSERVER_InferenceTraceLevel level, uint64_t parent_id,
                               TRITONSERVER_InferenceTraceActivityFn_t activity_fn,
                               TRITONSERVER_InferenceTraceReleaseFn_t release_fn, void *trace_userp)
{
    return TRITONSERVER_InferenceTraceTensorNew(trace, level, parent_id, activity_fn, NULL,
                                                release_fn, trace_userp);
}

TRITONSERVER_Error *TRITONSERVER_InferenceTraceTensorNew(
    TRITONSERVER_InferenceTrace **trace, TRITONSERVER_InferenceTraceLevel level, uint64_t parent_id,
    TRITONSERVER_InferenceTraceActivityFn_t activity_fn,
    TRITONSERVER_InferenceTraceTensorActivityFn_t tensor_activity_fn,
    TRITONSERVER_InferenceTraceReleaseFn_t release_fn, void *trace_userp)
{
    if (!release_fn)
        return HANDLE_NULL("release_fn");
    struct trace_listener listener = {.activity = activity_fn,
                                      .tensor = tensor_activity_fn,
                                      .release = release_fn,
                                      .userp = trace_userp};
    *trace = (TRITONSERVER_InferenceTrace *)trace_new((uint32_t)level, parent_id, &listener);
    return NULL;
}

TRITONSERVER_Error *TRITONSERVER_InferenceTraceReportActivity(TRITONSERVER_InferenceTrace *trace,
                                                              uint64_t timestamp,
                                                              const char *activity_name)
{
    struct trace *t = trace_of(trace);
    if (!t || !activity_name)
        return t ? HANDLE_NULL("activity_name") : handle_invalid(type);
    trace_report_custom(t, timestamp, activity_name);
    return NULL;
}

TRITONSERVER_Error *TRITONSERVER_InferenceTraceDelete(TRITONSERVER_InferenceTrace *trace)
{
    struct trace *t = trace_of(trace);
    if (trace && !t)
        return handle_invalid(type);
    trace_free(t);
    return NULL;
}

TRITONSERVER_Error *TRITONSERVER_InferenceTraceId(TRITONSERVER_InferenceTrace *trace, uint64_t *id)
{
    const struct trace *t = trace_of(trace);
    if (!t)
        return handle_invalid(type);
    *id = trace_id(t);
    return NULL;
}

TRITONSERVER_Error *TRITONSERVER_InferenceTraceParentId(TRITONSERVER_InferenceTrace *trace,
                                                        uint64_t *parent_id)
{
    const struct trace *t = trace_of(trace);
    if (!t)
        return handle_invalid(type);
    *parent_id = trace_parent(t);
    return NULL;
}

TRITONSERVER_Error *TRITONSERVER_InferenceTraceModelName(TRITONSERVER_InferenceTrace *trace,
                                                         const char **model_name)
{
    const struct trace *t = trace_of(trace);
    if (!t)
        return handle_invalid(type);
    *model_name = trace_model(t);
    return NULL;
}

TRITONSERVER_Error *TRITONSERVER_InferenceTraceModelVersion(TRITONSERVER_InferenceTrace *trace,
                                                            int64_t *model_version)
{
    const struct trace *t = trace_of(trace);
    if (!t)
        return handle_invalid(type);
    *model_version = trace_version(t);
    return NULL;
}

TRITONSERVER_Error *TRITONSERVER_InferenceTraceRequestId(TRITONSERVER_InferenceTrace *trace,
                                                         const char **request_id)
{
    const struct trace *t = trace_of(trace);
    if (!t)
        return handle_invalid(type);
    *request_id = trace_request_id(t);
    return NULL;
}

TRITONSERVER_Error *
TRITONSERVER_InferenceTraceSpawnChildTrace(TRITONSERVER_InferenceTrace *trace,
                                           TRITONSERVER_InferenceTrace **child_trace)
{
    const struct trace *t = trace_of(trace);
    if (!t)
        return handle_invalid(type);
    *child_trace = (TRITONSERVER_InferenceTrace *)trace_spawn(t);
    return NULL;
}

TRITONSERVER_Error *TRITONSERVER_InferenceTraceSetContext(TRITONSERVER_InferenceTrace *trace,
                                                          const char *trace_context)
{
    struct trace *t = trace_of(trace);
    if (!t || !trace_context)
        return t ? HANDLE_NULL("trace_context") : handle_invalid(type);
    trace_set_context(t, trace_context);
    return NULL;
}

TRITONSERVER_Error *TRITONSERVER_InferenceTraceContext(TRITONSERVER_InferenceTrace *trace,
                                                       const char **context)
{
    struct trace *t = trace_of(trace);
    if (!t)
        return handle_invalid(type);
    *context = trace_context(t);
    return NULL;
}
