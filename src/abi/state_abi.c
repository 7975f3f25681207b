/* TRITONBACKEND_State functions. State belongs to sequences of a model with the sequence batcher; no request of this server is part of
 * one (repo/load.c refuses such models), so a state cannot be made, and none can be passed in. */
#include "abi/handle.h"
#include "infer/request.h"
#include "model/config.h"
#include "triton/core/tritonbackend.h"

TRITONSERVER_Error *TRITONBACKEND_StateNew(TRITONBACKEND_State **state,
                                           TRITONBACKEND_Request *request, const char *name,
                                           const TRITONSERVER_DataType datatype,
                                           const int64_t *shape, const uint32_t dims_count)
{
    (void)state;
    (void)datatype;
    (void)shape;
    (void)dims_count;
    const struct request *r = request_from(request);
    if (!r)
        return HANDLE_BROKEN(TOKEN_REQUEST, request);
    return handle_error(
        request_error(r, "unable to add state '%s': the configuration of model '%s' has no state",
                      name, r->config->name));
}

static TRITONSERVER_Error *no_state(const char *function)
{
    return handle_error(err_new(STATUS_INVALID_ARG, "%s: not a state of this server", function));
}

TRITONSERVER_Error *TRITONBACKEND_StateUpdate(TRITONBACKEND_State *state)
{
    (void)state;
    return no_state("TRITONBACKEND_StateUpdate");
}

TRITONSERVER_Error *
TRITONBACKEND_StateBufferAttributes(TRITONBACKEND_State *state,
                                    TRITONSERVER_BufferAttributes **buffer_attributes)
{
    (void)state;
    (void)buffer_attributes;
    return no_state("TRITONBACKEND_StateBufferAttributes");
}

TRITONSERVER_Error *TRITONBACKEND_StateBuffer(TRITONBACKEND_State *state, void **buffer,
                                              const uint64_t buffer_byte_size,
                                              TRITONSERVER_MemoryType *memory_type,
                                              int64_t *memory_type_id)
{
    (void)state;
    (void)buffer;
    (void)buffer_byte_size;
    (void)memory_type;
    (void)memory_type_id;
    return no_state("TRITONBACKEND_StateBuffer");
}
