#pragma once
/* A response cache: the shared library libtritoncache_NAME.so and the cache that it made. It is
 * called from several threads at a time, and may block as long as its store does. The library is
 * never unmapped. */
#include "base/err.h"
#include "cache/cache_entry.h"
#include "triton/core/tritoncache.h"

#include <stdbool.h>

struct dl;

struct cache_plugin {
    char *name;
    char *path;
    struct dl *dl;
    TRITONSERVER_Error *(*initialize)(TRITONCACHE_Cache **, const char *);
    TRITONSERVER_Error *(*finalize)(TRITONCACHE_Cache *);
    TRITONSERVER_Error *(*lookup)(TRITONCACHE_Cache *, const char *, TRITONCACHE_CacheEntry *,
                                  TRITONCACHE_Allocator *);
    TRITONSERVER_Error *(*insert)(TRITONCACHE_Cache *, const char *, TRITONCACHE_CacheEntry *,
                                  TRITONCACHE_Allocator *);
    TRITONCACHE_Cache *cache; /* owned by the library; NULL until it was made */
    /* the library exports nereid_cache_inline_v1 != 0: it stores answers in memory and never
     * blocks */
    bool inline_ok;
};

/* cache_plugin_load - load DIRECTORY/NAME/libtritoncache_NAME.so and make its cache. Blocks.
 * config  JSON object of settings, passed to the library
 * errors  all with the name of the cache: INVALID_ARG for an invalid name or a missing library;
 *         NOT_FOUND for a library that lacks a function; the cache's own */
struct err *cache_plugin_load(const char *directory, const char *name, const char *config,
                              struct cache_plugin **ret);

/* cache_plugin_free - finalize the cache; no call is in flight. NULL is fine. */
void cache_plugin_free(struct cache_plugin *p);

/* cache_plugin_lookup - look an entry up. The cache adds its buffers to `entry` and calls the
 * copier while the buffers are valid.
 * errors  NOT_FOUND if there is no entry; the cache's own, and those of the copier */
struct err *cache_plugin_lookup(struct cache_plugin *p, const char *key, struct cache_entry *entry,
                                struct cache_entry_copier *copier);

/* cache_plugin_insert - store an entry. Its buffers have sizes and no memory yet
 * (cache_entry_reserve); the cache provides the memory and calls the copier.
 * errors  ALREADY_EXISTS; the cache's own, and those of the copier */
struct err *cache_plugin_insert(struct cache_plugin *p, const char *key, struct cache_entry *entry,
                                struct cache_entry_copier *copier);
