#pragma once
/* A hash table from byte strings to pointers. Keys are copied, values belong to the caller. No
 * locks: many threads may read a map that does not change. If peers choose the keys, limit their
 * number. */
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

/* map_get - the value of a key; NULL if the key is not in the map. */
void *map_get(const struct map *m, const char *key, size_t len);

/* map_put - set the value (not NULL) of a key; returns the earlier value, or NULL. */
void *map_put(struct map *m, const char *key, size_t len, void *value);

/* map_remove - remove a key; returns the value that it had, or NULL. */
void *map_remove(struct map *m, const char *key, size_t len);

/* map_next - walk in no particular order: *pos starts at 0; returns false at the end. The map
 * must not change meanwhile. */
bool map_next(const struct map *m, size_t *pos, const char **ret_key, void **ret_value);

/* map_fini - frees the table and the keys, not the values. */
void map_fini(struct map *m);
