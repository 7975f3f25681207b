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

/* All three have two addresses, a size and a stream. */
typedef int copy_fn(uintptr_t to, uintptr_t from, size_t size, void *stream);
static copy_fn *copy, *copy_up, *copy_down;

static int count_and(copy_fn *next, uintptr_t to, uintptr_t from, size_t size, void *stream)
{
    if (counts) {
        atomic_fetch_add(&counts[0], 1);
        atomic_fetch_add(&counts[1], size);
    }
    return next(to, from, size, stream);
}

static int counted_copy(uintptr_t to, uintptr_t from, size_t size, void *stream)
{
    return count_and(copy, to, from, size, stream);
}

static int counted_copy_up(uintptr_t to, uintptr_t from, size_t size, void *stream)
{
    return count_and(copy_up, to, from, size, stream);
}

static int counted_copy_down(uintptr_t to, uintptr_t from, size_t size, void *stream)
{
    return count_and(copy_down, to, from, size, stream);
}

static const struct counted {
    const char *name;
    copy_fn **real, *ours;
} functions[] = {
    {"cuMemcpyAsync", &copy, counted_copy},
    {"cuMemcpyHtoDAsync_v2", &copy_up, counted_copy_up},
    {"cuMemcpyDtoHAsync_v2", &copy_down, counted_copy_down},
};

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
    for (size_t i = 0; found && i < sizeof functions / sizeof *functions; i++)
        if (strcmp(name, functions[i].name) == 0) {
            if (!counts)
                open_counts();
            memcpy(functions[i].real, &found, sizeof found);
            memcpy(&found, &functions[i].ours, sizeof found);
            break;
        }
    return found;
}
