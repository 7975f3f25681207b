#include "base/mem.h"

#include "base/check.h"
#include "base/fault.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static void *must(void *p)
{
    CHECK(p && "out of memory");
    return p;
}

void *mem_alloc(size_t n)
{
    return must(malloc(n ? n : 1));
}

void *mem_zalloc(size_t n)
{
    return must(calloc(1, n ? n : 1));
}

void *mem_realloc(void *p, size_t n)
{
    return must(realloc(p, n ? n : 1));
}

char *mem_strndup(const char *s, size_t n)
{
    char *copy = mem_alloc(n + 1);
    if (n)
        memcpy(copy, s, n);
    copy[n] = '\0';
    return copy;
}

char *mem_strdup(const char *s)
{
    return mem_strndup(s, strlen(s));
}

/* The size is not rounded up, as aligned_alloc would require, so that an address sanitizer
 * detects access to the first byte past the end. */
static void *mem_aligned(size_t n, size_t align)
{
    void *p;
    if (align <= 16)
        return malloc(n ? n : 1);
    return posix_memalign(&p, align, n ? n : 1) == 0 ? p : NULL;
}

void *mem_try_alloc(size_t n, size_t align)
{
    return fault_hit() ? NULL : mem_aligned(n, align);
}

void *mem_alloc_aligned(size_t n, size_t align)
{
    return must(mem_aligned(n, align));
}

void mem_free(void *p)
{
    free(p);
}

size_t mem_array_bytes(size_t count, size_t size)
{
    size_t bytes;
    return __builtin_mul_overflow(count, size, &bytes) ? SIZE_MAX : bytes;
}
