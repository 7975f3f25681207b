#pragma once
/* Whole pages of memory, for buffers that live long and are seldom full. */
#include <stddef.h>

/* pages_map - `bytes` (rounded up to pages) of zeros, not touched yet; NULL when the system
 * gives none. */
void *pages_map(size_t bytes);
void pages_unmap(void *p, size_t bytes);

/* pages_forget - give the memory behind back to the system; the address stays, contents are
 * zeros again. */
void pages_forget(void *p, size_t bytes);
