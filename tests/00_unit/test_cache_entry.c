/* Entries of a response cache, and the copying that a cache asks the server for. */
#include "base/list.h"
#include "cache/cache_entry.h"
#include "support/unit.h"
#include "triton/core/tritoncache.h"

#include <string.h>

struct copier {
    struct cache_entry_copier base;
    char bytes[4];
};

/* As at an insertion: our bytes go where the cache put its buffer. */
static struct err *copy_out(struct cache_entry_copier *c, struct cache_entry *entry)
{
    struct copier *mine = LIST_ITEM(c, struct copier, base);
    struct buffer_attributes a;
    void *base;
    buffer_attributes_init(&a, 0, BUF_MEMORY_CPU, 0);
    struct err *e = cache_entry_get(entry, 0, &base, &a);
    if (e)
        return e;
    assert_int_equal(a.byte_size, sizeof(mine->bytes));
    memcpy(base, mine->bytes, sizeof(mine->bytes));
    return NULL;
}

static void test_copy(void **state)
{
    (void)state;
    struct copier copier = {.bytes = "abc"};
    cache_entry_copier_init(&copier.base, copy_out);
    struct cache_entry *e = cache_entry_new();
    TRITONCACHE_Allocator *allocator = cache_entry_copier_handle(&copier.base);
    unit_fails((struct err *)TRITONCACHE_Copy(allocator, cache_entry_handle(e)), STATUS_INVALID_ARG,
               "out of bounds index 0");
    char ours[4] = "own";
    char cached[4] = "yyy";
    struct buffer_attributes a;
    buffer_attributes_init(&a, 4, BUF_MEMORY_CPU, 0);
    unit_succeeds(cache_entry_add(e, ours, &a));
    unit_succeeds(cache_entry_set(e, 0, cached, NULL));
    unit_succeeds((struct err *)TRITONCACHE_Copy(allocator, cache_entry_handle(e)));
    assert_string_equal(cached, "abc");
    assert_string_equal(ours, "own");
    assert_int_equal(cache_entry_count(e), 1);
    cache_entry_copier_end(&copier.base);
    cache_entry_free(e);
}

/* A buffer that the cache has to give memory first, and handles that are used after their call. */
static void test_reserved_and_stale(void **state)
{
    (void)state;
    struct copier copier = {.bytes = "abc"};
    struct cache_entry *e = cache_entry_new();
    TRITONCACHE_CacheEntry *entry = cache_entry_handle(e);
    cache_entry_copier_init(&copier.base, copy_out);
    TRITONCACHE_Allocator *allocator = cache_entry_copier_handle(&copier.base);
    char cached[4];
    void *base = cached;
    struct buffer_attributes a;
    buffer_attributes_init(&a, 0, BUF_MEMORY_CPU, 0);
    cache_entry_reserve(e, 4);
    unit_succeeds(cache_entry_get(e, 0, &base, &a));
    assert_null(base);
    assert_int_equal(a.byte_size, 4);
    unit_succeeds(cache_entry_set(e, 0, cached, NULL));
    unit_succeeds((struct err *)TRITONCACHE_Copy(allocator, entry));
    assert_string_equal(cached, "abc");
    cache_entry_copier_end(&copier.base);
    unit_fails((struct err *)TRITONCACHE_Copy(allocator, entry), STATUS_INVALID_ARG,
               "TRITONCACHE_Allocator");
    cache_entry_free(e);
    size_t count;
    unit_fails((struct err *)TRITONCACHE_CacheEntryBufferCount(entry, &count), STATUS_INVALID_ARG,
               "TRITONCACHE_CacheEntry");
}

UNIT_MAIN(UNIT(test_copy), UNIT(test_reserved_and_stale))
