#pragma once
/* Heap memory. Two kinds of caller:
 * - sizes that we choose (structs, names, small tables): mem_alloc and friends, which end the
 *   process with a message when memory is gone, since no sensible step is left then
 *   (docs/decisions/0002-allocation-failure.md);
 * - sizes that a peer, a file or a configuration chooses: mem_try_alloc, which may fail and must
 *   be answered with an error. */
#include <stddef.h>

/* mem_alloc - n bytes, not cleared; mem_zalloc - n bytes of zeros; mem_realloc - as realloc.
 * Never NULL; freed by mem_free. */
__attribute__((malloc, returns_nonnull)) void *mem_alloc(size_t n);
__attribute__((malloc, returns_nonnull)) void *mem_zalloc(size_t n);
__attribute__((returns_nonnull)) void *mem_realloc(void *p, size_t n);

/* mem_alloc_aligned - n bytes aligned to `align` (a power of two, >= 8), not cleared. Never
 * NULL; freed by mem_free. */
__attribute__((malloc, returns_nonnull)) void *mem_alloc_aligned(size_t n, size_t align);

/* mem_strdup, mem_strndup - a copy that ends in NUL; freed by mem_free. */
__attribute__((malloc, returns_nonnull)) char *mem_strdup(const char *s);
__attribute__((malloc, returns_nonnull)) char *mem_strndup(const char *s, size_t n);

/* mem_try_alloc - n bytes aligned to `align` (a power of two, >= 8), or NULL when there is no
 * memory. */
__attribute__((malloc)) void *mem_try_alloc(size_t n, size_t align);

/* mem_free - NULL is fine. */
void mem_free(void *p);

/* MEM_NEW - one cleared object of a type. */
#define MEM_NEW(type) ((type *)mem_zalloc(sizeof(type)))

/* mem_array_bytes - count * size, or SIZE_MAX when that overflows. */
size_t mem_array_bytes(size_t count, size_t size);
