/* TRITONBACKEND_ functions about requests and their inputs. */
#include "abi/handle.h"
#include "infer/request.h"
#include "triton/core/tritonbackend.h"

#include <inttypes.h>
#include <string.h>

static struct request *request_of(TRITONBACKEND_Request *request)
{
    return (struct request *)request;
}

static struct tensor_input *input_of(TRITONBACKEND_Input *input)
{
    return (struct tensor_input *)input;
}

static TRITONSERVER_Error *out_of_bounds(const char *what, uint32_t index, uint32_t count)
{
    return handle_error(err_new(STATUS_INVALID_ARG,
                                "out of bounds index %" PRIu32 ": there are %" PRIu32 " %s", index,
                                count, what));
}

TRITONSERVER_Error *TRITONBACKEND_RequestId(TRITONBACKEND_Request *request, const char **id)
{
    *id = request_of(request)->id;
    return NULL;
}

TRITONSERVER_Error *TRITONBACKEND_RequestIsCancelled(TRITONBACKEND_Request *request,
                                                     bool *is_cancelled)
{
    *is_cancelled = atomic_load_explicit(&request_of(request)->cancelled, memory_order_relaxed);
    return NULL;
}

TRITONSERVER_Error *TRITONBACKEND_RequestCorrelationId(TRITONBACKEND_Request *request, uint64_t *id)
{
    const struct request *r = request_of(request);
    if (r->correlation_string)
        return handle_error(
            err_new(STATUS_INVALID_ARG,
                    "the correlation id of the request is the string '%s', not a number",
                    r->correlation_string));
    *id = r->correlation_id;
    return NULL;
}

TRITONSERVER_Error *TRITONBACKEND_RequestCorrelationIdString(TRITONBACKEND_Request *request,
                                                             const char **id)
{
    const struct request *r = request_of(request);
    if (!r->correlation_string)
        return handle_error(err_new(STATUS_INVALID_ARG,
                                    "the correlation id of the request is the number %" PRIu64
                                    ", not a string",
                                    r->correlation_id));
    *id = r->correlation_string;
    return NULL;
}

TRITONSERVER_Error *
TRITONBACKEND_InferenceRequestTimeoutMicroseconds(TRITONBACKEND_Request *request, uint64_t *timeout)
{
    *timeout = request_of(request)->timeout_us;
    return NULL;
}

TRITONSERVER_Error *TRITONBACKEND_RequestFlags(TRITONBACKEND_Request *request, uint32_t *flags)
{
    *flags = request_of(request)->flags;
    return NULL;
}

TRITONSERVER_Error *TRITONBACKEND_RequestParameterCount(TRITONBACKEND_Request *request,
                                                        uint32_t *count)
{
    *count = request_of(request)->params.count;
    return NULL;
}

TRITONSERVER_Error *TRITONBACKEND_RequestParameter(TRITONBACKEND_Request *request,
                                                   const uint32_t index, const char **key,
                                                   TRITONSERVER_ParameterType *type,
                                                   const void **vvalue)
{
    const struct param_list *l = &request_of(request)->params;
    if (index >= l->count)
        return out_of_bounds("parameters", index, l->count);
    const struct param *p = l->first;
    for (uint32_t i = 0; i < index; i++)
        p = p->next;
    *key = p->name;
    *type = (TRITONSERVER_ParameterType)p->type;
    bool bytes = p->type == PARAM_STRING || p->type == PARAM_BYTES;
    *vvalue = bytes ? (const void *)p->bytes.data : (const void *)&p->i;
    return NULL;
}

TRITONSERVER_Error *TRITONBACKEND_RequestInputCount(TRITONBACKEND_Request *request, uint32_t *count)
{
    *count = request_of(request)->input_count;
    return NULL;
}

TRITONSERVER_Error *TRITONBACKEND_RequestInputName(TRITONBACKEND_Request *request,
                                                   const uint32_t index, const char **input_name)
{
    const struct request *r = request_of(request);
    if (index >= r->input_count)
        return out_of_bounds("inputs", index, r->input_count);
    *input_name = r->inputs[index].name;
    return NULL;
}

TRITONSERVER_Error *TRITONBACKEND_RequestInput(TRITONBACKEND_Request *request, const char *name,
                                               TRITONBACKEND_Input **input)
{
    struct request *r = request_of(request);
    for (uint32_t i = 0; i < r->input_count; i++)
        if (strcmp(r->inputs[i].name, name) == 0) {
            *input = (TRITONBACKEND_Input *)&r->inputs[i];
            return NULL;
        }
    return handle_error(request_error(r, "unknown request input name %s", name));
}

TRITONSERVER_Error *TRITONBACKEND_RequestInputByIndex(TRITONBACKEND_Request *request,
                                                      const uint32_t index,
                                                      TRITONBACKEND_Input **input)
{
    struct request *r = request_of(request);
    if (index >= r->input_count)
        return out_of_bounds("inputs", index, r->input_count);
    *input = (TRITONBACKEND_Input *)&r->inputs[index];
    return NULL;
}

TRITONSERVER_Error *TRITONBACKEND_RequestOutputCount(TRITONBACKEND_Request *request,
                                                     uint32_t *count)
{
    *count = request_of(request)->output_count;
    return NULL;
}

TRITONSERVER_Error *TRITONBACKEND_RequestOutputName(TRITONBACKEND_Request *request,
                                                    const uint32_t index, const char **output_name)
{
    const struct request *r = request_of(request);
    if (index >= r->output_count)
        return out_of_bounds("requested outputs", index, r->output_count);
    *output_name = r->outputs[index];
    return NULL;
}

TRITONSERVER_Error *TRITONBACKEND_RequestRelease(TRITONBACKEND_Request *request,
                                                 uint32_t release_flags)
{
    if (release_flags != TRITONSERVER_REQUEST_RELEASE_ALL)
        return handle_error(err_new(STATUS_UNSUPPORTED,
                                    "TRITONBACKEND_RequestRelease: release flags %" PRIu32
                                    " are not supported, only TRITONSERVER_REQUEST_RELEASE_ALL",
                                    release_flags));
    request_release(request_of(request));
    return NULL;
}

TRITONSERVER_Error *TRITONBACKEND_InputProperties(TRITONBACKEND_Input *input, const char **name,
                                                  TRITONSERVER_DataType *datatype,
                                                  const int64_t **shape, uint32_t *dims_count,
                                                  uint64_t *byte_size, uint32_t *buffer_count)
{
    const struct tensor_input *in = input_of(input);
    if (name)
        *name = in->name;
    if (datatype)
        *datatype = (TRITONSERVER_DataType)in->datatype;
    if (shape)
        *shape = in->model_shape;
    if (dims_count)
        *dims_count = in->model_rank;
    if (byte_size)
        *byte_size = in->byte_size;
    if (buffer_count)
        *buffer_count = in->piece_count;
    return NULL;
}

TRITONSERVER_Error *
TRITONBACKEND_InputPropertiesForHostPolicy(TRITONBACKEND_Input *input, const char *host_policy_name,
                                           const char **name, TRITONSERVER_DataType *datatype,
                                           const int64_t **shape, uint32_t *dims_count,
                                           uint64_t *byte_size, uint32_t *buffer_count)
{
    (void)host_policy_name; /* no input has buffers of its own for a policy */
    return TRITONBACKEND_InputProperties(input, name, datatype, shape, dims_count, byte_size,
                                         buffer_count);
}

TRITONSERVER_Error *TRITONBACKEND_InputBuffer(TRITONBACKEND_Input *input, const uint32_t index,
                                              const void **buffer, uint64_t *buffer_byte_size,
                                              TRITONSERVER_MemoryType *memory_type,
                                              int64_t *memory_type_id)
{
    const struct tensor_input *in = input_of(input);
    if (index >= in->piece_count) {
        *buffer = NULL;
        *buffer_byte_size = 0;
        return out_of_bounds("buffers", index, in->piece_count);
    }
    const struct tensor_piece *p = &in->pieces[index];
    *buffer = p->data;
    *buffer_byte_size = p->size;
    *memory_type = (TRITONSERVER_MemoryType)p->memory;
    *memory_type_id = p->device;
    return NULL;
}

TRITONSERVER_Error *TRITONBACKEND_InputBufferForHostPolicy(
    TRITONBACKEND_Input *input, const char *host_policy_name, const uint32_t index,
    const void **buffer, uint64_t *buffer_byte_size, TRITONSERVER_MemoryType *memory_type,
    int64_t *memory_type_id)
{
    (void)host_policy_name;
    return TRITONBACKEND_InputBuffer(input, index, buffer, buffer_byte_size, memory_type,
                                     memory_type_id);
}
