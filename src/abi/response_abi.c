/* TRITONBACKEND_ functions about responses, their outputs, and response factories. */
#include "abi/handle.h"
#include "infer/allocator.h"
#include "infer/buffer_attributes.h"
#include "infer/request.h"
#include "infer/response.h"
#include "model/config.h"
#include "triton/core/tritonbackend.h"

#include <string.h>

/* An output as the ABI hands it out must lead back to its response, for the memory of its buffer. */
struct abi_output {
    struct response *response;
    struct tensor_output *output;
};

static struct response *response_of(TRITONBACKEND_Response *response)
{
    return (struct response *)response;
}

TRITONSERVER_Error *TRITONBACKEND_ResponseNew(TRITONBACKEND_Response **response,
                                              TRITONBACKEND_Request *request)
{
    if (!request)
        return handle_invalid("TRITONBACKEND_Request");
    *response = (TRITONBACKEND_Response *)response_new((struct request *)request);
    return NULL;
}

/* A factory is the request itself, held by one more reference. */
TRITONSERVER_Error *TRITONBACKEND_ResponseFactoryNew(TRITONBACKEND_ResponseFactory **factory,
                                                     TRITONBACKEND_Request *request)
{
    if (!request)
        return handle_invalid("TRITONBACKEND_Request");
    *factory = (TRITONBACKEND_ResponseFactory *)request_ref((struct request *)request);
    return NULL;
}

TRITONSERVER_Error *TRITONBACKEND_ResponseFactoryDelete(TRITONBACKEND_ResponseFactory *factory)
{
    if (!factory)
        return handle_invalid("TRITONBACKEND_ResponseFactory");
    request_unref((struct request *)factory);
    return NULL;
}

TRITONSERVER_Error *TRITONBACKEND_ResponseFactoryIsCancelled(TRITONBACKEND_ResponseFactory *factory,
                                                             bool *is_cancelled)
{
    return TRITONBACKEND_RequestIsCancelled((TRITONBACKEND_Request *)factory, is_cancelled);
}

TRITONSERVER_Error *TRITONBACKEND_ResponseNewFromFactory(TRITONBACKEND_Response **response,
                                                         TRITONBACKEND_ResponseFactory *factory)
{
    if (!factory)
        return handle_invalid("TRITONBACKEND_ResponseFactory");
    *response = (TRITONBACKEND_Response *)response_new((struct request *)factory);
    return NULL;
}

TRITONSERVER_Error *TRITONBACKEND_ResponseFactorySendFlags(TRITONBACKEND_ResponseFactory *factory,
                                                           const uint32_t send_flags)
{
    if (!factory)
        return handle_invalid("TRITONBACKEND_ResponseFactory");
    response_send_flags((struct request *)factory, send_flags);
    return NULL;
}

TRITONSERVER_Error *TRITONBACKEND_ResponseDelete(TRITONBACKEND_Response *response)
{
    if (!response)
        return handle_invalid("TRITONBACKEND_Response");
    response_free(response_of(response));
    return NULL;
}

TRITONSERVER_Error *TRITONBACKEND_ResponseSetStringParameter(TRITONBACKEND_Response *response,
                                                             const char *name, const char *value)
{
    if (!response)
        return handle_invalid("TRITONBACKEND_Response");
    struct response *r = response_of(response);
    param_add_string(&r->params, &r->arena, name, strlen(name), value, strlen(value));
    return NULL;
}

TRITONSERVER_Error *TRITONBACKEND_ResponseSetIntParameter(TRITONBACKEND_Response *response,
                                                          const char *name, const int64_t value)
{
    if (!response)
        return handle_invalid("TRITONBACKEND_Response");
    struct response *r = response_of(response);
    param_add(&r->params, &r->arena, name, strlen(name), PARAM_INT)->i = value;
    return NULL;
}

TRITONSERVER_Error *TRITONBACKEND_ResponseSetBoolParameter(TRITONBACKEND_Response *response,
                                                           const char *name, const bool value)
{
    if (!response)
        return handle_invalid("TRITONBACKEND_Response");
    struct response *r = response_of(response);
    param_add(&r->params, &r->arena, name, strlen(name), PARAM_BOOL)->b = value;
    return NULL;
}

TRITONSERVER_Error *TRITONBACKEND_ResponseSetDoubleParameter(TRITONBACKEND_Response *response,
                                                             const char *name, const double value)
{
    if (!response)
        return handle_invalid("TRITONBACKEND_Response");
    struct response *r = response_of(response);
    param_add(&r->params, &r->arena, name, strlen(name), PARAM_DOUBLE)->d = value;
    return NULL;
}

TRITONSERVER_Error *TRITONBACKEND_ResponseOutput(TRITONBACKEND_Response *response,
                                                 TRITONBACKEND_Output **output, const char *name,
                                                 const TRITONSERVER_DataType datatype,
                                                 const int64_t *shape, const uint32_t dims_count)
{
    if (!response)
        return handle_invalid("TRITONBACKEND_Response");
    struct response *r = response_of(response);
    struct abi_output *o = arena_alloc(&r->arena, sizeof(*o));
    o->response = r;
    o->output = response_add_output(r, name, (enum datatype)datatype, shape, dims_count);
    *output = (TRITONBACKEND_Output *)o;
    return NULL;
}

TRITONSERVER_Error *TRITONBACKEND_OutputBuffer(TRITONBACKEND_Output *output, void **buffer,
                                               const uint64_t buffer_byte_size,
                                               TRITONSERVER_MemoryType *memory_type,
                                               int64_t *memory_type_id)
{
    if (!output)
        return handle_invalid("TRITONBACKEND_Output");
    struct abi_output *o = (struct abi_output *)output;
    *buffer = NULL;
    if (o->output->data)
        return handle_error(err_new(STATUS_ALREADY_EXISTS,
                                    "allocated buffer for output '%s' already exists",
                                    o->output->name));
    struct err *e = o->response->request->allocator
                        ? allocator_output(o->response, o->output, buffer_byte_size, *memory_type,
                                           *memory_type_id)
                        : response_output_buffer(o->response, o->output, buffer_byte_size);
    if (e)
        return handle_error(e);
    *buffer = o->output->data;
    *memory_type = (TRITONSERVER_MemoryType)o->output->memory;
    *memory_type_id = o->output->device;
    return NULL;
}

TRITONSERVER_Error *
TRITONBACKEND_OutputBufferAttributes(TRITONBACKEND_Output *output,
                                     TRITONSERVER_BufferAttributes **buffer_attributes)
{
    if (!output)
        return handle_invalid("TRITONBACKEND_Output");
    struct abi_output *o = (struct abi_output *)output;
    if (!o)
        return handle_invalid("TRITONBACKEND_Output");
    const struct tensor_output *t = o->output;
    struct buffer_attributes *b = allocator_attributes(t);
    if (!b) {
        b = arena_alloc(&o->response->arena, sizeof(*b));
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
    if (!response || !name)
        return response ? handle_null("name") : handle_invalid("TRITONBACKEND_Response");
    for (const struct tensor_output *o = response_of(response)->outputs; o; o = o->next)
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
    if (!response)
        return handle_invalid("TRITONBACKEND_Response");
    const struct response *r = response_of(response);
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
    if (!response)
        return handle_invalid("TRITONBACKEND_Response");
    /* The error is only lent to us: the backend deletes it. */
    response_send(response_of(response), send_flags, err_copy((struct err *)error));
    return NULL;
}
