#include "plugin/memory_manager.h"

#include "base/budget.h"
#include "gpu/gpu_memory.h"
#include "os/pool.h"

#include <inttypes.h>

#define BLOCK_MAGIC 0x4d4d424cu
#define BLOCK_BYTES 64u /* size of the header in front of the memory; keeps the alignment */

struct block {
    uint32_t magic;
    enum buf_memory memory;
    int64_t device;
    struct buf *buf; /* NULL = pinned memory of GPUs */
    size_t charged;  /* to the budget, for pinned memory */
};

_Static_assert(sizeof(struct block) <= BLOCK_BYTES, "the header fits in front");

static const char manager = 'm';

void *memory_manager_handle(void)
{
    return (void *)(uintptr_t)&manager;
}

int memory_manager_is(const void *handle)
{
    return handle == &manager;
}

/* Pinned memory from its pool; NULL where ordinary memory has to do. */
static struct block *alloc_pinned(size_t bytes)
{
    if (!budget_charge(bytes))
        return NULL; /* ordinary memory says why */
    struct block *b = gpu_memory_pinned(bytes);
    if (!b) {
        budget_release(bytes);
        return NULL;
    }
    *b = (struct block){.charged = bytes};
    return b;
}

struct err *memory_manager_alloc(enum buf_memory memory, int64_t device, uint64_t size, void **ret)
{
    if (memory == BUF_MEMORY_GPU)
        return gpu_memory_alloc(device, size, ret);
    if (memory != BUF_MEMORY_CPU && memory != BUF_MEMORY_CPU_PINNED)
        return err_new(STATUS_UNSUPPORTED, "there is no memory of type %d", (int)memory);
    if (size > SIZE_MAX - BLOCK_BYTES)
        return err_new(STATUS_UNAVAILABLE, "there are no %" PRIu64 " bytes of memory", size);
    size_t bytes = (size_t)size + BLOCK_BYTES;
    struct block *b = memory == BUF_MEMORY_CPU_PINNED ? alloc_pinned(bytes) : NULL;
    if (!b) {
        struct buf *buf;
        struct err *e = pool_buf(bytes, &buf);
        if (e)
            return e;
        b = (struct block *)(void *)buf->data;
        *b = (struct block){.buf = buf};
    }
    b->magic = BLOCK_MAGIC;
    b->memory = memory;
    b->device = device;
    *ret = (char *)b + BLOCK_BYTES;
    return NULL;
}

struct err *memory_manager_free(void *p, enum buf_memory memory, int64_t device)
{
    if (!p)
        return NULL;
    if (memory == BUF_MEMORY_GPU)
        return gpu_memory_free(device, p);
    struct block *b = (struct block *)(void *)((char *)p - BLOCK_BYTES);
    if (b->magic != BLOCK_MAGIC || b->memory != memory || b->device != device)
        return err_new(STATUS_INVALID_ARG,
                       "memory of type %d and id %" PRId64
                       " to be freed was not allocated by the memory manager as such",
                       (int)memory, device);
    b->magic = 0;
    if (b->buf) {
        buf_unref(b->buf);
        return NULL;
    }
    budget_release(b->charged);
    gpu_memory_unpin(b);
    return NULL;
}
