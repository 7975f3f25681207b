/* TRITONSERVER_BufferAttributes functions. */
#include "plugin/handle.h"
#include "infer/buffer_attributes.h"

static const char type[] = "TRITONSERVER_BufferAttributes";

TRITONSERVER_Error *
TRITONSERVER_BufferAttributesNew(TRITONSERVER_BufferAttributes **buffer_attributes)
{
    *buffer_attributes = (TRITONSERVER_BufferAttributes *)buffer_attributes_new();
    return NULL;
}

TRITONSERVER_Error *
TRITONSERVER_BufferAttributesDelete(TRITONSERVER_BufferAttributes *buffer_attributes)
{
    struct buffer_attributes *b = buffer_attributes_of(buffer_attributes);
    if (buffer_attributes && !b)
        return handle_invalid(type);
    buffer_attributes_free(b);
    return NULL;
}

TRITONSERVER_Error *
TRITONSERVER_BufferAttributesSetMemoryTypeId(TRITONSERVER_BufferAttributes *buffer_attributes,
                                             int64_t memory_type_id)
{
    struct buffer_attributes *b = buffer_attributes_of(buffer_attributes);
    if (!b)
        return handle_invalid(type);
    b->device = memory_type_id;
    return NULL;
}

TRITONSERVER_Error *
TRITONSERVER_BufferAttributesSetMemoryType(TRITONSERVER_BufferAttributes *buffer_attributes,
                                           TRITONSERVER_MemoryType memory_type)
{
    struct buffer_attributes *b = buffer_attributes_of(buffer_attributes);
    if (!b)
        return handle_invalid(type);
    b->memory = (enum buf_memory)memory_type;
    return NULL;
}

TRITONSERVER_Error *
TRITONSERVER_BufferAttributesSetCudaIpcHandle(TRITONSERVER_BufferAttributes *buffer_attributes,
                                              void *cuda_ipc_handle)
{
    struct buffer_attributes *b = buffer_attributes_of(buffer_attributes);
    if (!b)
        return handle_invalid(type);
    b->cuda_ipc = cuda_ipc_handle;
    return NULL;
}

TRITONSERVER_Error *
TRITONSERVER_BufferAttributesSetByteSize(TRITONSERVER_BufferAttributes *buffer_attributes,
                                         size_t byte_size)
{
    struct buffer_attributes *b = buffer_attributes_of(buffer_attributes);
    if (!b)
        return handle_invalid(type);
    b->byte_size = byte_size;
    return NULL;
}

TRITONSERVER_Error *
TRITONSERVER_BufferAttributesMemoryTypeId(TRITONSERVER_BufferAttributes *buffer_attributes,
                                          int64_t *memory_type_id)
{
    const struct buffer_attributes *b = buffer_attributes_of(buffer_attributes);
    if (!b)
        return handle_invalid(type);
    *memory_type_id = b->device;
    return NULL;
}

TRITONSERVER_Error *
TRITONSERVER_BufferAttributesMemoryType(TRITONSERVER_BufferAttributes *buffer_attributes,
                                        TRITONSERVER_MemoryType *memory_type)
{
    const struct buffer_attributes *b = buffer_attributes_of(buffer_attributes);
    if (!b)
        return handle_invalid(type);
    *memory_type = (TRITONSERVER_MemoryType)b->memory;
    return NULL;
}

TRITONSERVER_Error *
TRITONSERVER_BufferAttributesCudaIpcHandle(TRITONSERVER_BufferAttributes *buffer_attributes,
                                           void **cuda_ipc_handle)
{
    const struct buffer_attributes *b = buffer_attributes_of(buffer_attributes);
    if (!b)
        return handle_invalid(type);
    *cuda_ipc_handle = b->cuda_ipc;
    return NULL;
}

TRITONSERVER_Error *
TRITONSERVER_BufferAttributesByteSize(TRITONSERVER_BufferAttributes *buffer_attributes,
                                      size_t *byte_size)
{
    const struct buffer_attributes *b = buffer_attributes_of(buffer_attributes);
    if (!b)
        return handle_invalid(type);
    *byte_size = b->byte_size;
    return NULL;
}
