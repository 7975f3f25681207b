#pragma once
/* Memory that backends take from the server's pools: the TRITONBACKEND_MemoryManager of the C
 * ABI. One for the process. Every byte is charged to the budget. Any thread. */
#include "base/buf.h"
#include "base/err.h"

#include <stddef.h>
#include <stdint.h>

/* memory_manager_handle - what stands for it in the ABI; memory_manager_is - whether a handle is
 * that. */
void *memory_manager_handle(void);
int memory_manager_is(const void *handle);

/* memory_manager_alloc - memory of `size` bytes, aligned to 64. Without a GPU pinned memory is
 * plain memory.
 * errors  UNSUPPORTED for GPU memory; UNAVAILABLE when the budget is spent or there is no memory */
struct err *memory_manager_alloc(enum buf_memory memory, int64_t device, uint64_t size, void **ret);

/* memory_manager_free - give it back; NULL is fine.
 * errors  INVALID_ARG for memory that memory_manager_alloc did not hand out, or another kind */
struct err *memory_manager_free(void *p, enum buf_memory memory, int64_t device);
