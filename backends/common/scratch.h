#pragma once

#include <stddef.h>

/* Memory for one execution: allocated piece by piece, freed all at once. A small block is kept
 * for the next execution; what does not fit in it comes from the heap. */

struct scratch_block;

struct scratch {
    char *kept;
    size_t used;
    struct scratch_block *blocks;
};

enum { SCRATCH_ALIGN = 64 };

/* scratch_take - get memory, not cleared.
 * size     bytes; with 0 the returned pointer must not be read
 * returns  aligned to SCRATCH_ALIGN, owned by the scratch; NULL if there is no memory */
void *scratch_take(struct scratch *scratch, size_t size);

/* scratch_array - get `count` elements of `size` bytes, all zero; otherwise as scratch_take. */
void *scratch_array(struct scratch *scratch, size_t count, size_t size);

/* scratch_reset - free everything except the small block. */
void scratch_reset(struct scratch *scratch);

/* scratch_fini - free the small block too. */
void scratch_fini(struct scratch *scratch);
