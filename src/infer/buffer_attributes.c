#include "infer/buffer_attributes.h"

#include "base/mem.h"

#define BUFFER_ATTRIBUTES_MAGIC 0x42554641u

void buffer_attributes_init(struct buffer_attributes *b, uint64_t byte_size, enum buf_memory memory,
                            int64_t device)
{
    *b = (struct buffer_attributes){.magic = BUFFER_ATTRIBUTES_MAGIC,
                                    .memory = memory,
                                    .device = device,
                                    .byte_size = byte_size};
}

struct buffer_attributes *buffer_attributes_new(void)
{
    struct buffer_attributes *b = MEM_NEW(struct buffer_attributes);
    buffer_attributes_init(b, 0, BUF_MEMORY_CPU, 0);
    return b;
}

void buffer_attributes_free(struct buffer_attributes *b)
{
    if (!b)
        return;
    b->magic = 0;
    mem_free(b);
}

struct buffer_attributes *buffer_attributes_of(const void *handle)
{
    struct buffer_attributes *b = (struct buffer_attributes *)(uintptr_t)handle;
    return b && b->magic == BUFFER_ATTRIBUTES_MAGIC ? b : NULL;
}
