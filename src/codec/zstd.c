#include "codec/zstd.h"

#include "os/dl.h"
#include "os/mutex.h"

#include <stdbool.h>

#define LIBRARY "libzstd.so.1"

static struct mutex zstd_lock = MUTEX_INIT(MUTEX_RANK_LEAF); /* guards what follows */
static struct zstd zstd_found;
static struct dl *zstd_dl; /* never closed */

static bool zstd_find_functions(struct dl *d, struct zstd *z)
{
    const struct dl_function wanted[] = {
        {"ZSTD_createDCtx", &z->unpacker_new},
        {"ZSTD_freeDCtx", &z->unpacker_free},
        {"ZSTD_DCtx_setParameter", &z->unpacker_set},
        {"ZSTD_sizeof_DCtx", &z->unpacker_bytes},
        {"ZSTD_decompressStream", &z->unpack},
        {"ZSTD_createCCtx", &z->packer_new},
        {"ZSTD_freeCCtx", &z->packer_free},
        {"ZSTD_CCtx_setParameter", &z->packer_set},
        {"ZSTD_CCtx_setPledgedSrcSize", &z->packer_set_size},
        {"ZSTD_sizeof_CCtx", &z->packer_bytes},
        {"ZSTD_compressStream2", &z->pack},
        {"ZSTD_compressBound", &z->bound},
        {"ZSTD_isError", &z->is_error},
        {"ZSTD_getErrorName", &z->error_name},
        {"ZSTD_getFrameContentSize", &z->frame_size},
    };
    size_t count = sizeof(wanted) / sizeof(*wanted);
    return dl_functions(d, wanted, count) == count;
}

/* Under the lock. */
static struct err *zstd_open(void)
{
    struct dl *d;
    struct err *e = dl_open(LIBRARY, &d);
    if (e)
        return err_recode(err_wrap(e, "zstd"), STATUS_UNSUPPORTED);
    if (!zstd_find_functions(d, &zstd_found)) {
        dl_close(d);
        return err_new(STATUS_UNSUPPORTED, "zstd: " LIBRARY " lacks a function");
    }
    zstd_dl = d;
    return NULL;
}

struct err *zstd_library(const struct zstd **ret)
{
    mutex_lock(&zstd_lock);
    struct err *e = zstd_dl ? NULL : zstd_open();
    mutex_unlock(&zstd_lock);
    *ret = &zstd_found;
    return e;
}
