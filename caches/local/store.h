#pragma once
/* Stores runs of bytes under keys, within a limit of bytes; the least recently used are evicted
 * first. Any thread. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct store;
struct store_item;

struct store_counts {
    uint64_t items;
    uint64_t used_bytes;
    uint64_t evictions;
};

/* store_new - limit_bytes: keys, contents and overhead together; NULL if there is no memory. */
struct store *store_new(uint64_t limit_bytes);

/* store_free - free it; no item is in use. NULL is fine. */
void store_free(struct store *s);

enum store_result {
    STORE_OK,
    STORE_EXISTS,    /* the key exists already */
    STORE_TOO_LARGE, /* larger than the limit of the store */
    STORE_NO_MEMORY, /* the system has no memory, or others are filling all of the store's memory */
};

/* store_get - the item of a key, which becomes the most recently used one; NULL = none. Its
 * bytes stay valid, even if it is evicted, until store_put_back. */
struct store_item *store_get(struct store *s, const char *key);

/* store_begin - make room for a new item, which cannot be found yet; the least recently used
 * items are evicted.
 * ret  the item; fill it (store_bytes), then call store_commit or store_abandon */
enum store_result store_begin(struct store *s, const char *key, uint64_t bytes,
                              struct store_item **ret);

/* store_commit - the item is complete and can be found. STORE_EXISTS if another item with its
 * key came first; this item is freed then. */
enum store_result store_commit(struct store *s, struct store_item *item);

/* store_abandon - free the item. */
void store_abandon(struct store *s, struct store_item *item);
void store_put_back(struct store *s, struct store_item *item);

/* store_bytes - the bytes of an item, aligned to 64. */
void *store_bytes(struct store_item *item, uint64_t *ret_bytes);

void store_count(struct store *s, struct store_counts *ret);
uint64_t store_limit(const struct store *s);
