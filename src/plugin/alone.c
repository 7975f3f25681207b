#include "plugin/alone.h"

#include "base/mem.h"
#include "os/dl.h"

#include <stdint.h>

struct err *alone_check(const char *kind, const char *name)
{
    char *other = dl_find_other("libtritonserver", (const void *)(uintptr_t)alone_check);
    if (!other)
        return NULL;
    struct err *e = err_new(STATUS_INVALID_ARG,
                            "%s '%s' brings a second server library into the process, '%s'; "
                            "expected one that needs none, or needs 'libtritonserver.so'",
                            kind, name, other);
    mem_free(other);
    return e;
}
