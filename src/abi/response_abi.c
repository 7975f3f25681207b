/* TRITONBACKEND_ functions about responses, their outputs, and response factories. */
#include "plugin/handle.h"
#include "infer/allocator.h"
#include "infer/buffer_attributes.h"
#include "infer/factory.h"
#include "infer/request.h"
#include "infer/response.h"
#include "model/config.h"
#include "triton/core/tritonbackend.h"

#include <string.h>

static const char final_rule[] =
    "the final response of the request was sent before; nothing may follow it";

TRITONSERVER_Error *TRITONBACKEND_ResponseNew(TRITONBACKEND_Response **response,
                                              TRITONBACKEND_Request *request)
{
    struct request *r = request_from(request);
    if (!r)
        return HANDLE_BROKEN(TOKEN_REQUEST, request);
    if (!r->lent)
        return HANDLE_RULE(handle_not_lent);
    *response = response_handle(response_new(r));
    return NULL;
}

TRITONSERVER_Error *TRITONBACKEND_ResponseFactoryNew(TRITONBACKEND_ResponseFactory **factory,
                                                     TRITONBACKEND_Request *request)
{
    struct request *r = request_from(request);
    if (!r)
        return HANDLE_BROKEN(TOKEN_REQUEST, request);
    if (!r->lent)
        return HANDLE_RULE(handle_not_lent);
    *factory = factory_new(r);
    return NULL;
}

TRITONSERVER_Error *TRITONBACKEND_ResponseFactoryDelete(TRITONBACKEND_ResponseFactory *factory)
{
    return factory_delete(factory) ? NULL : HANDLE_BROKEN(TOKEN_FACTORY, factory);
}

TRITONSERVER_Error *TRITONBACKEND_ResponseFactoryIsCancelled(TRITONBACKEND_ResponseFactory *factory,
                                                             bool *is_cancelled)
{
    struct request *r = factory_request(factory);
    if (!r)
        return HANDLE_BROKEN(TOKEN_FACTORY, factory);
    *is_cancelled = request_is_cancelled(r);
    request_unref(r);
    return NULL;
}

TRITONSERVER_Error *TRITONBACKEND_ResponseNewFromFactory(TRITONBACKEND_Response **response,
                                                         TRITONBACKEND_ResponseFactory *factory)
{
    struct request *r = factory_request(factory);
    if (!r)
        return HANDLE_BROKEN(TOKEN_FACTORY, factory);
    *response = response_handle(response_new(r));
    request_unref(r);
    return NULL;
}

TRITONSERVER_Error *TRITONBACKEND_ResponseFactorySendFlags(TRITONBACKEND_ResponseFactory *factory,
                                                           const uint32_t send_flags)
{
    struct request *r = factory_request(factory);
    if (!r)
        return HANDLE_BROKEN(TOKEN_FACTORY, factory);
    bool sent = response_send_flags(r, send_flags);
    request_unref(r);
    return sent ? NULL : HANDLE_RULE(final_rule);
}

TRITONSERVER_Error *TRITONBACKEND_ResponseDelete(TRITONBACKEND_Response *response)
{
    struct response *r = response_take(response);
    if (!r)
        return HANDLE_BROKEN(TOKEN_RESPONSE, response);
    response_free(r);
    return NULL;
}

TRITONSERVER_Error *TRITONBACKEND_ResponseSetStringParameter(TRITONBACKEND_Response *response,
                                                             const char *name, const char *value)
{
    struct response *r = response_from(response);
    if (!r)
        return HANDLE_BROKEN(TOKEN_RESPONSE, response);
    if (!name || !value)
        return HANDLE_NULL(name ? "value" : "name");
    param_add_string(&r->params, &r->arena, name, strlen(name), value, strlen(value));
    return NULL;
}

TRITONSERVER_Error *TRITONBACKEND_ResponseSetIntParameter(TRITONBACKEND_Response *response,
                                                          const char *name, const int64_t value)
{
    struct response *r = response_from(response);
    if (!r || !name)
        return r ? HANDLE_NULL("name") : HANDLE_BROKEN(TOKEN_RESPONSE, response);
    param_add(&r->params, &r->arena, name, strlen(name), PARAM_INT)->i = value;
    return NULL;
}

TRITONSERVER_Error *TRITONBACKEND_ResponseSetBoolParameter(TRITONBACKEND_Response *response,
                                                           const char *name, const bool value)
{
    struct response *r = response_from(response);
    if (!r || !name)
        return r ? HANDLE_NULL("name") : HANDLE_BROKEN(TOKEN_RESPONSE, response);
    param_add(&r->params, &r->arena, name, strlen(name), PARAM_BOOL)->b = value;
    return NULL;
}

TRITONSERVER_Error *TRITONBACKEND_ResponseSetDoubleParameter(TRITONBACKEND_Response *response,
                                                             const char *name, const double value)
{
    struct response *r = response_from(response);
    if (!r || !name)
        return r ? HANDLE_NULL("name") : HANDLE_BROKEN(TOKEN_RESPONSE, response);
    param_add(&r->params, &r->arena, name, strlen(name), PARAM_DOUBLE)->d = value;
    return NULL;
}

TRITONSERVER_Error *TRITONBACKEND_ResponseOutput(TRITONBACKEND_Response *response,
                                                 TRITONBACKEND_Output **output, const char *name,
                                                 const TRITONSERVER_DataType datatype,
                                                 const int64_t *shape, const uint32_t dims_count)
{
    struct response *r = response_from(response);
    if (!r)
        return HANDLE_BROKEN(TOKEN_RESPONSE, response);
    if (!name || (!shape && dims_count))
        return HANDLE_NULL(name ? "shape" : "name");
    if (r->output_count == RESPONSE_MAX_OUTPUTS)
        return handle_error(err_new(STATUS_INVALID_ARG,
                                    "expected at most %u outputs of a response, found output '%s'",
                                    RESPONSE_MAX_OUTPUTS, name));
    if (datatype <= TRITONSERVER_TYPE_INVALID || datatype > TRITONSERVER_TYPE_BF16)
        return handle_error(err_new(STATUS_INVALID_ARG,
                                    "model '%s': output '%s': %d is not a TRITONSERVER_DataType",
                                    r->request->config->name, name, (int)datatype));
    response_add_output(r, name, (enum datatype)datatype, shape, dims_count);
    *output = response_output_handle(r);
    return NULL;
}

TRITONSERVER_Error *TRITONBACKEND_OutputBuffer(TRITONBACKEND_Output *output, void **buffer,
                                               const uint64_t buffer_byte_size,
                                               TRITONSERVER_MemoryType *memory_type,
                                               int64_t *memory_type_id)
{
    struct response *r;
    struct tensor_output *o = response_output_from(output, &r);
    if (!o)
        return HANDLE_BROKEN(TOKEN_OUTPUT, output);
    *buffer = NULL;
    if (o->data)
        return handle_error(err_new(STATUS_ALREADY_EXISTS,
                                    "allocated buffer for output '%s' already exists", o->name));
    struct err *e = response_output_memory_for_backend(
        r, o, buffer_byte_size, (enum buf_memory) * memory_type, *memory_type_id);
    if (e)
        return handle_error(e);
    *buffer = o->data;
    *memory_type = (TRITONSERVER_MemoryType)o->memory;
    *memory_type_id = o->device;
    return NULL;
}

TRITONSERVER_Error *
TRITONBACKEND_OutputBufferAttributes(TRITONBACKEND_Output *output,
                                     TRITONSERVER_BufferAttributes **buffer_attributes)
{
    struct response *r;
    const struct tensor_output *t = response_output_from(output, &r);
    if (!t)
        return HANDLE_BROKEN(TOKEN_OUTPUT, output);
    struct buffer_attributes *b = allocator_attributes(t);
    if (!b) {
        b = arena_alloc(&r->arena, sizeof(*b));
        buffer_attributes_init(b, t->byte_size, t->memory, t->device);
    }
    *buffer_attributes = (TRITONSERVER_BufferAttributes *)b;
    return NULL;
}

static TRITONSERVER_Error *describe_output(const struct tensor_output *o,
                                           TRITONSERVER_DataType *datatype, const int64_t **shape,
                                           uint64_t *dim_count)
{
    if (datatype)
        *datatype = (TRITONSERVER_DataType)o->datatype;
    if (shape)
        *shape = o->shape;
    if (dim_count)
        *dim_count = o->rank;
    return NULL;
}

TRITONSERVER_Error *TRITONBACKEND_InferenceResponseOutputByName(TRITONBACKEND_Response *response,
                                                                const char *name,
                                                                TRITONSERVER_DataType *datatype,
                                                                const int64_t **shape,
                                                                uint64_t *dim_count)
{
    const struct response *r = response_from(response);
    if (!r)
        return HANDLE_BROKEN(TOKEN_RESPONSE, response);
    if (!name)
        return HANDLE_NULL("name");
    for (const struct tensor_output *o = r->outputs; o; o = o->next)
        if (strcmp(o->name, name) == 0)
            return describe_output(o, datatype, shape, dim_count);
    return handle_error(
        err_new(STATUS_NOT_FOUND, "the response has no output of the name '%s'", name));
}

TRITONSERVER_Error *TRITONBACKEND_InferenceResponseOutput(TRITONBACKEND_Response *response,
                                                          const uint32_t index, const char **name,
                                                          TRITONSERVER_DataType *datatype,
                                                          const int64_t **shape,
                                                          uint64_t *dim_count)
{
    const struct response *r = response_from(response);
    if (!r)
        return HANDLE_BROKEN(TOKEN_RESPONSE, response);
    if (index >= r->output_count)
        return handle_bounds("outputs", index, r->output_count);
    const struct tensor_output *o = r->outputs;
    for (uint32_t i = 0; i < index; i++)
        o = o->next;
    if (name)
        *name = o->name;
    return describe_output(o, datatype, shape, dim_count);
}

TRITONSERVER_Error *TRITONBACKEND_ResponseSend(TRITONBACKEND_Response *response,
                                               const uint32_t send_flags, TRITONSERVER_Error *error)
{
    struct response *r = response_take(response);
    if (!r)
        return HANDLE_BROKEN(TOKEN_RESPONSE, response);
    /* The backend owns the error and deletes it, so it is copied. */
    return response_send(r, send_flags, err_copy((struct err *)error)) ? NULL
                                                                       : HANDLE_RULE(final_rule);
}
