#pragma once
/* A response cache: the shared library libtritoncache_NAME.so with the cache that it made. It is
 * called from several threads at a time, and may block for as long as its store takes. Never
 * unmapped. */
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
    TRITONCACHE_Cache *cache; /* the library's; NULL until it was made */
    /* exports nereid_cache_inline_v1 != 0: it keeps answers in memory and never waits */
    bool inline_ok;
};

/* cache_plugin_load - load DIRECTORY/NAME/libtritoncache_NAME.so and make its cache. Blocks.
 * config  JSON object of its settings, as the library gets it
 * errors  all with the name of the cache: INVALID_ARG for a name that is no file name or a
 *         library that is not there; NOT_FOUND for one that lacks a function; the cache's own */
struct err *cache_plugin_load(const char *directory, const char *name, const char *config,
                              struct cache_plugin **ret);

/* cache_plugin_free - finalize it: nothing is looked up any more. NULL is fine. */
void cache_plugin_free(struct cache_plugin *p);

/* cache_plugin_lookup - have an entry found; the cache adds its buffers to `entry` and calls the
 * copier for as long as they last.
 * errors  NOT_FOUND when there is none; the cache's own, and those of the copier */
struct err *cache_plugin_lookup(struct cache_plugin *p, const char *key, struct cache_entry *entry,
                                struct cache_entry_copier *copier);

/* cache_plugin_insert - have an entry kept; its buffers have sizes and no memory yet
 * (cache_entry_reserve), the cache gives them memory and calls the copier.
 * errors  ALREADY_EXISTS; the cache's own, and those of the copier */
struct err *cache_plugin_insert(struct cache_plugin *p, const char *key, struct cache_entry *entry,
                                struct cache_entry_copier *copier);
