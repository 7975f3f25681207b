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
        return d ? handle_null("name") : handle_invalid(type);
    if (!shape && dim_count)
        return handle_null("shape");
    return handle_error(draft_add_input(d, name, (enum datatype)datatype, shape, dim_count));
}

TRITONSERVER_Error *
TRITONSERVER_InferenceRequestAddRawInput(TRITONSERVER_InferenceRequest *inference_request,
                                         const char *name)
{
    struct draft *d = draft_of(inference_request);
    if (!d || !name)
        return d ? handle_null("name") : handle_invalid(type);
    return handle_error(draft_add_raw_input(d, name));
}

TRITONSERVER_Error *
TRITONSERVER_InferenceRequestRemoveInput(TRITONSERVER_InferenceRequest *inference_request,
                                         const char *name)
{
    struct draft *d = draft_of(inference_request);
    if (!d || !name)
        return d ? handle_null("name") : handle_invalid(type);
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

TRITONSERVER_Error *TRITONSERVER_InferenceRequestAppendInputData(
    TRITONSERVER_InferenceRequest *inference_request, const char *name, const void *base,
    size_t byte_size, TRITONSERVER_MemoryType memory_type, int64_t memory_type_id)
{
    struct draft *d = draft_of(inference_request);
    if (!d || !name)
        return d ? handle_null("name") : handle_invalid(type);
    struct tensor_piece piece = {base, byte_size, (enum buf_memory)memory_type, memory_type_id};
    return handle_error(draft_add_data(d, name, &piece, NULL));
}

TRITONSERVER_Error *TRITONSERVER_InferenceRequestAppendInputDataWithHostPolicy(
    TRITONSERVER_InferenceRequest *inference_request, const char *name, const void *base,
    size_t byte_size, TRITONSERVER_MemoryType memory_type, int64_t memory_type_id,
    const char *host_policy_name)
{
    struct draft *d = draft_of(inference_request);
    if (!d || !name)
        return d ? handle_null("name") : handle_invalid(type);
    if (!host_policy_name)
        return handle_null("host_policy_name");
    struct tensor_piece piece = {base, byte_size, (enum buf_memory)memory_type, memory_type_id};
    return handle_error(draft_add_data(d, name, &piece, host_policy_name));
}

TRITONSERVER_Error *TRITONSERVER_InferenceRequestAppendInputDataWithBufferAttributes(
    TRITONSERVER_InferenceRequest *inference_request, const char *name, const void *base,
    TRITONSERVER_BufferAttributes *buffer_attributes)
{
    struct draft *d = draft_of(inference_request);
    if (!d || !name)
        return d ? handle_null("name") : handle_invalid(type);
    const struct buffer_attributes *b = buffer_attributes_of(buffer_attributes);
    if (!b)
        return handle_invalid("TRITONSERVER_BufferAttributes");
    struct tensor_piece piece = {base, b->byte_size, b->memory, b->device};
    return handle_error(draft_add_data(d, name, &piece, NULL));
}

TRITONSERVER_Error *
TRITONSERVER_InferenceRequestRemoveAllInputData(TRITONSERVER_InferenceRequest *inference_request,
                                                const char *name)
{
    struct draft *d = draft_of(inference_request);
    if (!d || !name)
        return d ? handle_null("name") : handle_invalid(type);
    return handle_error(draft_remove_data(d, name));
}

TRITONSERVER_Error *
TRITONSERVER_InferenceRequestAddRequestedOutput(TRITONSERVER_InferenceRequest *inference_request,
                                                const char *name)
{
    struct draft *d = draft_of(inference_request);
    if (!d || !name)
        return d ? handle_null("name") : handle_invalid(type);
    return handle_error(draft_add_output(d, name));
}

TRITONSERVER_Error *
TRITONSERVER_InferenceRequestRemoveRequestedOutput(TRITONSERVER_InferenceRequest *inference_request,
                                                   const char *name)
{
    struct draft *d = draft_of(inference_request);
    if (!d || !name)
        return d ? handle_null("name") : handle_invalid(type);
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
