/* Entries of a response cache, and the copying that a cache asks the server for. */
#include "base/list.h"
#include "plugin/cache_entry.h"
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
    TRITONCACHE_Allocator *allocator = (TRITONCACHE_Allocator *)&copier.base;
    unit_fails((struct err *)TRITONCACHE_Copy(allocator, (TRITONCACHE_CacheEntry *)e),
               STATUS_INVALID_ARG, "out of bounds index 0");
    char ours[4] = "own";
    char cached[4] = "yyy";
    struct buffer_attributes a;
    buffer_attributes_init(&a, 4, BUF_MEMORY_CPU, 0);
    unit_succeeds(cache_entry_add(e, ours, &a));
    unit_succeeds(cache_entry_set(e, 0, cached, NULL));
    unit_succeeds((struct err *)TRITONCACHE_Copy(allocator, (TRITONCACHE_CacheEntry *)e));
    assert_string_equal(cached, "abc");
    assert_string_equal(ours, "own");
    assert_int_equal(cache_entry_count(e), 1);
    cache_entry_free(e);
}

UNIT_MAIN(UNIT(test_copy))
