#include "cache/cache_plugin.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/strbuf.h"
#include "os/dl.h"
#include "os/files/file.h"
#include "plugin/alone.h"

#include <stdint.h>
#include <string.h>

/* Finds a function of the library; every function is required. */
static struct err *cache_plugin_find(struct cache_plugin *p, const char *name, void **ret)
{
    *ret = dl_symbol(p->dl, name);
    return *ret ? NULL
                : err_new(STATUS_NOT_FOUND,
                          "unable to find required entrypoint '%s' in shared library '%s'", name,
                          p->path);
}

static struct err *cache_plugin_open_library(struct cache_plugin *p)
{
    dl_make_self_global((const void *)(uintptr_t)cache_plugin_open_library);
    struct err *e = dl_open(p->path, &p->dl);
    if (!e)
        e = alone_check("cache", p->name);
    if (!e)
        e = cache_plugin_find(p, "TRITONCACHE_CacheInitialize", (void **)&p->initialize);
    if (!e)
        e = cache_plugin_find(p, "TRITONCACHE_CacheFinalize", (void **)&p->finalize);
    if (!e)
        e = cache_plugin_find(p, "TRITONCACHE_CacheLookup", (void **)&p->lookup);
    if (!e)
        e = cache_plugin_find(p, "TRITONCACHE_CacheInsert", (void **)&p->insert);
    if (e)
        return e;
    const uint32_t *promise = dl_symbol(p->dl, "nereid_cache_inline_v1");
    p->inline_ok = promise && *promise != 0;
    return NULL;
}

static struct err *cache_plugin_make(struct cache_plugin *p, const char *config)
{
    TRITONCACHE_Cache *cache = NULL;
    struct err *e = (struct err *)p->initialize(&cache, config);
    /* Set also with an error: as in the reference, a cache that was made is finalised. */
    p->cache = cache;
    if (!e && !cache)
        e = err_new(STATUS_INTERNAL, "Failed to initialize cache implementation");
    return e;
}

static struct err *cache_plugin_open(struct cache_plugin *p, const char *directory,
                                     const char *config)
{
    if (!file_exists(p->path))
        return err_new(STATUS_INVALID_ARG,
                       "unable to find 'libtritoncache_%s.so' for cache. Searched: %s", p->name,
                       directory);
    LOG_INFO("Creating TritonCache with name: '%s', libpath: '%s'", p->name, p->path);
    struct err *e = cache_plugin_open_library(p);
    return e ? e : cache_plugin_make(p, config);
}

struct err *cache_plugin_load(const char *directory, const char *name, const char *config,
                              struct cache_plugin **ret)
{
    if (!*name || strchr(name, '/') || name[0] == '.')
        return err_new(STATUS_INVALID_ARG, "invalid cache name '%s'", name);
    struct strbuf path = STRBUF_INIT;
    strbuf_printf(&path, "%s/%s/libtritoncache_%s.so", directory, name, name);
    struct cache_plugin *p = MEM_NEW(struct cache_plugin);
    p->name = mem_strdup(name);
    p->path = strbuf_take(&path);
    struct err *e = cache_plugin_open(p, directory, config);
    if (e) {
        cache_plugin_free(p);
        return err_wrap(e, "cache '%s'", name);
    }
    *ret = p;
    return NULL;
}

void cache_plugin_free(struct cache_plugin *p)
{
    if (!p)
        return;
    struct err *e = p->cache ? (struct err *)p->finalize(p->cache) : NULL;
    if (e)
        LOG_ERROR("finalizing cache '%s': %s", p->name, err_message(e));
    err_free(e);
    mem_free(p->name);
    mem_free(p->path);
    mem_free(p);
}

struct err *cache_plugin_lookup(struct cache_plugin *p, const char *key, struct cache_entry *entry,
                                struct cache_entry_copier *copier)
{
    return (struct err *)p->lookup(p->cache, key, cache_entry_handle(entry),
                                   cache_entry_copier_handle(copier));
}

struct err *cache_plugin_insert(struct cache_plugin *p, const char *key, struct cache_entry *entry,
                                struct cache_entry_copier *copier)
{
    return (struct err *)p->insert(p->cache, key, cache_entry_handle(entry),
                                   cache_entry_copier_handle(copier));
}
