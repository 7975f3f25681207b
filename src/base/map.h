#pragma once
/* A hash table from byte strings to pointers. Keys are copied, values are the caller's. No
 * locks: immutable maps may be read by many threads. Do not insert keys that peers choose
 * without a limit. */
#include <stdbool.h>
#include <stddef.h>

struct map_slot;

struct map {
    struct map_slot *slots;
    size_t cap; /* 0 or a power of two */
    size_t used;
    size_t count;
};

#define MAP_INIT      \
    {                 \
        NULL, 0, 0, 0 \
    }

/* map_get - the value of a key, NULL when it is not there. */
void *map_get(const struct map *m, const char *key, size_t len);

/* map_put - set the value (not NULL) of a key; returns the value it had, or NULL. */
void *map_put(struct map *m, const char *key, size_t len, void *value);

/* map_remove - forget a key; returns the value it had, or NULL. */
void *map_remove(struct map *m, const char *key, size_t len);

/* map_next - walk in no particular order: *pos starts at 0; false at the end. The map must not
 * change meanwhile. */
bool map_next(const struct map *m, size_t *pos, const char **ret_key, void **ret_value);

/* map_fini - frees the table and the keys, not the values. */
void map_fini(struct map *m);
