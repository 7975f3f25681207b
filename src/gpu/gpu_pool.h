#pragma once
/* Blocks of memory by size: those that were freed are kept for the next that asks. Pure: it
 * knows addresses and sizes, and neither touches the memory nor gets any. The caller locks. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Sizes are rounded up to these: powers of two, and one and a half of each. */
#define GPU_POOL_LEAST   ((uint64_t)512)
#define GPU_POOL_CLASSES 64
#define GPU_POOL_BUCKETS 64

struct gpu_pool_block;

struct gpu_pool {
    uint64_t limit;  /* the most that `held` may be */
    uint64_t held;   /* bytes of all blocks, and of those that are being made */
    uint64_t used;   /* bytes of blocks that are handed out */
    uint64_t making; /* bytes of blocks that are reserved and neither added nor unreserved yet */
    struct gpu_pool_block *kept[GPU_POOL_CLASSES];
    struct gpu_pool_block *taken[GPU_POOL_BUCKETS]; /* by address */
};

/* gpu_pool_size - the size of the block for so many bytes; 0 = too many for any pool. */
uint64_t gpu_pool_size(uint64_t bytes);

/* gpu_pool_take - hand out a kept block of this size (of gpu_pool_size); NULL if none is kept, or
 * those that are being made need its room. */
void *gpu_pool_take(struct gpu_pool *p, uint64_t size);

/* gpu_pool_reserve - count a new block of this size. False if that exceeds the limit even without
 *                    the kept blocks; if only they are in the way, gpu_pool_drop comes first.
 * gpu_pool_add - the block was made: it is handed out.
 * gpu_pool_unreserve - it could not be made. */
bool gpu_pool_reserve(struct gpu_pool *p, uint64_t size);
void gpu_pool_add(struct gpu_pool *p, void *block, uint64_t size);
void gpu_pool_unreserve(struct gpu_pool *p, uint64_t size);

/* gpu_pool_drop - forget a kept block, the largest first, so that the caller can free it; NULL if
 * none is kept. */
void *gpu_pool_drop(struct gpu_pool *p);

/* gpu_pool_give - keep a block that was handed out. False if it was not. */
bool gpu_pool_give(struct gpu_pool *p, void *block);

/* gpu_pool_lose - forget a block that was handed out and never came back; NULL if there is none. */
void *gpu_pool_lose(struct gpu_pool *p);
