#pragma once
/* What a response cache stores under one key: buffers with their attributes. The
 * TRITONCACHE_CacheEntry of the C ABI. */
#include "base/err.h"
#include "infer/buffer_attributes.h"
#include "os/mutex.h"

#include <stddef.h>
#include <stdint.h>

/* The most buffers of an entry. */
#define CACHE_ENTRY_MAX_BUFFERS 65536u

struct cache_entry_buffer {
    void *base; /* borrowed; NULL until the cache provides memory */
    struct buffer_attributes attributes;
};

struct cache_entry {
    uint32_t token; /* its number in the table of base/token.h */
    /* rank LEAF; guards the fields below: a cache may use one entry from several threads */
    struct mutex lock;
    struct cache_entry_buffer *buffers;
    size_t count;
};

/* The function behind TRITONCACHE_Copy: the server's side of a lookup or an insertion. The
 * TRITONCACHE_Allocator of the C ABI. */
struct cache_entry_copier {
    uint32_t token;
    struct err *(*copy)(struct cache_entry_copier *c, struct cache_entry *entry);
};

struct cache_entry *cache_entry_new(void);

/* cache_entry_free - free the entry but not its buffers. NULL is fine. */
void cache_entry_free(struct cache_entry *e);

/* The handles of the C ABI are tokens, so that a handle which is used after its call is refused.
 * cache_entry_of, cache_entry_copier_of - the object behind a handle; NULL if the handle is
 * invalid or stale. */
void *cache_entry_handle(const struct cache_entry *e);
void *cache_entry_copier_handle(const struct cache_entry_copier *c);
struct cache_entry *cache_entry_of(void *handle);
struct cache_entry_copier *cache_entry_copier_of(void *handle);

/* cache_entry_copier_init - set up a copier, which is embedded in a struct of the caller's. */
void cache_entry_copier_init(struct cache_entry_copier *c,
                             struct err *(*copy)(struct cache_entry_copier *,
                                                 struct cache_entry *));

size_t cache_entry_count(struct cache_entry *e);

/* cache_entry_add - append a buffer; its attributes are copied.
 * errors  INVALID_ARG for a NULL buffer, or above the limit */
struct err *cache_entry_add(struct cache_entry *e, void *base,
                            const struct buffer_attributes *attributes);

/* cache_entry_reserve - append a buffer that has a size and no memory yet; the cache provides
 * the memory. */
void cache_entry_reserve(struct cache_entry *e, uint64_t byte_size);

/* cache_entry_copier_end - later calls with it are refused. */
void cache_entry_copier_end(struct cache_entry_copier *c);

/* cache_entry_get, cache_entry_set - read or set a buffer by its index; set: attributes NULL =
 * keep them.
 * errors  INVALID_ARG past the end */
struct err *cache_entry_get(struct cache_entry *e, size_t index, void **ret_base,
                            struct buffer_attributes *ret_attributes);
struct err *cache_entry_set(struct cache_entry *e, size_t index, void *base,
                            const struct buffer_attributes *attributes);
