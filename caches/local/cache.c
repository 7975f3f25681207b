/* A response cache in the memory of the server: --cache-config local,size=BYTES. */
#include "common/berr.h"
#include "local/gauges.h"
#include "local/store.h"
#include "triton/core/nereid_cache.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <yyjson.h>

#define MAX_BUFFERS 1024u /* of one entry */

/* It uses only memory, and holds one lock for a short time. */
const uint32_t nereid_cache_inline_v1 = 1;

struct local_cache {
    struct store *store;
    struct gauges *gauges;
};

/* An entry is stored as one run of bytes: the number of buffers, the size of each, then their
 * contents, each aligned to 64. */
struct layout {
    uint64_t count;
    uint64_t sizes[];
};

static uint64_t local_cache_aligned(uint64_t n)
{
    return (n + 63) & ~UINT64_C(63);
}

static double now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

static TRITONSERVER_Error *bad_config(const char *why)
{
    return berr_new(TRITONSERVER_ERROR_INVALID_ARG, "Failed to initialize LocalCache: %s", why);
}

/* Reads "size", a number or a string of digits. */
static TRITONSERVER_Error *parse_size(const char *config, uint64_t *ret)
{
    yyjson_doc *doc = yyjson_read(config, strlen(config), 0);
    yyjson_val *size = yyjson_obj_get(yyjson_doc_get_root(doc), "size");
    const char *text = yyjson_get_str(size);
    TRITONSERVER_Error *err = NULL;
    char *end;
    errno = 0;
    if (!size)
        err = bad_config("config didn't contain a valid 'size' field.");
    else if (yyjson_is_uint(size))
        *ret = yyjson_get_uint(size);
    else if (!text)
        err = bad_config("'size' config must be a string or uint type");
    else if (*text >= '0' && *text <= '9')
        *ret = strtoull(text, &end, 10);
    if (!err && text && (*text < '0' || *text > '9' || *end || errno))
        err = berr_new(TRITONSERVER_ERROR_INVALID_ARG,
                       "Failed to initialize LocalCache: expected a number of bytes as 'size', "
                       "found '%s'",
                       text);
    if (!err && !*ret)
        err = bad_config("expected a 'size' above 0");
    yyjson_doc_free(doc);
    return err;
}

TRITONCACHE_ISPEC TRITONSERVER_Error *TRITONCACHE_CacheInitialize(TRITONCACHE_Cache **cache,
                                                                  const char *config)
{
    uint64_t size = 0;
    if (!cache || !config)
        return bad_config("no place for the cache, or no configuration");
    TRITONSERVER_Error *err = parse_size(config, &size);
    if (err)
        return err;
    struct local_cache *c = calloc(1, sizeof(*c));
    if (c)
        c->store = store_new(size);
    if (!c || !c->store) {
        free(c);
        return berr_no_memory();
    }
    c->gauges = gauges_new();
    *cache = (TRITONCACHE_Cache *)c;
    return NULL;
}

TRITONCACHE_ISPEC TRITONSERVER_Error *TRITONCACHE_CacheFinalize(TRITONCACHE_Cache *cache)
{
    struct local_cache *c = (struct local_cache *)cache;
    if (!c)
        return berr_new(TRITONSERVER_ERROR_INVALID_ARG, "cache was nullptr");
    gauges_free(c->gauges);
    store_free(c->store);
    free(c);
    return NULL;
}

static TRITONSERVER_Error *local_cache_check(const void *cache, const void *key, const void *entry,
                                             const void *allocator)
{
    if (cache && key && entry && allocator)
        return NULL;
    return berr_new(TRITONSERVER_ERROR_INVALID_ARG, "%s was nullptr",
                    !cache   ? "cache"
                    : !entry ? "cache entry"
                    : !key   ? "key"
                             : "allocator");
}

/* -- lookup -- */

static TRITONSERVER_Error *show_buffer(TRITONCACHE_CacheEntry *entry, void *base, uint64_t bytes)
{
    TRITONSERVER_BufferAttributes *attributes;
    TRITONSERVER_Error *err = TRITONSERVER_BufferAttributesNew(&attributes);
    if (err)
        return err;
    err = TRITONSERVER_BufferAttributesSetByteSize(attributes, bytes);
    if (!err)
        err = TRITONSERVER_BufferAttributesSetMemoryType(attributes, TRITONSERVER_MEMORY_CPU);
    if (!err)
        err = TRITONCACHE_CacheEntryAddBuffer(entry, base, attributes);
    berr_drop(TRITONSERVER_BufferAttributesDelete(attributes));
    return err;
}

static TRITONSERVER_Error *local_cache_show(TRITONCACHE_CacheEntry *entry, struct store_item *item)
{
    uint64_t total;
    uint8_t *at = store_bytes(item, &total);
    const struct layout *l = (const struct layout *)at;
    at += local_cache_aligned(sizeof(*l) + l->count * sizeof(l->sizes[0]));
    TRITONSERVER_Error *err = NULL;
    for (uint64_t i = 0; !err && i < l->count; i++) {
        err = show_buffer(entry, at, l->sizes[i]);
        at += local_cache_aligned(l->sizes[i]);
    }
    return err;
}

TRITONCACHE_ISPEC TRITONSERVER_Error *TRITONCACHE_CacheLookup(TRITONCACHE_Cache *cache,
                                                              const char *key,
                                                              TRITONCACHE_CacheEntry *entry,
                                                              TRITONCACHE_Allocator *allocator)
{
    TRITONSERVER_Error *err = local_cache_check(cache, key, entry, allocator);
    if (err)
        return err;
    struct local_cache *c = (struct local_cache *)cache;
    double start = now_us();
    struct store_item *item = store_get(c->store, key);
    if (!item) {
        err = berr_new(TRITONSERVER_ERROR_NOT_FOUND, "key [%s] does not exist", key);
    } else {
        err = local_cache_show(entry, item);
        if (!err)
            err = TRITONCACHE_Copy(allocator, entry);
        store_put_back(c->store, item);
    }
    gauges_add(c->gauges, GAUGES_LOOKUPS, 1);
    gauges_add(c->gauges, item ? GAUGES_HITS : GAUGES_MISSES, 1);
    gauges_add(c->gauges, GAUGES_LOOKUP_US, now_us() - start);
    return err;
}

/* -- insertion -- */

/* Gets the size of each buffer of the entry. */
static TRITONSERVER_Error *local_cache_measure(TRITONCACHE_CacheEntry *entry, size_t count,
                                               uint64_t *sizes, uint64_t *ret_total)
{
    TRITONSERVER_BufferAttributes *attributes;
    TRITONSERVER_Error *err = TRITONSERVER_BufferAttributesNew(&attributes);
    if (err)
        return err;
    uint64_t total = local_cache_aligned(sizeof(struct layout) + count * sizeof(uint64_t));
    for (size_t i = 0; !err && i < count; i++) {
        void *base;
        size_t bytes = 0;
        TRITONSERVER_MemoryType memory = TRITONSERVER_MEMORY_CPU;
        err = TRITONCACHE_CacheEntryGetBuffer(entry, i, &base, attributes);
        if (!err)
            err = TRITONSERVER_BufferAttributesByteSize(attributes, &bytes);
        if (!err)
            err = TRITONSERVER_BufferAttributesMemoryType(attributes, &memory);
        if (!err && memory == TRITONSERVER_MEMORY_GPU)
            err = berr_new(TRITONSERVER_ERROR_INVALID_ARG,
                           "Only input buffers in CPU memory are allowed in cache currently");
        if (!err && bytes > UINT64_MAX / 2 - total)
            err = berr_new(TRITONSERVER_ERROR_INVALID_ARG, "a cache entry of %zu bytes", bytes);
        sizes[i] = bytes;
        total += local_cache_aligned(bytes);
    }
    berr_drop(TRITONSERVER_BufferAttributesDelete(attributes));
    *ret_total = total;
    return err;
}

/* Lets the server copy the entry into the item. */
static TRITONSERVER_Error *local_cache_fill(TRITONCACHE_CacheEntry *entry,
                                            TRITONCACHE_Allocator *allocator,
                                            struct store_item *item, const uint64_t *sizes,
                                            size_t count)
{
    uint64_t total;
    uint8_t *at = store_bytes(item, &total);
    struct layout *l = (struct layout *)at;
    l->count = count;
    memcpy(l->sizes, sizes, count * sizeof(*sizes));
    at += local_cache_aligned(sizeof(*l) + count * sizeof(*sizes));
    TRITONSERVER_Error *err = NULL;
    for (size_t i = 0; !err && i < count; i++) {
        err = TRITONCACHE_CacheEntrySetBuffer(entry, i, at, NULL);
        at += local_cache_aligned(sizes[i]);
    }
    return err ? err : TRITONCACHE_Copy(allocator, entry);
}

static TRITONSERVER_Error *refusal(const struct local_cache *c, enum store_result result,
                                   const char *key, uint64_t bytes)
{
    switch (result) {
    case STORE_OK:
        return NULL;
    case STORE_EXISTS:
        return berr_new(TRITONSERVER_ERROR_ALREADY_EXISTS, "key '%s' already exists", key);
    case STORE_TOO_LARGE:
        return berr_new(TRITONSERVER_ERROR_INTERNAL,
                        "Requested byte_size: %" PRIu64
                        " is greater than total cache size: %" PRIu64,
                        bytes, store_limit(c->store));
    case STORE_NO_MEMORY:
        break;
    }
    return berr_no_memory();
}

static void show_counts(const struct local_cache *c)
{
    struct store_counts n;
    if (!c->gauges)
        return;
    store_count(c->store, &n);
    gauges_set(c->gauges, GAUGES_ENTRIES, (double)n.items);
    gauges_set(c->gauges, GAUGES_EVICTIONS, (double)n.evictions);
    gauges_set(c->gauges, GAUGES_UTIL, (double)n.used_bytes / (double)store_limit(c->store));
}

static TRITONSERVER_Error *local_cache_insert(struct local_cache *c, const char *key,
                                              TRITONCACHE_CacheEntry *entry,
                                              TRITONCACHE_Allocator *allocator, uint64_t *sizes,
                                              size_t count)
{
    uint64_t total;
    struct store_item *item;
    TRITONSERVER_Error *err = local_cache_measure(entry, count, sizes, &total);
    if (err)
        return err;
    enum store_result result = store_begin(c->store, key, total, &item);
    if (result != STORE_OK)
        return refusal(c, result, key, total);
    err = local_cache_fill(entry, allocator, item, sizes, count);
    if (err) {
        store_abandon(c->store, item);
        return err;
    }
    return refusal(c, store_commit(c->store, item), key, total);
}

TRITONCACHE_ISPEC TRITONSERVER_Error *TRITONCACHE_CacheInsert(TRITONCACHE_Cache *cache,
                                                              const char *key,
                                                              TRITONCACHE_CacheEntry *entry,
                                                              TRITONCACHE_Allocator *allocator)
{
    struct local_cache *c = (struct local_cache *)cache;
    uint64_t sizes[MAX_BUFFERS];
    size_t count = 0;
    double start = now_us();
    TRITONSERVER_Error *err = local_cache_check(cache, key, entry, allocator);
    if (!err)
        err = TRITONCACHE_CacheEntryBufferCount(entry, &count);
    if (!err && count > MAX_BUFFERS)
        err = berr_new(TRITONSERVER_ERROR_INVALID_ARG, "an entry may have %u buffers, got %zu",
                       MAX_BUFFERS, count);
    if (!err)
        err = local_cache_insert(c, key, entry, allocator, sizes, count);
    if (c) {
        show_counts(c);
        gauges_add(c->gauges, GAUGES_INSERT_US, now_us() - start);
    }
    return err;
}
