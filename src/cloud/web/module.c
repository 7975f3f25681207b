#include "cloud/web/module.h"

#include "os/files/beside.h"
#include "os/mutex.h"
#include "cloud/web/cloud_abi.h"

static struct mutex lock = MUTEX_INIT(MUTEX_RANK_LEAF); /* guards `table` */
static const void *table;

struct err *module_get(const struct cloud_abi **ret)
{
    static const struct beside module = {
        .file = "nereid/libnereid_cloud.so",
        .symbol = CLOUD_ABI_SYMBOL,
        .version = CLOUD_ABI_VERSION,
        .needed_by = "repositories in the cloud need",
    };
    struct err *e = NULL;
    mutex_lock(&lock);
    if (!table)
        e = beside_load(&module, &table);
    *ret = table;
    mutex_unlock(&lock);
    return e;
}
