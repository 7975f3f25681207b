#pragma once

#include <stddef.h>

/* Memory of one execution: taken piece by piece, given back all at once. A small block stays for
 * the next execution; what does not fit there comes from the heap and goes back to it. */

struct scratch_block;

struct scratch {
    char *kept;
    size_t used;
    struct scratch_block *blocks;
};

enum { SCRATCH_ALIGN = 64 };

/* scratch_take - get memory, zeroed when asked.
 * size     bytes; 0 gives a pointer that must not be read
 * returns  aligned to SCRATCH_ALIGN, owned by the scratch; NULL when there is no memory */
void *scratch_take(struct scratch *scratch, size_t size);

/* scratch_array - get `count` elements of `size` bytes, all zero; otherwise as scratch_take. */
void *scratch_array(struct scratch *scratch, size_t count, size_t size);

/* scratch_reset - give everything back; what stays is the small block. */
void scratch_reset(struct scratch *scratch);

/* scratch_fini - free the small block as well. */
void scratch_fini(struct scratch *scratch);
