#pragma once
/* Heap memory. There are two kinds of callers:
 * - sizes that the server chooses (structs, names, small tables): mem_alloc and the like. They
 *   end the process with a message if there is no memory, because no sensible step is left then
 *   (docs/decisions/0002-allocation-failure.md);
 * - sizes that a peer, a file or a configuration chooses: mem_try_alloc, which may fail; the
 *   caller then answers with an error. */
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

/* mem_try_alloc - n bytes aligned to `align` (a power of two, >= 8); NULL if there is no memory. */
__attribute__((malloc)) void *mem_try_alloc(size_t n, size_t align);

/* mem_free - NULL is fine. */
void mem_free(void *p);

/* MEM_NEW - allocate one cleared object of a type. */
#define MEM_NEW(type) ((type *)mem_zalloc(sizeof(type)))

/* mem_array_bytes - count * size, or SIZE_MAX if that overflows. */
size_t mem_array_bytes(size_t count, size_t size);
