/* TRITONBACKEND_State functions: backends write the implicit state of sequences (infer/state.h). */
#include "plugin/handle.h"
#include "infer/state.h"
#include "triton/core/tritonbackend.h"

/* The error for a handle that state_from did not find. Tokens of states have the same kind as
 * those of inputs. */
static TRITONSERVER_Error *broken(const char *function, const void *state, const void *caller)
{
    if (!state)
        return handle_invalid("TRITONBACKEND_State");
    bool stale = token_was(state, TOKEN_INPUT) && !token_find(state, TOKEN_INPUT, NULL);
    return handle_rule(function,
                       stale ? "the request of the state was released before; its states end with "
                               "that"
                             : "expected a TRITONBACKEND_State, found an object that is none",
                       caller);
}

#define BROKEN(state) broken(__func__, (state), __builtin_return_address(0))

TRITONSERVER_Error *TRITONBACKEND_StateNew(TRITONBACKEND_State **state,
                                           TRITONBACKEND_Request *request, const char *name,
                                           const TRITONSERVER_DataType datatype,
                                           const int64_t *shape, const uint32_t dims_count)
{
    struct request *r = request_from(request);
    if (!r)
        return HANDLE_BROKEN(TOKEN_REQUEST, request);
    if (!state)
        return HANDLE_NULL("state");
    if (!name)
        return HANDLE_NULL("name");
    if (!shape && dims_count)
        return HANDLE_NULL("shape");
    uint32_t index;
    struct err *e = state_begin(r, name, (enum datatype)datatype, shape, dims_count, &index);
    if (e)
        return handle_error(e);
    *state = state_handle(r, index);
    return NULL;
}

TRITONSERVER_Error *TRITONBACKEND_StateUpdate(TRITONBACKEND_State *state)
{
    uint32_t index;
    struct request *r = state_from(state, &index);
    if (!r)
        return BROKEN(state);
    return handle_error(state_publish(r, index));
}

TRITONSERVER_Error *
TRITONBACKEND_StateBufferAttributes(TRITONBACKEND_State *state,
                                    TRITONSERVER_BufferAttributes **buffer_attributes)
{
    uint32_t index;
    struct request *r = state_from(state, &index);
    if (!r)
        return BROKEN(state);
    *buffer_attributes = (TRITONSERVER_BufferAttributes *)state_attributes(r, index);
    return NULL;
}

TRITONSERVER_Error *TRITONBACKEND_StateBuffer(TRITONBACKEND_State *state, void **buffer,
                                              const uint64_t buffer_byte_size,
                                              TRITONSERVER_MemoryType *memory_type,
                                              int64_t *memory_type_id)
{
    uint32_t index;
    struct request *r = state_from(state, &index);
    if (!r)
        return BROKEN(state);
    *buffer = NULL;
    struct err *e = state_buffer(r, index, buffer_byte_size, buffer);
    if (e)
        return handle_error(e);
    *memory_type = TRITONSERVER_MEMORY_CPU;
    *memory_type_id = 0;
    return NULL;
}
