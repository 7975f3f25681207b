#pragma once
/* A run of bytes with a reference count: request bodies, tensors, shared memory, backend
 * outputs. Its size never changes. The holder of the only reference may write; otherwise it is
 * only read. */
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

/* Values of TRITONSERVER_MemoryType. */
enum buf_memory {
    BUF_MEMORY_CPU = 0,
    BUF_MEMORY_CPU_PINNED = 1,
    BUF_MEMORY_GPU = 2,
};

struct buf {
    uint8_t *data;
    size_t size;
    enum buf_memory memory;
    int64_t device;
    atomic_uint refs;               /* the last unref acquires what all other holders released */
    void (*free_fn)(struct buf *b); /* frees data and the struct, and gives back what was charged */
};

/* buf_init - set the fields; the caller has one reference. */
void buf_init(struct buf *b, void *data, size_t size, void (*free_fn)(struct buf *b));
struct buf *buf_ref(struct buf *b);

/* buf_unref - drop a reference; NULL is fine. Any thread. */
void buf_unref(struct buf *b);
