#pragma once
/* Memory that backends get from the server: the TRITONBACKEND_MemoryManager of the C ABI. There
 * is one per process. Every byte of the host is charged to the budget. Any thread. */
#include "base/buf.h"
#include "base/err.h"

#include <stddef.h>
#include <stdint.h>

/* memory_manager_handle - its handle in the ABI.
 * memory_manager_is - true if a handle is that one. */
void *memory_manager_handle(void);
int memory_manager_is(const void *handle);

/* memory_manager_alloc - get `size` bytes, aligned to 64. Without a GPU, or where the pool of
 * pinned memory is spent, pinned memory is ordinary memory, which is only slower to copy.
 * errors  UNAVAILABLE if the budget or a pool is spent or there is no memory; UNSUPPORTED for
 *         an unknown kind, or the memory of a GPU that is not there */
struct err *memory_manager_alloc(enum buf_memory memory, int64_t device, uint64_t size, void **ret);

/* memory_manager_free - give memory back; NULL is fine.
 * errors  INVALID_ARG for memory that memory_manager_alloc did not return, or of another kind */
struct err *memory_manager_free(void *p, enum buf_memory memory, int64_t device);
