#pragma once
/* What a response cache keeps under one key: buffers with their attributes. The
 * TRITONCACHE_CacheEntry of the C ABI. */
#include "base/err.h"
#include "infer/buffer_attributes.h"
#include "os/mutex.h"

#include <stddef.h>
#include <stdint.h>

/* The most buffers of an entry. */
#define CACHE_ENTRY_MAX_BUFFERS 65536u

struct cache_entry_buffer {
    void *base; /* borrowed; NULL until the cache gave it memory */
    struct buffer_attributes attributes;
};

struct cache_entry {
    uint32_t token; /* its slot in the table of base/token.h */
    /* rank LEAF; guards what follows: a cache may look at one entry from several threads */
    struct mutex lock;
    struct cache_entry_buffer *buffers;
    size_t count;
};

/* What TRITONCACHE_Copy does: the server's side of a look-up or an insertion. The
 * TRITONCACHE_Allocator of the C ABI. */
struct cache_entry_copier {
    uint32_t token;
    struct err *(*copy)(struct cache_entry_copier *c, struct cache_entry *entry);
};

struct cache_entry *cache_entry_new(void);

/* cache_entry_free - its buffers stay. NULL is fine. */
void cache_entry_free(struct cache_entry *e);

/* What the C ABI gives out for them: a token, so that a cache which uses one after its call is
 * refused.
 * cache_entry_of, cache_entry_copier_of - the object behind a handle; NULL when it is none, or
 * none any more. */
void *cache_entry_handle(const struct cache_entry *e);
void *cache_entry_copier_handle(const struct cache_entry_copier *c);
struct cache_entry *cache_entry_of(void *handle);
struct cache_entry_copier *cache_entry_copier_of(void *handle);

/* cache_entry_copier_init - a copier is embedded in what it works for. */
void cache_entry_copier_init(struct cache_entry_copier *c,
                             struct err *(*copy)(struct cache_entry_copier *,
                                                 struct cache_entry *));

size_t cache_entry_count(struct cache_entry *e);

/* cache_entry_add - append a buffer; attributes are copied.
 * errors  INVALID_ARG for a NULL buffer and over the limit */
struct err *cache_entry_add(struct cache_entry *e, void *base,
                            const struct buffer_attributes *attributes);

/* cache_entry_reserve - append a buffer of a size that has no memory yet: the cache gives it
 * some. */
void cache_entry_reserve(struct cache_entry *e, uint64_t byte_size);

/* cache_entry_copier_end - calls with it are refused from now on. */
void cache_entry_copier_end(struct cache_entry_copier *c);

/* cache_entry_get, cache_entry_set - a buffer by index; set: attributes NULL = those that it has.
 * errors  INVALID_ARG past the end */
struct err *cache_entry_get(struct cache_entry *e, size_t index, void **ret_base,
                            struct buffer_attributes *ret_attributes);
struct err *cache_entry_set(struct cache_entry *e, size_t index, void *base,
                            const struct buffer_attributes *attributes);
