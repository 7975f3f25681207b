/* TRITONSERVER_ResponseAllocator functions. */
#include "plugin/handle.h"
#include "infer/allocator.h"

static const char type[] = "TRITONSERVER_ResponseAllocator";

TRITONSERVER_Error *
TRITONSERVER_ResponseAllocatorNew(TRITONSERVER_ResponseAllocator **allocator,
                                  TRITONSERVER_ResponseAllocatorAllocFn_t alloc_fn,
                                  TRITONSERVER_ResponseAllocatorReleaseFn_t release_fn,
                                  TRITONSERVER_ResponseAllocatorStartFn_t start_fn)
{
    if (!alloc_fn || !release_fn)
        return HANDLE_NULL(alloc_fn ? "release_fn" : "alloc_fn");
    *allocator = (TRITONSERVER_ResponseAllocator *)allocator_new(alloc_fn, release_fn, start_fn);
    return NULL;
}

TRITONSERVER_Error *TRITONSERVER_ResponseAllocatorSetBufferAttributesFunction(
    TRITONSERVER_ResponseAllocator *allocator,
    TRITONSERVER_ResponseAllocatorBufferAttributesFn_t buffer_attributes_fn)
{
    struct allocator *a = allocator_of(allocator);
    if (!a)
        return handle_invalid(type);
    a->attributes = buffer_attributes_fn;
    return NULL;
}

TRITONSERVER_Error *
TRITONSERVER_ResponseAllocatorSetQueryFunction(TRITONSERVER_ResponseAllocator *allocator,
                                               TRITONSERVER_ResponseAllocatorQueryFn_t query_fn)
{
    struct allocator *a = allocator_of(allocator);
    if (!a)
        return handle_invalid(type);
    a->query = query_fn;
    return NULL;
}

TRITONSERVER_Error *TRITONSERVER_ResponseAllocatorDelete(TRITONSERVER_ResponseAllocator *allocator)
{
    struct allocator *a = allocator_of(allocator);
    if (allocator && !a)
        return handle_invalid(type);
    allocator_free(a);
    return NULL;
}
