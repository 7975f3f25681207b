#pragma once
/* Memory for outputs that a caller of the C API provides: the TRITONSERVER_ResponseAllocator.
 * Its callbacks run on the thread that makes the response. Requests of the HTTP and gRPC front
 * ends have no allocator. */
#include "base/err.h"
#include "triton/core/tritonserver.h"

#include <stddef.h>
#include <stdint.h>

struct buffer_attributes;
struct request;
struct response;
struct tensor_output;

struct allocator {
    uint32_t magic;
    TRITONSERVER_ResponseAllocatorAllocFn_t alloc;
    TRITONSERVER_ResponseAllocatorReleaseFn_t release;
    TRITONSERVER_ResponseAllocatorStartFn_t start;                 /* NULL = no callback */
    TRITONSERVER_ResponseAllocatorBufferAttributesFn_t attributes; /* NULL = no callback */
    TRITONSERVER_ResponseAllocatorQueryFn_t query;                 /* NULL = no callback */
};

struct allocator *allocator_new(TRITONSERVER_ResponseAllocatorAllocFn_t alloc,
                                TRITONSERVER_ResponseAllocatorReleaseFn_t release,
                                TRITONSERVER_ResponseAllocatorStartFn_t start);
void allocator_free(struct allocator *a);

/* allocator_of - the object behind an ABI handle; NULL if the handle is not an allocator. */
struct allocator *allocator_of(const void *handle);

/* allocator_start - tell the allocator that a new response of the request begins. Errors of the
 * callback are logged. r->allocator is set. */
void allocator_start(const struct request *r);

/* allocator_output - get memory for an output. `release` gives it back when the response is
 * freed.
 * memory, device  where the backend would like the memory; the output says where it really is
 * errors  the callback's own; UNAVAILABLE if it gave no memory for a size above 0 */
struct err *allocator_output(struct response *r, struct tensor_output *output, uint64_t byte_size,
                             TRITONSERVER_MemoryType memory, int64_t device);

/* allocator_query - ask where an output would lie.
 * errors  UNAVAILABLE without a query callback; else the callback's own */
struct err *allocator_query(const struct request *r, const char *name, size_t *byte_size,
                            TRITONSERVER_MemoryType *memory, int64_t *device);

/* allocator_userp - the buffer_userp of an output's memory; NULL if the memory is not from an
 * allocator. */
void *allocator_userp(const struct tensor_output *output);

/* allocator_attributes - the attributes that the callback gave for an output's memory; NULL if
 * the memory is not from an allocator. */
struct buffer_attributes *allocator_attributes(const struct tensor_output *output);
