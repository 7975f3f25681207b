#include "cache/cache_entry.h"

#include "base/mem.h"
#include "base/token.h"

struct cache_entry *cache_entry_new(void)
{
    struct cache_entry *e = MEM_NEW(struct cache_entry);
    e->token = token_open(e);
    mutex_init(&e->lock, MUTEX_RANK_LEAF);
    return e;
}

void cache_entry_free(struct cache_entry *e)
{
    if (!e)
        return;
    token_close(e->token);
    mutex_fini(&e->lock);
    mem_free(e->buffers);
    mem_free(e);
}

void *cache_entry_handle(const struct cache_entry *e)
{
    return token_make(e->token, TOKEN_CACHE_ENTRY, 0);
}

void *cache_entry_copier_handle(const struct cache_entry_copier *c)
{
    return token_make(c->token, TOKEN_CACHE_COPIER, 0);
}

struct cache_entry *cache_entry_of(void *handle)
{
    return token_find(handle, TOKEN_CACHE_ENTRY, NULL);
}

struct cache_entry_copier *cache_entry_copier_of(void *handle)
{
    return token_find(handle, TOKEN_CACHE_COPIER, NULL);
}

void cache_entry_copier_init(struct cache_entry_copier *c,
                             struct err *(*copy)(struct cache_entry_copier *, struct cache_entry *))
{
    c->token = token_open(c);
    c->copy = copy;
}

void cache_entry_copier_end(struct cache_entry_copier *c)
{
    token_close(c->token);
}

size_t cache_entry_count(struct cache_entry *e)
{
    mutex_lock(&e->lock);
    size_t count = e->count;
    mutex_unlock(&e->lock);
    return count;
}

/* Appends a buffer. Caller holds the lock. */
static void cache_entry_append(struct cache_entry *e, void *base,
                               const struct buffer_attributes *attributes)
{
    e->buffers = mem_realloc(e->buffers, (e->count + 1) * sizeof(*e->buffers));
    e->buffers[e->count++] = (struct cache_entry_buffer){.base = base, .attributes = *attributes};
}

void cache_entry_reserve(struct cache_entry *e, uint64_t byte_size)
{
    struct buffer_attributes attributes;
    buffer_attributes_init(&attributes, byte_size, BUF_MEMORY_CPU, 0);
    mutex_lock(&e->lock);
    cache_entry_append(e, NULL, &attributes);
    mutex_unlock(&e->lock);
}

struct err *cache_entry_add(struct cache_entry *e, void *base,
                            const struct buffer_attributes *attributes)
{
    if (!base)
        return err_new(STATUS_INVALID_ARG, "a buffer of a cache entry must not be NULL");
    mutex_lock(&e->lock);
    bool full = e->count == CACHE_ENTRY_MAX_BUFFERS;
    if (!full)
        cache_entry_append(e, base, attributes);
    mutex_unlock(&e->lock);
    return full ? err_new(STATUS_INVALID_ARG, "a cache entry has at most %u buffers",
                          CACHE_ENTRY_MAX_BUFFERS)
                : NULL;
}

static struct err *past_end(size_t index, size_t count)
{
    return err_new(STATUS_INVALID_ARG, "out of bounds index %zu: the cache entry has %zu buffers",
                   index, count);
}

/* Copies the described memory; the magic of the destination stays. */
static void assign(struct buffer_attributes *to, const struct buffer_attributes *from)
{
    to->memory = from->memory;
    to->device = from->device;
    to->byte_size = from->byte_size;
    to->cuda_ipc = from->cuda_ipc;
}

struct err *cache_entry_get(struct cache_entry *e, size_t index, void **ret_base,
                            struct buffer_attributes *ret_attributes)
{
    mutex_lock(&e->lock);
    size_t count = e->count;
    if (index < count) {
        *ret_base = e->buffers[index].base;
        assign(ret_attributes, &e->buffers[index].attributes);
    }
    mutex_unlock(&e->lock);
    return index < count ? NULL : past_end(index, count);
}

struct err *cache_entry_set(struct cache_entry *e, size_t index, void *base,
                            const struct buffer_attributes *attributes)
{
    mutex_lock(&e->lock);
    size_t count = e->count;
    if (index < count) {
        e->buffers[index].base = base;
        if (attributes)
            assign(&e->buffers[index].attributes, attributes);
    }
    mutex_unlock(&e->lock);
    return index < count ? NULL : past_end(index, count);
}
