/* TRITONSERVER_InferenceRequest functions: create a request, set its properties and its
 * callbacks. Inputs and outputs are in infer_tensor_abi.c. */
#include "plugin/handle.h"
#include "base/mem.h"
#include "infer/allocator.h"
#include "abi/draft.h"
#include "infer/request.h"
#include "abi/call.h"
#include "serve/table.h"
#include "serve/version.h"
#include "server/embed.h"
#include "server/server.h"

#include <inttypes.h>
#include <string.h>

static const char type[] = "TRITONSERVER_InferenceRequest";

TRITONSERVER_Error *
TRITONSERVER_InferenceRequestNew(TRITONSERVER_InferenceRequest **inference_request,
                                 TRITONSERVER_Server *server, const char *model_name,
                                 const int64_t model_version)
{
    struct server *s = embed_server_of(server);
    if (!s || !model_name)
        return s ? HANDLE_NULL("model_name") : handle_invalid("TRITONSERVER_Server");
    struct table_view view;
    struct serve_version *v;
    table_view_open(&view, s->table, NULL);
    struct err *e = table_find(&view, model_name, strlen(model_name), model_version, &v);
    table_view_close(&view);
    if (e)
        return handle_error(e);
    /* The version was only needed to check that it exists: a draft that is not sent must not
     * keep a model loaded. */
    version_unpin(v);
    *inference_request = (TRITONSERVER_InferenceRequest *)draft_new(model_name, model_version);
    return NULL;
}

TRITONSERVER_Error *
TRITONSERVER_InferenceRequestDelete(TRITONSERVER_InferenceRequest *inference_request)
{
    struct draft *d = draft_of(inference_request);
    if (inference_request && !d)
        return handle_invalid(type);
    if (d && draft_busy(d))
        return handle_error(err_new(STATUS_INVALID_ARG,
                                    "the server has this request for model '%s', it was not "
                                    "released: it cannot be deleted",
                                    d->model));
    draft_free(d);
    return NULL;
}

TRITONSERVER_Error *
TRITONSERVER_InferenceRequestId(TRITONSERVER_InferenceRequest *inference_request, const char **id)
{
    const struct draft *d = draft_of(inference_request);
    if (!d)
        return handle_invalid(type);
    *id = d->id;
    return NULL;
}

TRITONSERVER_Error *
TRITONSERVER_InferenceRequestSetId(TRITONSERVER_InferenceRequest *inference_request, const char *id)
{
    struct draft *d = draft_of(inference_request);
    if (!d)
        return handle_invalid(type);
    if (!id)
        return HANDLE_NULL("id");
    draft_set_text(&d->id, id);
    return NULL;
}

TRITONSERVER_Error *
TRITONSERVER_InferenceRequestFlags(TRITONSERVER_InferenceRequest *inference_request,
                                   uint32_t *flags)
{
    const struct draft *d = draft_of(inference_request);
    if (!d)
        return handle_invalid(type);
    *flags = d->flags;
    return NULL;
}

TRITONSERVER_Error *
TRITONSERVER_InferenceRequestSetFlags(TRITONSERVER_InferenceRequest *inference_request,
                                      uint32_t flags)
{
    struct draft *d = draft_of(inference_request);
    if (!d)
        return handle_invalid(type);
    d->flags = flags;
    return NULL;
}

TRITONSERVER_Error *
TRITONSERVER_InferenceRequestCorrelationId(TRITONSERVER_InferenceRequest *inference_request,
                                           uint64_t *correlation_id)
{
    const struct draft *d = draft_of(inference_request);
    if (!d)
        return handle_invalid(type);
    if (d->correlation_string)
        return handle_error(
            err_new(STATUS_INVALID_ARG, "given request's correlation id is not an unsigned int"));
    *correlation_id = d->correlation_id;
    return NULL;
}

TRITONSERVER_Error *
TRITONSERVER_InferenceRequestCorrelationIdString(TRITONSERVER_InferenceRequest *inference_request,
                                                 const char **correlation_id)
{
    const struct draft *d = draft_of(inference_request);
    if (!d)
        return handle_invalid(type);
    if (!d->correlation_string)
        return handle_error(
            err_new(STATUS_INVALID_ARG, "given request's correlation id is not a string"));
    *correlation_id = d->correlation_string;
    return NULL;
}

TRITONSERVER_Error *
TRITONSERVER_InferenceRequestSetCorrelationId(TRITONSERVER_InferenceRequest *inference_request,
                                              uint64_t correlation_id)
{
    struct draft *d = draft_of(inference_request);
    if (!d)
        return handle_invalid(type);
    d->correlation_id = correlation_id;
    draft_set_text(&d->correlation_string, NULL);
    return NULL;
}

TRITONSERVER_Error *TRITONSERVER_InferenceRequestSetCorrelationIdString(
    TRITONSERVER_InferenceRequest *inference_request, const char *correlation_id)
{
    struct draft *d = draft_of(inference_request);
    if (!d)
        return handle_invalid(type);
    if (!correlation_id)
        return HANDLE_NULL("correlation_id");
    if (strlen(correlation_id) > REQUEST_MAX_CORRELATION)
        return handle_error(err_new(STATUS_UNSUPPORTED,
                                    "string correlation ID cannot be longer than %u characters",
                                    REQUEST_MAX_CORRELATION));
    draft_set_text(&d->correlation_string, correlation_id);
    return NULL;
}

TRITONSERVER_Error *
TRITONSERVER_InferenceRequestCancel(TRITONSERVER_InferenceRequest *inference_request)
{
    struct draft *d = draft_of(inference_request);
    if (!d)
        return handle_invalid(type);
    return handle_error(call_cancel(d));
}

TRITONSERVER_Error *
TRITONSERVER_InferenceRequestIsCancelled(TRITONSERVER_InferenceRequest *inference_request,
                                         bool *is_cancelled)
{
    struct draft *d = draft_of(inference_request);
    if (!d)
        return handle_invalid(type);
    return handle_error(draft_is_cancelled(d, is_cancelled));
}

TRITONSERVER_Error *
TRITONSERVER_InferenceRequestPriority(TRITONSERVER_InferenceRequest *inference_request,
                                      uint32_t *priority)
{
    const struct draft *d = draft_of(inference_request);
    if (!d)
        return handle_invalid(type);
    if (d->priority > UINT32_MAX)
        return handle_error(
            err_new(STATUS_INVALID_ARG,
                    "request priority overflows uint32_t, use "
                    "TRITONSERVER_InferenceRequestPriorityUInt64, priority=%" PRIu64,
                    d->priority));
    *priority = (uint32_t)d->priority;
    return NULL;
}

TRITONSERVER_Error *
TRITONSERVER_InferenceRequestPriorityUInt64(TRITONSERVER_InferenceRequest *inference_request,
                                            uint64_t *priority)
{
    const struct draft *d = draft_of(inference_request);
    if (!d)
        return handle_invalid(type);
    *priority = d->priority;
    return NULL;
}

TRITONSERVER_Error *
TRITONSERVER_InferenceRequestSetPriority(TRITONSERVER_InferenceRequest *inference_request,
                                         uint32_t priority)
{
    struct draft *d = draft_of(inference_request);
    if (!d)
        return handle_invalid(type);
    d->priority = priority;
    return NULL;
}

TRITONSERVER_Error *
TRITONSERVER_InferenceRequestSetPriorityUInt64(TRITONSERVER_InferenceRequest *inference_request,
                                               uint64_t priority)
{
    struct draft *d = draft_of(inference_request);
    if (!d)
        return handle_invalid(type);
    d->priority = priority;
    return NULL;
}

TRITONSERVER_Error *
TRITONSERVER_InferenceRequestTimeoutMicroseconds(TRITONSERVER_InferenceRequest *inference_request,
                                                 uint64_t *timeout_us)
{
    const struct draft *d = draft_of(inference_request);
    if (!d)
        return handle_invalid(type);
    *timeout_us = d->timeout_us;
    return NULL;
}

TRITONSERVER_Error *TRITONSERVER_InferenceRequestSetTimeoutMicroseconds(
    TRITONSERVER_InferenceRequest *inference_request, uint64_t timeout_us)
{
    struct draft *d = draft_of(inference_request);
    if (!d)
        return handle_invalid(type);
    d->timeout_us = timeout_us;
    return NULL;
}

TRITONSERVER_Error *TRITONSERVER_InferenceRequestSetReleaseCallback(
    TRITONSERVER_InferenceRequest *inference_request,
    TRITONSERVER_InferenceRequestReleaseFn_t request_release_fn, void *request_release_userp)
{
    struct draft *d = draft_of(inference_request);
    if (!d || !request_release_fn)
        return d ? HANDLE_NULL("request_release_fn") : handle_invalid(type);
    d->release = request_release_fn;
    d->release_userp = request_release_userp;
    return NULL;
}

TRITONSERVER_Error *TRITONSERVER_InferenceRequestSetResponseCallback(
    TRITONSERVER_InferenceRequest *inference_request,
    TRITONSERVER_ResponseAllocator *response_allocator, void *response_allocator_userp,
    TRITONSERVER_InferenceResponseCompleteFn_t response_fn, void *response_userp)
{
    struct draft *d = draft_of(inference_request);
    struct allocator *a = allocator_of(response_allocator);
    if (!d || !response_fn)
        return d ? HANDLE_NULL("response_fn") : handle_invalid(type);
    if (!a)
        return handle_invalid("TRITONSERVER_ResponseAllocator");
    d->allocator = a;
    d->allocator_userp = response_allocator_userp;
    d->respond = response_fn;
    d->respond_userp = response_userp;
    return NULL;
}

static struct param *infer_request_abi_add_param(struct draft *d, const char *key,
                                                 enum param_type param_type)
{
    return param_add(&d->params, &d->param_arena, key, strlen(key), param_type);
}

TRITONSERVER_Error *
TRITONSERVER_InferenceRequestSetStringParameter(TRITONSERVER_InferenceRequest *request,
                                                const char *key, const char *value)
{
    struct draft *d = draft_of(request);
    if (!d || !key || !value)
        return d ? HANDLE_NULL(key ? "value" : "key") : handle_invalid(type);
    param_add_string(&d->params, &d->param_arena, key, strlen(key), value, strlen(value));
    return NULL;
}

TRITONSERVER_Error *
TRITONSERVER_InferenceRequestSetIntParameter(TRITONSERVER_InferenceRequest *request,
                                             const char *key, const int64_t value)
{
    struct draft *d = draft_of(request);
    if (!d || !key)
        return d ? HANDLE_NULL("key") : handle_invalid(type);
    infer_request_abi_add_param(d, key, PARAM_INT)->i = value;
    return NULL;
}

TRITONSERVER_Error *
TRITONSERVER_InferenceRequestSetBoolParameter(TRITONSERVER_InferenceRequest *request,
                                              const char *key, const bool value)
{
    struct draft *d = draft_of(request);
    if (!d || !key)
        return d ? HANDLE_NULL("key") : handle_invalid(type);
    infer_request_abi_add_param(d, key, PARAM_BOOL)->b = value;
    return NULL;
}

TRITONSERVER_Error *
TRITONSERVER_InferenceRequestSetDoubleParameter(TRITONSERVER_InferenceRequest *request,
                                                const char *key, const double value)
{
    struct draft *d = draft_of(request);
    if (!d || !key)
        return d ? HANDLE_NULL("key") : handle_invalid(type);
    infer_request_abi_add_param(d, key, PARAM_DOUBLE)->d = value;
    return NULL;
}
