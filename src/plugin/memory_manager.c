#include "plugin/memory_manager.h"

#include "os/pool.h"

#include <inttypes.h>

#define BLOCK_MAGIC 0x4d4d424cu
#define BLOCK_BYTES 64u /* size of the header in front of the memory; keeps the alignment */

struct block {
    uint32_t magic;
    enum buf_memory memory;
    int64_t device;
    struct buf *buf;
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

struct err *memory_manager_alloc(enum buf_memory memory, int64_t device, uint64_t size, void **ret)
{
    if (memory != BUF_MEMORY_CPU && memory != BUF_MEMORY_CPU_PINNED)
        return err_new(STATUS_UNSUPPORTED, "memory of GPU %" PRId64 " is not supported", device);
    if (size > SIZE_MAX - BLOCK_BYTES)
        return err_new(STATUS_UNAVAILABLE, "there are no %" PRIu64 " bytes of memory", size);
    struct buf *buf;
    struct err *e = pool_buf((size_t)size + BLOCK_BYTES, &buf);
    if (e)
        return e;
    struct block *b = (struct block *)(void *)buf->data;
    *b = (struct block){.magic = BLOCK_MAGIC, .memory = memory, .device = device, .buf = buf};
    *ret = buf->data + BLOCK_BYTES;
    return NULL;
}

struct err *memory_manager_free(void *p, enum buf_memory memory, int64_t device)
{
    if (!p)
        return NULL;
    struct block *b = (struct block *)(void *)((char *)p - BLOCK_BYTES);
    if (b->magic != BLOCK_MAGIC || b->memory != memory || b->device != device)
        return err_new(STATUS_INVALID_ARG,
                       "memory of type %d and id %" PRId64
                       " to be freed was not allocated by the memory manager as such",
                       (int)memory, device);
    b->magic = 0;
    buf_unref(b->buf);
    return NULL;
}
