#include "plugin/custom_library.h"

#include "base/mem.h"
#include "os/dl.h"

#include <inttypes.h>

static struct err *custom_library_find(const struct custom_library *l, const char *path,
                                       const char *name, void *ret)
{
    void *address = dl_symbol(l->dl, name);
    if (!address)
        return err_new(STATUS_NOT_FOUND,
                       "unable to find '%s' entrypoint in custom library '%s': expected the "
                       "interface of custom.h",
                       name, path);
    *(void **)ret = address;
    return NULL;
}

static struct err *custom_library_find_all(struct custom_library *l, const char *path)
{
    struct err *e = custom_library_find(l, path, "CustomInitialize", &l->initialize);
    if (!e)
        e = custom_library_find(l, path, "CustomFinalize", &l->finalize);
    if (!e)
        e = custom_library_find(l, path, "CustomErrorString", &l->error_string);
    if (e)
        return e;
    CustomVersionFn_t version;
    *(void **)&version = dl_symbol(l->dl, "CustomVersion");
    l->version = version ? version() : 1;
    switch (l->version) {
    case 1:
        return custom_library_find(l, path, "CustomExecute", &l->execute);
    case 2:
        return custom_library_find(l, path, "CustomExecuteV2", &l->execute_v2);
    default:
        return err_new(STATUS_INVALID_ARG,
                       "custom library '%s' has version %" PRIu32
                       " of the interface of custom.h, expected 1 or 2",
                       path, l->version);
    }
}

struct err *custom_library_open(const char *path, struct custom_library **ret)
{
    struct custom_library *l = MEM_NEW(struct custom_library);
    struct err *e = dl_open(path, &l->dl);
    if (!e)
        e = custom_library_find_all(l, path);
    if (e) {
        custom_library_close(l);
        return e;
    }
    *ret = l;
    return NULL;
}

void custom_library_close(struct custom_library *l)
{
    if (!l)
        return;
    dl_close(l->dl);
    mem_free(l);
}

const char *custom_library_words(const struct custom_library *l, void *context, int code)
{
    const char *words = l->error_string(context, code);
    return words ? words : "<no error string>";
}
