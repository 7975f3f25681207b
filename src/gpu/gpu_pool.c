#include "gpu/gpu_pool.h"

#include "base/mem.h"

struct gpu_pool_block {
    struct gpu_pool_block *next;
    void *address;
    uint64_t size;
};

/* Class 2k is LEAST * 2^k, class 2k+1 half as much more. */
static uint64_t gpu_pool_class_size(unsigned class)
{
    uint64_t size = GPU_POOL_LEAST << (class / 2);
    return class % 2 ? size + size / 2 : size;
}

static unsigned gpu_pool_class_of(uint64_t bytes)
{
    unsigned class = 0;
    while (class < GPU_POOL_CLASSES && gpu_pool_class_size(class) < bytes)
        class ++;
    return class;
}

uint64_t gpu_pool_size(uint64_t bytes)
{
    unsigned class = gpu_pool_class_of(bytes);
    return class < GPU_POOL_CLASSES ? gpu_pool_class_size(class) : 0;
}

static struct gpu_pool_block **gpu_pool_bucket_of(struct gpu_pool *p, const void *address)
{
    return &p->taken[((uintptr_t)address / GPU_POOL_LEAST) % GPU_POOL_BUCKETS];
}

static void hand_out(struct gpu_pool *p, struct gpu_pool_block *b)
{
    struct gpu_pool_block **bucket = gpu_pool_bucket_of(p, b->address);
    b->next = *bucket;
    *bucket = b;
    p->used += b->size;
}

static struct gpu_pool_block *pop(struct gpu_pool_block **list)
{
    struct gpu_pool_block *b = *list;
    if (b)
        *list = b->next;
    return b;
}

/* Kept blocks do not count: they can be dropped. */
static bool gpu_pool_has_room(const struct gpu_pool *p, uint64_t size)
{
    uint64_t spoken_for = p->used + p->making;
    return spoken_for <= p->limit && size <= p->limit - spoken_for;
}

void *gpu_pool_take(struct gpu_pool *p, uint64_t size)
{
    if (!gpu_pool_has_room(p, size))
        return NULL;
    struct gpu_pool_block *b = pop(&p->kept[gpu_pool_class_of(size)]);
    if (!b)
        return NULL;
    hand_out(p, b);
    return b->address;
}

bool gpu_pool_reserve(struct gpu_pool *p, uint64_t size)
{
    if (!gpu_pool_has_room(p, size))
        return false;
    p->making += size;
    p->held += size;
    return true;
}

void gpu_pool_unreserve(struct gpu_pool *p, uint64_t size)
{
    p->making -= size;
    p->held -= size;
}

void gpu_pool_add(struct gpu_pool *p, void *block, uint64_t size)
{
    struct gpu_pool_block *b = MEM_NEW(struct gpu_pool_block);
    b->address = block;
    b->size = size;
    p->making -= size;
    hand_out(p, b);
}

/* Forgets the block; the pool holds its bytes no more. */
static void *forget(struct gpu_pool *p, struct gpu_pool_block *b)
{
    void *address = b->address;
    p->held -= b->size;
    mem_free(b);
    return address;
}

void *gpu_pool_drop(struct gpu_pool *p)
{
    for (unsigned class = GPU_POOL_CLASSES; class -- > 0;) {
        struct gpu_pool_block *b = pop(&p->kept[class]);
        if (b)
            return forget(p, b);
    }
    return NULL;
}

bool gpu_pool_give(struct gpu_pool *p, void *block)
{
    struct gpu_pool_block **at = gpu_pool_bucket_of(p, block);
    while (*at && (*at)->address != block)
        at = &(*at)->next;
    struct gpu_pool_block *b = pop(at);
    if (!b)
        return false;
    p->used -= b->size;
    struct gpu_pool_block **kept = &p->kept[gpu_pool_class_of(b->size)];
    b->next = *kept;
    *kept = b;
    return true;
}

void *gpu_pool_lose(struct gpu_pool *p)
{
    for (unsigned i = 0; i < GPU_POOL_BUCKETS; i++) {
        struct gpu_pool_block *b = pop(&p->taken[i]);
        if (!b)
            continue;
        p->used -= b->size;
        return forget(p, b);
    }
    return NULL;
}
