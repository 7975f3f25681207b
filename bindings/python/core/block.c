#include "block.h"

#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>

enum { ALIGNMENT = 64 };

struct block {
    atomic_uint refs; /* the last one sees all that was written: acquire and release */
    _Alignas(ALIGNMENT) char data[];
};

struct block *block_ref(struct block *b)
{
    atomic_fetch_add_explicit(&b->refs, 1, memory_order_relaxed);
    return b;
}

void block_unref(struct block *b)
{
    if (b && atomic_fetch_sub_explicit(&b->refs, 1, memory_order_acq_rel) == 1)
        free(b);
}

static TRITONSERVER_Error *block_alloc(TRITONSERVER_ResponseAllocator *allocator, const char *name,
                                       size_t bytes, TRITONSERVER_MemoryType type, int64_t type_id,
                                       void *userp, void **buffer, void **buffer_userp,
                                       TRITONSERVER_MemoryType *actual_type, int64_t *actual_id)
{
    (void)allocator, (void)name, (void)type, (void)type_id, (void)userp;
    struct block *b = NULL;
    if (bytes > SIZE_MAX - sizeof *b || posix_memalign((void **)&b, ALIGNMENT, sizeof *b + bytes))
        return TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_UNAVAILABLE,
                                     "no memory for an output of this size");
    atomic_init(&b->refs, 1);
    *buffer = b->data;
    *buffer_userp = b;
    *actual_type = TRITONSERVER_MEMORY_CPU;
    *actual_id = 0;
    return NULL;
}

static TRITONSERVER_Error *block_release(TRITONSERVER_ResponseAllocator *allocator, void *buffer,
                                         void *buffer_userp, size_t bytes,
                                         TRITONSERVER_MemoryType type, int64_t type_id)
{
    (void)allocator, (void)buffer, (void)bytes, (void)type, (void)type_id;
    block_unref(buffer_userp);
    return NULL;
}

TRITONSERVER_Error *block_allocator(TRITONSERVER_ResponseAllocator **ret)
{
    static TRITONSERVER_ResponseAllocator *one; /* under the GIL */
    TRITONSERVER_Error *e = NULL;
    if (!one)
        e = TRITONSERVER_ResponseAllocatorNew(&one, block_alloc, block_release, NULL);
    *ret = one;
    return e;
}
