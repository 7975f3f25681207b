#include "os/dl.h"

#include "base/mem.h"

#include <dlfcn.h>
#include <link.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>

struct err *dl_open(const char *path, struct dl **ret)
{
    struct stat st;
    if (strchr(path, '/') && stat(path, &st) == 0 && !S_ISREG(st.st_mode))
        return err_new(STATUS_INTERNAL, "unable to load shared library: '%s' is not a regular file",
                       path);
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!handle)
        return err_new(STATUS_INTERNAL, "unable to load shared library: %s", dlerror());
    *ret = handle;
    return NULL;
}

void *dl_symbol(struct dl *d, const char *name)
{
    return dlsym(d, name);
}

size_t dl_functions(struct dl *d, const struct dl_function *wanted, size_t count)
{
    size_t found = 0;
    for (size_t i = 0; i < count; i++) {
        void *address = dl_symbol(d, wanted[i].name);
        memcpy(wanted[i].to, &address, sizeof(address));
        found += address != NULL;
    }
    return found;
}

void dl_close(struct dl *d)
{
    if (d)
        dlclose(d);
}

void dl_make_self_global(const void *address)
{
    Dl_info info;
    if (!dladdr(address, &info) || !info.dli_fname)
        return;
    /* The handle is never closed, so the library stays loaded as long as its plug-ins. If the
     * code is linked into a program (tests), dlopen fails; the symbols are global then anyway. */
    (void)dlopen(info.dli_fname, RTLD_NOW | RTLD_NOLOAD | RTLD_GLOBAL);
    dlerror();
}

char *dl_path_of(const void *address)
{
    Dl_info info;
    return dladdr(address, &info) && info.dli_fname ? mem_strdup(info.dli_fname) : NULL;
}

struct search {
    const char *prefix;
    uintptr_t address;
    char *found;
};

/* True if the last component of the path begins with the prefix. The C library's own lock orders
 * this with threads that load libraries. The thread sanitizer does not know that lock and
 * watches the functions of string.h, so they are not used here. */
__attribute__((no_sanitize("thread"))) static bool dl_is_named(const char *path, const char *prefix)
{
    const char *name = path;
    for (const char *c = path; *c; c++)
        if (*c == '/')
            name = c + 1;
    while (*prefix && *name == *prefix) {
        name++;
        prefix++;
    }
    return !*prefix;
}

static int dl_look_at(struct dl_phdr_info *info, size_t size, void *arg)
{
    (void)size;
    struct search *s = arg;
    if (s->found || !dl_is_named(info->dlpi_name, s->prefix))
        return 0;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        uintptr_t begin = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
        if (info->dlpi_phdr[i].p_type == PT_LOAD && s->address - begin < info->dlpi_phdr[i].p_memsz)
            return 0;
    }
    s->found = mem_strdup(info->dlpi_name);
    return 0;
}

char *dl_find_other(const char *prefix, const void *address)
{
    struct search s = {.prefix = prefix, .address = (uintptr_t)address};
    dl_iterate_phdr(dl_look_at, &s);
    return s.found;
}
