/* TRITONCACHE_ functions: entries, and copying between them and the server's buffers. */
#include "plugin/handle.h"
#include "infer/buffer_attributes.h"
#include "cache/cache_entry.h"
#include "triton/core/tritoncache.h"

static const char entry_type[] = "TRITONCACHE_CacheEntry";
static const char attributes_type[] = "TRITONSERVER_BufferAttributes";

static struct cache_entry *cache_abi_entry(TRITONCACHE_CacheEntry *entry)
{
    return cache_entry_of(entry);
}

TRITONSERVER_Error *TRITONCACHE_ApiVersion(uint32_t *major, uint32_t *minor)
{
    *major = TRITONCACHE_API_VERSION_MAJOR;
    *minor = TRITONCACHE_API_VERSION_MINOR;
    return NULL;
}

TRITONSERVER_Error *TRITONCACHE_CacheEntryNew(TRITONCACHE_CacheEntry **entry)
{
    *entry = cache_entry_handle(cache_entry_new());
    return NULL;
}

TRITONSERVER_Error *TRITONCACHE_CacheEntryDelete(TRITONCACHE_CacheEntry *entry)
{
    struct cache_entry *e = cache_abi_entry(entry);
    if (entry && !e)
        return handle_invalid(entry_type);
    cache_entry_free(e);
    return NULL;
}

TRITONSERVER_Error *TRITONCACHE_CacheEntryBufferCount(TRITONCACHE_CacheEntry *entry, size_t *count)
{
    struct cache_entry *e = cache_abi_entry(entry);
    if (!e)
        return handle_invalid(entry_type);
    *count = cache_entry_count(e);
    return NULL;
}

TRITONSERVER_Error *
TRITONCACHE_CacheEntryAddBuffer(TRITONCACHE_CacheEntry *entry, void *base,
                                TRITONSERVER_BufferAttributes *buffer_attributes)
{
    struct cache_entry *e = cache_abi_entry(entry);
    const struct buffer_attributes *a = buffer_attributes_of(buffer_attributes);
    if (!e || !a)
        return handle_invalid(e ? attributes_type : entry_type);
    return handle_error(cache_entry_add(e, base, a));
}

TRITONSERVER_Error *
TRITONCACHE_CacheEntryGetBuffer(TRITONCACHE_CacheEntry *entry, size_t index, void **base,
                                TRITONSERVER_BufferAttributes *buffer_attributes)
{
    struct cache_entry *e = cache_abi_entry(entry);
    struct buffer_attributes *a = buffer_attributes_of(buffer_attributes);
    if (!e || !a)
        return handle_invalid(e ? attributes_type : entry_type);
    return handle_error(cache_entry_get(e, index, base, a));
}

TRITONSERVER_Error *
TRITONCACHE_CacheEntrySetBuffer(TRITONCACHE_CacheEntry *entry, size_t index, void *new_base,
                                TRITONSERVER_BufferAttributes *buffer_attributes)
{
    struct cache_entry *e = cache_abi_entry(entry);
    const struct buffer_attributes *a = buffer_attributes_of(buffer_attributes);
    if (!e || (buffer_attributes && !a))
        return handle_invalid(e ? attributes_type : entry_type);
    return handle_error(cache_entry_set(e, index, new_base, a));
}

TRITONSERVER_Error *TRITONCACHE_Copy(TRITONCACHE_Allocator *allocator,
                                     TRITONCACHE_CacheEntry *entry)
{
    struct cache_entry_copier *c = cache_entry_copier_of(allocator);
    struct cache_entry *e = cache_abi_entry(entry);
    if (!c || !e)
        return handle_invalid(c ? entry_type : "TRITONCACHE_Allocator");
    return handle_error(c->copy(c, e));
}
