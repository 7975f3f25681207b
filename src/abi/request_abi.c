/* TRITONBACKEND_ functions about requests and their inputs. */
#include "plugin/handle.h"
#include "infer/allocator.h"
#include "infer/buffer_attributes.h"
#include "infer/on_host.h"
#include "infer/request.h"
#include "plugin/instance.h"
#include "triton/core/tritonbackend.h"

#include <inttypes.h>
#include <string.h>

static struct request *request_of(TRITONBACKEND_Request *request)
{
    return request_from(request);
}

static struct tensor_input *request_abi_input(TRITONBACKEND_Input *input)
{
    return request_input_from(input);
}

static TRITONSERVER_Error *out_of_bounds(const char *what, uint32_t index, uint32_t count)
{
    return handle_error(err_new(STATUS_INVALID_ARG,
                                "out of bounds index %" PRIu32 ": there are %" PRIu32 " %s", index,
                                count, what));
}

/* The error for an invalid index; backends pass it on to the client. */
static TRITONSERVER_Error *not_of_request(const struct request *r, const char *what, uint32_t index,
                                          uint32_t count)
{
    return handle_error(request_error(
        r, "out of bounds index %" PRIu32 ": request has %" PRIu32 " %s", index, count, what));
}

TRITONSERVER_Error *TRITONBACKEND_RequestId(TRITONBACKEND_Request *request, const char **id)
{
    const struct request *r = request_of(request);
    if (!r)
        return HANDLE_BROKEN(TOKEN_REQUEST, request);
    *id = r->id;
    return NULL;
}

TRITONSERVER_Error *TRITONBACKEND_RequestIsCancelled(TRITONBACKEND_Request *request,
                                                     bool *is_cancelled)
{
    const struct request *r = request_of(request);
    if (!r)
        return HANDLE_BROKEN(TOKEN_REQUEST, request);
    *is_cancelled = request_is_cancelled(r);
    return NULL;
}

TRITONSERVER_Error *TRITONBACKEND_RequestCorrelationId(TRITONBACKEND_Request *request, uint64_t *id)
{
    const struct request *r = request_of(request);
    if (!r)
        return HANDLE_BROKEN(TOKEN_REQUEST, request);
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
    if (!r)
        return HANDLE_BROKEN(TOKEN_REQUEST, request);
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
    const struct request *r = request_of(request);
    if (!r)
        return HANDLE_BROKEN(TOKEN_REQUEST, request);
    *timeout = r->timeout_us;
    return NULL;
}

TRITONSERVER_Error *TRITONBACKEND_RequestFlags(TRITONBACKEND_Request *request, uint32_t *flags)
{
    const struct request *r = request_of(request);
    if (!r)
        return HANDLE_BROKEN(TOKEN_REQUEST, request);
    *flags = r->flags;
    return NULL;
}

TRITONSERVER_Error *TRITONBACKEND_RequestParameterCount(TRITONBACKEND_Request *request,
                                                        uint32_t *count)
{
    const struct request *r = request_of(request);
    if (!r)
        return HANDLE_BROKEN(TOKEN_REQUEST, request);
    *count = r->params.count;
    return NULL;
}

TRITONSERVER_Error *TRITONBACKEND_RequestParameter(TRITONBACKEND_Request *request,
                                                   const uint32_t index, const char **key,
                                                   TRITONSERVER_ParameterType *type,
                                                   const void **vvalue)
{
    const struct request *r = request_of(request);
    if (!r)
        return HANDLE_BROKEN(TOKEN_REQUEST, request);
    const struct param_list *l = &r->params;
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
    const struct request *r = request_of(request);
    if (!r)
        return HANDLE_BROKEN(TOKEN_REQUEST, request);
    *count = r->input_count;
    return NULL;
}

TRITONSERVER_Error *TRITONBACKEND_RequestInputName(TRITONBACKEND_Request *request,
                                                   const uint32_t index, const char **input_name)
{
    const struct request *r = request_of(request);
    if (!r)
        return HANDLE_BROKEN(TOKEN_REQUEST, request);
    if (index >= r->input_count)
        return not_of_request(r, "inputs", index, r->input_count);
    *input_name = r->inputs[index].name;
    return NULL;
}

TRITONSERVER_Error *TRITONBACKEND_RequestInput(TRITONBACKEND_Request *request, const char *name,
                                               TRITONBACKEND_Input **input)
{
    struct request *r = request_of(request);
    if (!r || !name)
        return r ? HANDLE_NULL("name") : HANDLE_BROKEN(TOKEN_REQUEST, request);
    for (uint32_t i = 0; i < r->input_count; i++)
        if (strcmp(r->inputs[i].name, name) == 0) {
            *input = request_input_handle(&r->inputs[i]);
            return NULL;
        }
    return handle_error(request_error(r, "unknown request input name %s", name));
}

TRITONSERVER_Error *TRITONBACKEND_RequestInputByIndex(TRITONBACKEND_Request *request,
                                                      const uint32_t index,
                                                      TRITONBACKEND_Input **input)
{
    struct request *r = request_of(request);
    if (!r)
        return HANDLE_BROKEN(TOKEN_REQUEST, request);
    if (index >= r->input_count)
        return not_of_request(r, "inputs", index, r->input_count);
    *input = request_input_handle(&r->inputs[index]);
    return NULL;
}

TRITONSERVER_Error *TRITONBACKEND_RequestOutputCount(TRITONBACKEND_Request *request,
                                                     uint32_t *count)
{
    const struct request *r = request_of(request);
    if (!r)
        return HANDLE_BROKEN(TOKEN_REQUEST, request);
    *count = r->output_count;
    return NULL;
}

TRITONSERVER_Error *TRITONBACKEND_RequestOutputName(TRITONBACKEND_Request *request,
                                                    const uint32_t index, const char **output_name)
{
    const struct request *r = request_of(request);
    if (!r)
        return HANDLE_BROKEN(TOKEN_REQUEST, request);
    if (index >= r->output_count)
        return not_of_request(r, "requested outputs", index, r->output_count);
    *output_name = r->outputs[index];
    return NULL;
}

/* A request that may not come again is released for good in spite of the flag. */
TRITONSERVER_Error *TRITONBACKEND_RequestRelease(TRITONBACKEND_Request *request,
                                                 uint32_t release_flags)
{
    if (!request_of(request))
        return HANDLE_BROKEN(TOKEN_REQUEST, request);
    bool again = release_flags == TRITONSERVER_REQUEST_RELEASE_RESCHEDULE;
    if (!again && release_flags != TRITONSERVER_REQUEST_RELEASE_ALL)
        return handle_error(err_new(STATUS_UNSUPPORTED,
                                    "TRITONBACKEND_RequestRelease: release flags %" PRIu32
                                    " are not supported, only TRITONSERVER_REQUEST_RELEASE_ALL and "
                                    "TRITONSERVER_REQUEST_RELEASE_RESCHEDULE",
                                    release_flags));
    struct err *e = again ? request_check_reschedule(request_of(request)) : NULL;
    if (e)
        return handle_error(e);
    struct request *r = request_take(request);
    if (!r)
        return HANDLE_BROKEN(TOKEN_REQUEST, request);
    if (!r->lent)
        return HANDLE_RULE(handle_not_lent);
    bool answered = again && atomic_load_explicit(&r->final_sent, memory_order_relaxed);
    if (again && !answered) {
        instance_note_again(request, r);
        request_reschedule(r);
    } else {
        request_release(r);
    }
    return answered ? HANDLE_RULE("the final response of the request was sent before; it cannot be "
                                  "executed again")
                    : NULL;
}

TRITONSERVER_Error *TRITONBACKEND_InputProperties(TRITONBACKEND_Input *input, const char **name,
                                                  TRITONSERVER_DataType *datatype,
                                                  const int64_t **shape, uint32_t *dims_count,
                                                  uint64_t *byte_size, uint32_t *buffer_count)
{
    const struct tensor_input *in = request_abi_input(input);
    if (!in)
        return HANDLE_BROKEN(TOKEN_INPUT, input);
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

/* The buffers of an input for one policy; NULL = use the plain ones. */
static const struct tensor_policy *find_policy(const struct tensor_input *in, const char *name)
{
    const struct tensor_policy *p = name ? in->policies : NULL;
    while (p && strcmp(p->name, name) != 0)
        p = p->next;
    return p;
}

TRITONSERVER_Error *
TRITONBACKEND_InputPropertiesForHostPolicy(TRITONBACKEND_Input *input, const char *host_policy_name,
                                           const char **name, TRITONSERVER_DataType *datatype,
                                           const int64_t **shape, uint32_t *dims_count,
                                           uint64_t *byte_size, uint32_t *buffer_count)
{
    const struct tensor_input *in = request_abi_input(input);
    if (!in)
        return HANDLE_BROKEN(TOKEN_INPUT, input);
    TRITONBACKEND_InputProperties(input, name, datatype, shape, dims_count, byte_size,
                                  buffer_count);
    const struct tensor_policy *p = find_policy(in, host_policy_name);
    if (p && byte_size)
        *byte_size = p->byte_size;
    if (p && buffer_count)
        *buffer_count = p->piece_count;
    return NULL;
}

/* Gives one buffer. The backend says which memory it would like: one that does not ask for a GPU
 * gets what lies there in host memory. */
static TRITONSERVER_Error *give_piece(struct tensor_input *in, const struct tensor_piece *pieces,
                                      uint32_t count, uint32_t index, const void **buffer,
                                      uint64_t *byte_size, TRITONSERVER_MemoryType *memory_type,
                                      int64_t *memory_type_id)
{
    if (index >= count) {
        *buffer = NULL;
        *byte_size = 0;
        if (index)
            return out_of_bounds("buffers", index, count);
        /* An input without bytes has no buffer, but backends ask for the first buffer of every
         * input. */
        *memory_type = TRITONSERVER_MEMORY_CPU;
        *memory_type_id = 0;
        return NULL;
    }
    const struct tensor_piece *p = &pieces[index];
    if (p->memory == BUF_MEMORY_GPU && *memory_type != TRITONSERVER_MEMORY_GPU) {
        struct err *e = on_host_piece(in, pieces, index);
        if (e)
            return handle_error(e);
    }
    *buffer = p->data;
    *byte_size = p->size;
    *memory_type = (TRITONSERVER_MemoryType)p->memory;
    *memory_type_id = p->device;
    return NULL;
}

TRITONSERVER_Error *TRITONBACKEND_InputBuffer(TRITONBACKEND_Input *input, const uint32_t index,
                                              const void **buffer, uint64_t *buffer_byte_size,
                                              TRITONSERVER_MemoryType *memory_type,
                                              int64_t *memory_type_id)
{
    struct tensor_input *in = request_abi_input(input);
    if (!in)
        return HANDLE_BROKEN(TOKEN_INPUT, input);
    return give_piece(in, in->pieces, in->piece_count, index, buffer, buffer_byte_size, memory_type,
                      memory_type_id);
}

TRITONSERVER_Error *TRITONBACKEND_InputBufferForHostPolicy(
    TRITONBACKEND_Input *input, const char *host_policy_name, const uint32_t index,
    const void **buffer, uint64_t *buffer_byte_size, TRITONSERVER_MemoryType *memory_type,
    int64_t *memory_type_id)
{
    struct tensor_input *in = request_abi_input(input);
    if (!in)
        return HANDLE_BROKEN(TOKEN_INPUT, input);
    const struct tensor_policy *p = find_policy(in, host_policy_name);
    return give_piece(in, p ? p->pieces : in->pieces, p ? p->piece_count : in->piece_count, index,
                      buffer, buffer_byte_size, memory_type, memory_type_id);
}

TRITONSERVER_Error *
TRITONBACKEND_InputBufferAttributes(TRITONBACKEND_Input *input, const uint32_t index,
                                    const void **buffer,
                                    TRITONSERVER_BufferAttributes **buffer_attributes)
{
    const struct tensor_input *in = request_abi_input(input);
    if (!in)
        return HANDLE_BROKEN(TOKEN_INPUT, input);
    if (index >= in->piece_count)
        return out_of_bounds("buffers", index, in->piece_count);
    const struct tensor_piece *p = &in->pieces[index];
    struct buffer_attributes *b = arena_alloc(&in->request->arena, sizeof(*b));
    buffer_attributes_init(b, p->size, p->memory, p->device);
    *buffer = p->data;
    *buffer_attributes = (TRITONSERVER_BufferAttributes *)b;
    return NULL;
}

TRITONSERVER_Error *
TRITONBACKEND_RequestOutputBufferProperties(TRITONBACKEND_Request *request, const char *name,
                                            size_t *byte_size, TRITONSERVER_MemoryType *memory_type,
                                            int64_t *memory_type_id)
{
    const struct request *r = request_of(request);
    if (!r)
        return HANDLE_BROKEN(TOKEN_REQUEST, request);
    if (r->allocator)
        return handle_error(allocator_query(r, name, byte_size, memory_type, memory_type_id));
    const struct request_place *p = name ? request_place_of(r, name) : NULL;
    *memory_type = p ? (TRITONSERVER_MemoryType)p->memory.memory : TRITONSERVER_MEMORY_CPU;
    *memory_type_id = p ? p->memory.device : 0;
    return NULL;
}

TRITONSERVER_Error *TRITONBACKEND_RequestTrace(TRITONBACKEND_Request *request,
                                               TRITONSERVER_InferenceTrace **trace)
{
    const struct request *r = request_of(request);
    if (!r)
        return HANDLE_BROKEN(TOKEN_REQUEST, request);
    *trace = (TRITONSERVER_InferenceTrace *)r->trace;
    return NULL;
}
