/* TRITONBACKEND_ functions about responses, their outputs, and response factories. */
#include "abi/handle.h"
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
    *response = (TRITONBACKEND_Response *)response_new((struct request *)request);
    return NULL;
}

/* A factory is the request itself, held by one more reference. */
TRITONSERVER_Error *TRITONBACKEND_ResponseFactoryNew(TRITONBACKEND_ResponseFactory **factory,
                                                     TRITONBACKEND_Request *request)
{
    *factory = (TRITONBACKEND_ResponseFactory *)request_ref((struct request *)request);
    return NULL;
}

TRITONSERVER_Error *TRITONBACKEND_ResponseFactoryDelete(TRITONBACKEND_ResponseFactory *factory)
{
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
    *response = (TRITONBACKEND_Response *)response_new((struct request *)factory);
    return NULL;
}

TRITONSERVER_Error *TRITONBACKEND_ResponseFactorySendFlags(TRITONBACKEND_ResponseFactory *factory,
                                                           const uint32_t send_flags)
{
    struct response *r = response_new((struct request *)factory);
    r->empty = true;
    response_send(r, send_flags, NULL);
    return NULL;
}

TRITONSERVER_Error *TRITONBACKEND_ResponseDelete(TRITONBACKEND_Response *response)
{
    response_free(response_of(response));
    return NULL;
}

TRITONSERVER_Error *TRITONBACKEND_ResponseSetStringParameter(TRITONBACKEND_Response *response,
                                                             const char *name, const char *value)
{
    struct response *r = response_of(response);
    param_add_string(&r->params, &r->arena, name, strlen(name), value, strlen(value));
    return NULL;
}

TRITONSERVER_Error *TRITONBACKEND_ResponseSetIntParameter(TRITONBACKEND_Response *response,
                                                          const char *name, const int64_t value)
{
    struct response *r = response_of(response);
    param_add(&r->params, &r->arena, name, strlen(name), PARAM_INT)->i = value;
    return NULL;
}

TRITONSERVER_Error *TRITONBACKEND_ResponseSetBoolParameter(TRITONBACKEND_Response *response,
                                                           const char *name, const bool value)
{
    struct response *r = response_of(response);
    param_add(&r->params, &r->arena, name, strlen(name), PARAM_BOOL)->b = value;
    return NULL;
}

TRITONSERVER_Error *TRITONBACKEND_ResponseSetDoubleParameter(TRITONBACKEND_Response *response,
                                                             const char *name, const double value)
{
    struct response *r = response_of(response);
    param_add(&r->params, &r->arena, name, strlen(name), PARAM_DOUBLE)->d = value;
    return NULL;
}

TRITONSERVER_Error *TRITONBACKEND_ResponseOutput(TRITONBACKEND_Response *response,
                                                 TRITONBACKEND_Output **output, const char *name,
                                                 const TRITONSERVER_DataType datatype,
                                                 const int64_t *shape, const uint32_t dims_count)
{
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
    struct abi_output *o = (struct abi_output *)output;
    *buffer = NULL;
    struct err *e = response_output_buffer(o->response, o->output, buffer_byte_size);
    if (e)
        return handle_error(e);
    *buffer = o->output->data;
    *memory_type = (TRITONSERVER_MemoryType)o->output->memory;
    *memory_type_id = o->output->device;
    return NULL;
}

TRITONSERVER_Error *TRITONBACKEND_ResponseSend(TRITONBACKEND_Response *response,
                                               const uint32_t send_flags, TRITONSERVER_Error *error)
{
    /* The error is only lent to us: the backend deletes it. */
    response_send(response_of(response), send_flags, err_copy((struct err *)error));
    return NULL;
}
