#pragma once
/* Memory for outputs from a caller of the C API: the TRITONSERVER_ResponseAllocator. Its
 * callbacks run on whichever thread makes the response; requests of the front ends have none. */
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
    TRITONSERVER_ResponseAllocatorStartFn_t start;                 /* NULL = not wanted */
    TRITONSERVER_ResponseAllocatorBufferAttributesFn_t attributes; /* NULL = not wanted */
    TRITONSERVER_ResponseAllocatorQueryFn_t query;                 /* NULL = not wanted */
};

struct allocator *allocator_new(TRITONSERVER_ResponseAllocatorAllocFn_t alloc,
                                TRITONSERVER_ResponseAllocatorReleaseFn_t release,
                                TRITONSERVER_ResponseAllocatorStartFn_t start);
void allocator_free(struct allocator *a);

/* allocator_of - the object behind an ABI handle; NULL when it is none. */
struct allocator *allocator_of(const void *handle);

/* allocator_start - a new response of the request begins. Errors of the callback are logged.
 * r->allocator is set. */
void allocator_start(const struct request *r);

/* allocator_output - memory for an output; given back through `release` when the response is freed.
 * memory, device  where the backend would like it; the output tells where it is
 * errors  the callback's own; UNAVAILABLE when it gave no memory for a size above 0 */
struct err *allocator_output(struct response *r, struct tensor_output *output, uint64_t byte_size,
                             TRITONSERVER_MemoryType memory, int64_t device);

/* allocator_query - where an output would lie.
 * errors  UNAVAILABLE without a query callback; the callback's own */
struct err *allocator_query(const struct request *r, const char *name, size_t *byte_size,
                            TRITONSERVER_MemoryType *memory, int64_t *device);

/* allocator_userp - the buffer_userp of an output's memory; NULL when that is not from an
 * allocator. */
void *allocator_userp(const struct tensor_output *output);

/* allocator_attributes - what the callback said about an output's memory; NULL when that is not
 * from an allocator. */
struct buffer_attributes *allocator_attributes(const struct tensor_output *output);
