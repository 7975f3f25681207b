#include "base/map.h"

#include "base/mem.h"

#include <stdint.h>
#include <string.h>

struct map_slot {
    char *key; /* NULL: never used; TOMBSTONE: removed */
    size_t len;
    uint64_t hash;
    void *value;
};

static char tombstone_mark;
#define TOMBSTONE (&tombstone_mark)

/* FNV-1a with a final mix. Names are short, and the mix makes the low bits usable as an index. */
static uint64_t map_hash(const char *key, size_t len)
{
    uint64_t h = 0xcbf29ce484222325u;
    for (size_t i = 0; i < len; i++)
        h = (h ^ (unsigned char)key[i]) * 0x100000001b3u;
    h ^= h >> 32;
    return h;
}

static struct map_slot *map_find(const struct map *m, const char *key, size_t len, uint64_t hash)
{
    if (!m->cap)
        return NULL;
    for (size_t i = hash & (m->cap - 1);; i = (i + 1) & (m->cap - 1)) {
        struct map_slot *s = &m->slots[i];
        if (!s->key)
            return NULL;
        if (s->key != TOMBSTONE && s->hash == hash && s->len == len &&
            memcmp(s->key, key, len) == 0)
            return s;
    }
}

static struct map_slot *free_slot(const struct map *m, uint64_t hash)
{
    size_t i = hash & (m->cap - 1);
    while (m->slots[i].key)
        i = (i + 1) & (m->cap - 1);
    return &m->slots[i];
}

static void map_grow(struct map *m)
{
    struct map bigger = {.cap = m->count * 4 < 16 ? 16 : m->cap};
    while (bigger.cap < m->count * 4)
        bigger.cap *= 2;
    bigger.slots = mem_zalloc(bigger.cap * sizeof(*bigger.slots));
    for (size_t i = 0; i < m->cap; i++) {
        struct map_slot *s = &m->slots[i];
        if (!s->key || s->key == TOMBSTONE)
            continue;
        *free_slot(&bigger, s->hash) = *s;
        bigger.count++;
    }
    bigger.used = bigger.count;
    mem_free(m->slots);
    *m = bigger;
}

void *map_get(const struct map *m, const char *key, size_t len)
{
    const struct map_slot *s = map_find(m, key, len, map_hash(key, len));
    return s ? s->value : NULL;
}

void *map_put(struct map *m, const char *key, size_t len, void *value)
{
    uint64_t hash = map_hash(key, len);
    struct map_slot *s = map_find(m, key, len, hash);
    if (s) {
        void *old = s->value;
        s->value = value;
        return old;
    }
    if ((m->used + 1) * 2 > m->cap)
        map_grow(m);
    s = free_slot(m, hash);
    *s = (struct map_slot){.key = mem_strndup(key, len), .len = len, .hash = hash, .value = value};
    m->used++;
    m->count++;
    return NULL;
}

void *map_remove(struct map *m, const char *key, size_t len)
{
    struct map_slot *s = map_find(m, key, len, map_hash(key, len));
    if (!s)
        return NULL;
    void *old = s->value;
    mem_free(s->key);
    *s = (struct map_slot){.key = TOMBSTONE};
    m->count--;
    return old;
}

bool map_next(const struct map *m, size_t *pos, const char **ret_key, void **ret_value)
{
    while (*pos < m->cap) {
        const struct map_slot *s = &m->slots[(*pos)++];
        if (!s->key || s->key == TOMBSTONE)
            continue;
        if (ret_key)
            *ret_key = s->key;
        if (ret_value)
            *ret_value = s->value;
        return true;
    }
    return false;
}

void map_fini(struct map *m)
{
    for (size_t i = 0; i < m->cap; i++)
        if (m->slots[i].key != TOMBSTONE)
            mem_free(m->slots[i].key);
    mem_free(m->slots);
    *m = (struct map)MAP_INIT;
}
