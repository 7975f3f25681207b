#pragma once
/* Whole pages of memory, for buffers that live long and are rarely full. */
#include <stddef.h>

/* pages_map - map `bytes` (rounded up to pages) of zeros without touching them; NULL if the
 * system has no memory. */
void *pages_map(size_t bytes);
void pages_unmap(void *p, size_t bytes);

/* pages_forget - give the memory back to the system; the address range stays, and reads as
 * zeros. */
void pages_forget(void *p, size_t bytes);
