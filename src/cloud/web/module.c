#include "cloud/web/module.h"

#include "base/mem.h"
#include "base/strbuf.h"
#include "os/dl.h"
#include "os/files/file.h"
#include "os/mutex.h"
#include "cloud/web/cloud_abi.h"

#include <string.h>

#define FILE_NAME "nereid/libnereid_cloud.so"

static struct mutex lock = MUTEX_INIT(MUTEX_RANK_LEAF); /* guards `table` */
static const struct cloud_abi *table;

/* Beside libtritonserver.so; where a program has our code linked in, in the lib of its tree. The
 * caller's. */
static char *module_find(void)
{
    static const char *const places[] = {FILE_NAME, "../lib/" FILE_NAME, "../../lib/" FILE_NAME};
    char *self = dl_path_of((const void *)&table);
    char *slash = self ? strrchr(self, '/') : NULL;
    struct strbuf path = STRBUF_INIT;
    for (size_t i = 0; slash && i < sizeof(places) / sizeof(places[0]); i++) {
        strbuf_fini(&path);
        path = (struct strbuf)STRBUF_INIT;
        strbuf_printf(&path, "%.*s/%s", (int)(slash - self), self, places[i]);
        if (file_exists(strbuf_str(&path)))
            break;
    }
    mem_free(self);
    return strbuf_take(&path);
}

static struct err *module_load(const struct cloud_abi **ret)
{
    char *path = module_find();
    struct dl *dl = NULL;
    struct err *e = dl_open(path, &dl);
    const struct cloud_abi *found = dl ? dl_symbol(dl, CLOUD_ABI_SYMBOL) : NULL;
    if (!e && (!found || found->version != CLOUD_ABI_VERSION))
        e = err_new(STATUS_INTERNAL, "'%s' is of another version of the server", path);
    if (e)
        dl_close(dl);
    else
        *ret = found;
    mem_free(path);
    return err_wrap(e, "repositories in the cloud need the module " FILE_NAME);
}

struct err *module_get(const struct cloud_abi **ret)
{
    struct err *e = NULL;
    mutex_lock(&lock);
    if (!table)
        e = module_load(&table);
    *ret = table;
    mutex_unlock(&lock);
    return e;
}
