#include "pack.h"

#include <string.h>

#include "common/berr.h"
#include "lend.h"
#include "parameters.h"

static void pack_text(struct wire_out *out, const char *text)
{
    wire_put_text(out, text ? text : "", text ? strlen(text) : 0);
}

static TRITONSERVER_Error *pack_correlation(struct wire_out *out, TRITONBACKEND_Request *request)
{
    uint64_t number;
    const char *text = "";
    TRITONSERVER_Error *err = TRITONBACKEND_RequestCorrelationId(request, &number);
    wire_put_u32(out, err != NULL);
    if (!err) {
        wire_put_u64(out, number);
        return NULL;
    }
    TRITONSERVER_ErrorDelete(err);
    err = TRITONBACKEND_RequestCorrelationIdString(request, &text);
    if (!err)
        pack_text(out, text);
    return err;
}

static TRITONSERVER_Error *pack_parameter(void *request, uint32_t i, const char **ret_name,
                                          TRITONSERVER_ParameterType *ret_type,
                                          const void **ret_value)
{
    return TRITONBACKEND_RequestParameter(request, i, ret_name, ret_type, ret_value);
}

static TRITONSERVER_Error *pack_parameters(struct wire_out *out, TRITONBACKEND_Request *request)
{
    uint32_t count;
    TRITONSERVER_Error *err = TRITONBACKEND_RequestParameterCount(request, &count);
    return err ? err : parameters_put(out, count, pack_parameter, request);
}

static void pack_trace(struct wire_out *out, TRITONBACKEND_Request *request)
{
    TRITONSERVER_InferenceTrace *trace = NULL;
    const char *context = NULL;
    TRITONSERVER_Error *err = TRITONBACKEND_RequestTrace(request, &trace);
    if (!err && trace)
        err = TRITONSERVER_InferenceTraceContext(trace, &context);
    pack_text(out, err ? "" : context);
    berr_drop(err);
}

static TRITONSERVER_Error *pack_outputs(struct wire_out *out, TRITONBACKEND_Request *request)
{
    uint32_t count;
    TRITONSERVER_Error *err = TRITONBACKEND_RequestOutputCount(request, &count);
    if (!err)
        wire_put_u32(out, count);
    for (uint32_t i = 0; !err && i < count; i++) {
        const char *name;
        err = TRITONBACKEND_RequestOutputName(request, i, &name);
        if (!err)
            pack_text(out, name);
    }
    return err;
}

static TRITONSERVER_Error *pack_bytes(TRITONBACKEND_Input *input, uint32_t buffers, uint64_t bytes,
                                      const char *name, char *to)
{
    uint64_t copied = 0;
    for (uint32_t i = 0; i < buffers; i++) {
        const void *buffer;
        uint64_t size;
        TRITONSERVER_MemoryType kind = TRITONSERVER_MEMORY_CPU;
        int64_t number = 0;
        TRITONSERVER_Error *err =
            TRITONBACKEND_InputBuffer(input, i, &buffer, &size, &kind, &number);
        if (err)
            return err;
        if (kind == TRITONSERVER_MEMORY_GPU)
            return berr_new(TRITONSERVER_ERROR_INTERNAL,
                            "Python backend does not support GPU tensors.");
        if (size > bytes - copied)
            return berr_new(TRITONSERVER_ERROR_INTERNAL, "input '%s' has more bytes than it says",
                            name);
        if (size)
            memcpy(to + copied, buffer, size);
        copied += size;
    }
    return NULL;
}

/* Writes a tensor's description; its bytes go where ret_place says. */
static TRITONSERVER_Error *pack_place(struct host *host, struct wire_out *out,
                                      struct wire_out *places, struct wire_tensor *tensor,
                                      char **ret_place)
{
    if (tensor->place == WIRE_GPU) {
        wire_put_u64(places, tensor->where);
    } else if (tensor->bytes > LINK_INLINE_MAX) {
        tensor->place = WIRE_ARENA;
        tensor->where = arena_take(&host->stub->arena, tensor->bytes);
        if (!tensor->where)
            return berr_new(TRITONSERVER_ERROR_UNAVAILABLE,
                            "no shared memory for input '%s' of %llu bytes", tensor->name,
                            (unsigned long long)tensor->bytes);
        wire_put_u64(places, tensor->where);
    }
    char *place = wire_put_tensor(out, tensor);
    *ret_place = tensor->where ? host->stub->base + tensor->where : place;
    return out->failed || places->failed ? berr_no_memory() : NULL;
}

static TRITONSERVER_Error *pack_input(struct host *host, struct wire_out *out,
                                      struct wire_out *places, TRITONBACKEND_Request *request,
                                      uint32_t i)
{
    TRITONBACKEND_Input *input;
    struct wire_tensor tensor = {.place = WIRE_INLINE};
    TRITONSERVER_DataType datatype;
    const int64_t *shape;
    uint32_t buffers;
    TRITONSERVER_Error *err = TRITONBACKEND_RequestInputByIndex(request, i, &input);
    if (!err)
        err = TRITONBACKEND_InputProperties(input, &tensor.name, &datatype, &shape, &tensor.rank,
                                            &tensor.bytes, &buffers);
    if (err)
        return err;
    if (tensor.rank > WIRE_MAX_DIMS)
        return berr_new(TRITONSERVER_ERROR_INVALID_ARG,
                        "input '%s' has %u dimensions, more than %d", tensor.name, tensor.rank,
                        WIRE_MAX_DIMS);
    memcpy(tensor.shape, shape, tensor.rank * sizeof *shape);
    tensor.datatype = (uint32_t)datatype;
    tensor.name_length = strlen(tensor.name);
    char *place;
    err = lend_input(host->lend, input, buffers, &tensor);
    if (!err)
        err = pack_place(host, out, places, &tensor, &place);
    if (err || tensor.place == WIRE_GPU)
        return err;
    return pack_bytes(input, buffers, tensor.bytes, tensor.name, place);
}

TRITONSERVER_Error *pack_request(struct host *host, struct wire_out *out, struct wire_out *places,
                                 uint64_t id, TRITONBACKEND_Request *request)
{
    const char *text;
    uint32_t flags = 0, count = 0;
    uint64_t timeout = 0;
    wire_put_u64(out, id);
    TRITONSERVER_Error *err = TRITONBACKEND_RequestId(request, &text);
    if (!err) {
        pack_text(out, text);
        err = pack_correlation(out, request);
    }
    if (!err)
        err = TRITONBACKEND_RequestFlags(request, &flags);
    if (!err)
        err = TRITONBACKEND_InferenceRequestTimeoutMicroseconds(request, &timeout);
    wire_put_u32(out, flags);
    wire_put_u64(out, timeout);
    if (!err)
        err = pack_parameters(out, request);
    pack_trace(out, request);
    if (!err)
        err = pack_outputs(out, request);
    if (!err)
        err = TRITONBACKEND_RequestInputCount(request, &count);
    wire_put_u32(out, count);
    for (uint32_t i = 0; !err && i < count; i++)
        err = pack_input(host, out, places, request, i);
    if (!err && out->failed)
        err = berr_no_memory();
    return err;
}
