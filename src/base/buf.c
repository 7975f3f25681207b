#include "base/buf.h"

void buf_init(struct buf *b, void *data, size_t size, void (*free_fn)(struct buf *b))
{
    b->data = data;
    b->size = size;
    b->memory = BUF_MEMORY_CPU;
    b->device = 0;
    atomic_init(&b->refs, 1);
    b->free_fn = free_fn;
}

struct buf *buf_ref(struct buf *b)
{
    atomic_fetch_add_explicit(&b->refs, 1, memory_order_relaxed);
    return b;
}

void buf_unref(struct buf *b)
{
    if (b && atomic_fetch_sub_explicit(&b->refs, 1, memory_order_acq_rel) == 1)
        b->free_fn(b);
}
