#include "os/dl.h"

#include <dlfcn.h>
#include <stddef.h>

struct err *dl_open(const char *path, struct dl **ret)
{
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
    /* The handle is never closed: the library stays for as long as its plug-ins may. A program that has the code linked in
     * (tests) cannot be opened again; its symbols are global as they are. */
    (void)dlopen(info.dli_fname, RTLD_NOW | RTLD_NOLOAD | RTLD_GLOBAL);
    dlerror();
}
