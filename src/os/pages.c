#include "os/pages.h"

#include "base/fault.h"

#include <sys/mman.h>

void *pages_map(size_t bytes)
{
    if (fault_hit())
        return NULL;
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return p == MAP_FAILED ? NULL : p;
}

void pages_unmap(void *p, size_t bytes)
{
    if (p)
        munmap(p, bytes);
}

void pages_forget(void *p, size_t bytes)
{
    madvise(p, bytes, MADV_DONTNEED);
}
