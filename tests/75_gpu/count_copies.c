/* Preloaded into a server: counts the copies that it and its backends ask CUDA's driver for. What
 * PyTorch copies by itself is not among them: it does not look for the driver's functions this way.
 * NEREID_COPIES  a file of two numbers of eight bytes, which exists: copies, bytes */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static _Atomic uint64_t *counts;
static int (*copy)(uintptr_t to, uintptr_t from, size_t size, void *stream);

static int counted_copy(uintptr_t to, uintptr_t from, size_t size, void *stream)
{
    if (counts) {
        atomic_fetch_add(&counts[0], 1);
        atomic_fetch_add(&counts[1], size);
    }
    return copy(to, from, size, stream);
}

static void open_counts(void)
{
    const char *path = getenv("NEREID_COPIES");
    int fd = path ? open(path, O_RDWR) : -1;
    void *map = fd < 0 ? MAP_FAILED
                       : mmap(NULL, 2 * sizeof *counts, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    counts = map == MAP_FAILED ? NULL : map;
}

void *dlsym(void *library, const char *name)
{
    static void *(*real)(void *, const char *);
    if (!real) {
        void *address = dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.34");
        memcpy(&real, &address, sizeof address);
    }
    void *found = real(library, name);
    if (!found || strcmp(name, "cuMemcpyAsync") != 0)
        return found;
    if (!counts)
        open_counts();
    memcpy(&copy, &found, sizeof found);
    int (*ours)(uintptr_t, uintptr_t, size_t, void *) = counted_copy;
    memcpy(&found, &ours, sizeof found);
    return found;
}
