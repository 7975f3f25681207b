#include "respond.h"

#include <stdlib.h>

#include "common/berr.h"
#include "parameters.h"

/* Bytes of an element; 0 = its size varies, or it is none. */
static uint64_t element_bytes(uint32_t datatype)
{
    return datatype <= TRITONSERVER_TYPE_BF16
               ? TRITONSERVER_DataTypeByteSize((TRITONSERVER_DataType)datatype)
               : 0;
}

/* A tensor's shape and its size agree. */
static TRITONSERVER_Error *respond_check(const struct wire_tensor *tensor)
{
    uint64_t bytes = element_bytes(tensor->datatype);
    bool fixed = bytes > 0, fits = true;
    for (uint32_t i = 0; i < tensor->rank; i++) {
        fits = fits && tensor->shape[i] >= 0 &&
               !__builtin_mul_overflow(bytes, (uint64_t)tensor->shape[i], &bytes);
    }
    if ((fixed || tensor->datatype == TRITONSERVER_TYPE_BYTES) && fits &&
        (!fixed || bytes == tensor->bytes))
        return NULL;
    return berr_new(TRITONSERVER_ERROR_INTERNAL,
                    "output '%s' has %llu bytes, which is not what its shape and datatype say",
                    tensor->name, (unsigned long long)tensor->bytes);
}

static TRITONSERVER_Error *respond_output(struct host *host, const struct wire_tensor *tensor,
                                          TRITONBACKEND_Response *response)
{
    TRITONBACKEND_Output *output;
    void *buffer;
    TRITONSERVER_MemoryType kind = TRITONSERVER_MEMORY_CPU;
    int64_t number = 0;
    TRITONSERVER_Error *err = respond_check(tensor);
    if (!err)
        err = TRITONBACKEND_ResponseOutput(response, &output, tensor->name,
                                           (TRITONSERVER_DataType)tensor->datatype, tensor->shape,
                                           tensor->rank);
    if (!err)
        err = TRITONBACKEND_OutputBuffer(output, &buffer, tensor->bytes, &kind, &number);
    if (!err && kind == TRITONSERVER_MEMORY_GPU)
        err = berr_new(TRITONSERVER_ERROR_INTERNAL, "Python backend does not support GPU tensors.");
    if (!err && !stub_fetch(host->stub, tensor, buffer))
        err = berr_new(TRITONSERVER_ERROR_INTERNAL,
                       "the bytes of output '%s' are not where the process of '%s' says they are",
                       tensor->name, host->name);
    return err;
}

static TRITONSERVER_Error *respond_parameter(void *response, const char *name, yyjson_val *value)
{
    if (yyjson_is_bool(value))
        return TRITONBACKEND_ResponseSetBoolParameter(response, name, yyjson_get_bool(value));
    if (yyjson_is_int(value))
        return TRITONBACKEND_ResponseSetIntParameter(response, name, yyjson_get_sint(value));
    if (yyjson_is_str(value))
        return TRITONBACKEND_ResponseSetStringParameter(response, name, yyjson_get_str(value));
    return berr_new(TRITONSERVER_ERROR_INVALID_ARG,
                    "parameter '%s' of the response is no bool, int or str", name);
}

static TRITONSERVER_Error *respond_outputs(struct host *host, struct wire_in *in,
                                           TRITONBACKEND_Response *response)
{
    TRITONSERVER_Error *err = parameters_take(in, respond_parameter, response);
    uint32_t count = wire_count(in);
    for (uint32_t i = 0; i < count && !in->bad; i++) {
        struct wire_tensor tensor;
        wire_tensor(in, &tensor);
        if (!err && !in->bad)
            err = respond_output(host, &tensor, response);
    }
    return err;
}

static TRITONSERVER_Error *respond_said(struct wire_in *in)
{
    uint32_t code = wire_u32(in);
    char *text = wire_said(in);
    bool known = code <= TRITONSERVER_ERROR_CANCELLED;
    TRITONSERVER_Error *err =
        text ? TRITONSERVER_ErrorNew(
                   known ? (TRITONSERVER_Error_Code)code : TRITONSERVER_ERROR_UNKNOWN, text)
             : berr_no_memory();
    free(text);
    return err;
}

bool respond(struct host *host, struct wire_in *in, TRITONBACKEND_Response *response,
             uint32_t flags)
{
    TRITONSERVER_Error *err = wire_u32(in) ? respond_said(in) : respond_outputs(host, in, response);
    if (in->bad && !err)
        err = berr_new(TRITONSERVER_ERROR_INTERNAL, "the process of '%s' sent what is no response",
                       host->name);
    berr_log(TRITONBACKEND_ResponseSend(response, flags, err), "failed to send the response");
    berr_drop(err);
    return !in->bad;
}
