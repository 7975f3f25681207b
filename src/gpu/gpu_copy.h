#pragma once
/* Copies between memory of the host and of GPUs. */
#include "base/buf.h"
#include "base/err.h"

#include <stddef.h>
#include <stdint.h>

/* One end of a copy. */
struct gpu_copy_place {
    void *data; /* also of the source, which is only read */
    enum buf_memory memory;
    int64_t device;
};

/* gpu_copy - copy bytes; has ended when it returns. Without a GPU at either end it is memcpy.
 * Any thread; many at once each have a stream of their own.
 * errors  those of gpu_enter and gpu_check */
struct err *gpu_copy(struct gpu_copy_place to, struct gpu_copy_place from, uint64_t bytes);

/* gpu_copy_zeros - clear memory of a GPU; has ended when it returns, like a copy.
 * errors  those of gpu_copy */
struct err *gpu_copy_zeros(int64_t id, void *to, uint64_t bytes);

/* gpu_copy_host - a place in host memory. */
static inline struct gpu_copy_place gpu_copy_host(const void *data)
{
    return (struct gpu_copy_place){.data = (void *)(uintptr_t)data, .memory = BUF_MEMORY_CPU};
}
