/* TRITONSERVER_InferenceRequest functions: inputs, their buffers, and requested outputs. */
#include "plugin/handle.h"
#include "infer/buffer_attributes.h"
#include "abi/draft.h"

static const char type[] = "TRITONSERVER_InferenceRequest";

TRITONSERVER_Error *
TRITONSERVER_InferenceRequestAddInput(TRITONSERVER_InferenceRequest *inference_request,
                                      const char *name, const TRITONSERVER_DataType datatype,
                                      const int64_t *shape, uint64_t dim_count)
{
    struct draft *d = draft_of(inference_request);
    if (!d || !name)
        return d ? HANDLE_NULL("name") : handle_invalid(type);
    if (!shape && dim_count)
        return HANDLE_NULL("shape");
    return handle_error(draft_add_input(d, name, (enum datatype)datatype, shape, dim_count));
}

TRITONSERVER_Error *
TRITONSERVER_InferenceRequestAddRawInput(TRITONSERVER_InferenceRequest *inference_request,
                                         const char *name)
{
    struct draft *d = draft_of(inference_request);
    if (!d || !name)
        return d ? HANDLE_NULL("name") : handle_invalid(type);
    return handle_error(draft_add_raw_input(d, name));
}

TRITONSERVER_Error *
TRITONSERVER_InferenceRequestRemoveInput(TRITONSERVER_InferenceRequest *inference_request,
                                         const char *name)
{
    struct draft *d = draft_of(inference_request);
    if (!d || !name)
        return d ? HANDLE_NULL("name") : handle_invalid(type);
    return handle_error(draft_remove_input(d, name));
}

TRITONSERVER_Error *
TRITONSERVER_InferenceRequestRemoveAllInputs(TRITONSERVER_InferenceRequest *inference_request)
{
    struct draft *d = draft_of(inference_request);
    if (!d)
        return handle_invalid(type);
    draft_remove_inputs(d);
    return NULL;
}

static TRITONSERVER_Error *append_data(const char *function, TRITONSERVER_InferenceRequest *request,
                                       const char *name, const struct tensor_piece *piece,
                                       const char *policy)
{
    struct draft *d = draft_of(request);
    if (!d || !name)
        return d ? handle_null(function, "name") : handle_invalid(type);
    if (!piece->data && piece->size)
        return handle_null(function, "base");
    return handle_error(draft_add_data(d, name, piece, policy));
}

TRITONSERVER_Error *TRITONSERVER_InferenceRequestAppendInputData(
    TRITONSERVER_InferenceRequest *inference_request, const char *name, const void *base,
    size_t byte_size, TRITONSERVER_MemoryType memory_type, int64_t memory_type_id)
{
    struct tensor_piece piece = {base, byte_size, (enum buf_memory)memory_type, memory_type_id};
    return append_data(__func__, inference_request, name, &piece, NULL);
}

TRITONSERVER_Error *TRITONSERVER_InferenceRequestAppendInputDataWithHostPolicy(
    TRITONSERVER_InferenceRequest *inference_request, const char *name, const void *base,
    size_t byte_size, TRITONSERVER_MemoryType memory_type, int64_t memory_type_id,
    const char *host_policy_name)
{
    if (!host_policy_name)
        return HANDLE_NULL("host_policy_name");
    struct tensor_piece piece = {base, byte_size, (enum buf_memory)memory_type, memory_type_id};
    return append_data(__func__, inference_request, name, &piece, host_policy_name);
}

TRITONSERVER_Error *TRITONSERVER_InferenceRequestAppendInputDataWithBufferAttributes(
    TRITONSERVER_InferenceRequest *inference_request, const char *name, const void *base,
    TRITONSERVER_BufferAttributes *buffer_attributes)
{
    const struct buffer_attributes *b = buffer_attributes_of(buffer_attributes);
    if (!b)
        return handle_invalid("TRITONSERVER_BufferAttributes");
    struct tensor_piece piece = {base, b->byte_size, b->memory, b->device};
    return append_data(__func__, inference_request, name, &piece, NULL);
}

TRITONSERVER_Error *
TRITONSERVER_InferenceRequestRemoveAllInputData(TRITONSERVER_InferenceRequest *inference_request,
                                                const char *name)
{
    struct draft *d = draft_of(inference_request);
    if (!d || !name)
        return d ? HANDLE_NULL("name") : handle_invalid(type);
    return handle_error(draft_remove_data(d, name));
}

TRITONSERVER_Error *
TRITONSERVER_InferenceRequestAddRequestedOutput(TRITONSERVER_InferenceRequest *inference_request,
                                                const char *name)
{
    struct draft *d = draft_of(inference_request);
    if (!d || !name)
        return d ? HANDLE_NULL("name") : handle_invalid(type);
    return handle_error(draft_add_output(d, name));
}

TRITONSERVER_Error *
TRITONSERVER_InferenceRequestRemoveRequestedOutput(TRITONSERVER_InferenceRequest *inference_request,
                                                   const char *name)
{
    struct draft *d = draft_of(inference_request);
    if (!d || !name)
        return d ? HANDLE_NULL("name") : handle_invalid(type);
    draft_remove_output(d, name);
    return NULL;
}

TRITONSERVER_Error *TRITONSERVER_InferenceRequestRemoveAllRequestedOutputs(
    TRITONSERVER_InferenceRequest *inference_request)
{
    struct draft *d = draft_of(inference_request);
    if (!d)
        return handle_invalid(type);
    draft_remove_outputs(d);
    return NULL;
}
