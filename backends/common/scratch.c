#include "scratch.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { KEPT_SIZE = 256 * 1024 };

struct scratch_block {
    _Alignas(SCRATCH_ALIGN) struct scratch_block *next;
};

static size_t rounded(size_t size)
{
    return (size + SCRATCH_ALIGN - 1) & ~(size_t)(SCRATCH_ALIGN - 1);
}

void *scratch_take(struct scratch *scratch, size_t size)
{
    if (size > SIZE_MAX - 2 * sizeof(struct scratch_block))
        return NULL;
    size = size ? rounded(size) : SCRATCH_ALIGN;
    if (!scratch->kept)
        scratch->kept = aligned_alloc(SCRATCH_ALIGN, KEPT_SIZE);
    if (scratch->kept && size <= KEPT_SIZE - scratch->used) {
        char *piece = scratch->kept + scratch->used;
        scratch->used += size;
        return piece;
    }
    struct scratch_block *block = aligned_alloc(SCRATCH_ALIGN, sizeof *block + size);
    if (!block)
        return NULL;
    block->next = scratch->blocks;
    scratch->blocks = block;
    return block + 1;
}

void *scratch_array(struct scratch *scratch, size_t count, size_t size)
{
    size_t total;
    if (__builtin_mul_overflow(count, size, &total))
        return NULL;
    void *array = scratch_take(scratch, total);
    if (array)
        memset(array, 0, total);
    return array;
}

void scratch_reset(struct scratch *scratch)
{
    while (scratch->blocks) {
        struct scratch_block *next = scratch->blocks->next;
        free(scratch->blocks);
        scratch->blocks = next;
    }
    scratch->used = 0;
}

void scratch_fini(struct scratch *scratch)
{
    scratch_reset(scratch);
    free(scratch->kept);
    scratch->kept = NULL;
}
