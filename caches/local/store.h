#pragma once
/* Runs of bytes under keys, at most so many bytes together: the least recently used go first.
 * Any thread. */
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

/* store_new - limit_bytes: of keys and contents, and of what keeping them takes; NULL when there
 * is no memory. */
struct store *store_new(uint64_t limit_bytes);

/* store_free - nobody uses an item any more. NULL is fine. */
void store_free(struct store *s);

enum store_result {
    STORE_OK,
    STORE_EXISTS,    /* the key is there already */
    STORE_TOO_LARGE, /* more than the limit of the store */
    STORE_NO_MEMORY, /* the system has none, or all of the store's is being filled by others */
};

/* store_get - the item of a key, which is the most recently used one now; NULL = none. Give it
 * back with store_put_back: until then its bytes stay, also when it is evicted. */
struct store_item *store_get(struct store *s, const char *key);

/* store_begin - room for a new item, which nobody finds yet; items that were not used for long
 * make place.
 * ret  the item, to be filled (store_bytes); give it to store_commit or store_abandon */
enum store_result store_begin(struct store *s, const char *key, uint64_t bytes,
                              struct store_item **ret);

/* store_commit - the item is complete: it can be found. STORE_EXISTS when another one of its key
 * came first; the item goes then. */
enum store_result store_commit(struct store *s, struct store_item *item);

/* store_abandon - the item goes. */
void store_abandon(struct store *s, struct store_item *item);
void store_put_back(struct store *s, struct store_item *item);

/* store_bytes - where an item's bytes lie, aligned to 64. */
void *store_bytes(struct store_item *item, uint64_t *ret_bytes);

void store_count(struct store *s, struct store_counts *ret);
uint64_t store_limit(const struct store *s);
