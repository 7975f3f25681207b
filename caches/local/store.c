#include "local/store.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_BUCKETS 64u
#define ALIGNMENT     64u

struct store_item {
    struct store_item *chain; /* next in its bucket */
    struct store_item *newer;
    struct store_item *older;
    uint64_t hash;
    uint64_t charge; /* bytes that it counts for the limit */
    uint64_t bytes;
    uint32_t refs; /* users, plus one of the store while it can be found */
    char *key;     /* after the struct */
    uint8_t *data; /* after the key */
};

struct store {
    pthread_mutex_t lock; /* guards the fields below, and the links and refs of the items */
    struct store_item **buckets;
    size_t bucket_count; /* a power of two */
    struct store_item *newest;
    struct store_item *oldest;
    /* used_bytes includes items that are being filled, or were evicted and are still in use */
    struct store_counts counts;
    uint64_t limit;
};

struct store *store_new(uint64_t limit_bytes)
{
    struct store *s = calloc(1, sizeof(*s));
    if (!s)
        return NULL;
    s->limit = limit_bytes;
    s->bucket_count = FIRST_BUCKETS;
    s->buckets = calloc(s->bucket_count, sizeof(struct store_item *));
    if (!s->buckets) {
        free(s);
        return NULL;
    }
    pthread_mutex_init(&s->lock, NULL);
    return s;
}

void store_free(struct store *s)
{
    if (!s)
        return;
    while (s->newest) {
        struct store_item *item = s->newest;
        s->newest = item->older;
        free(item);
    }
    pthread_mutex_destroy(&s->lock);
    free(s->buckets);
    free(s);
}

/* FNV-1a. */
static uint64_t local_store_hash(const char *key)
{
    uint64_t h = 0xcbf29ce484222325u;
    for (const unsigned char *p = (const unsigned char *)key; *p; p++)
        h = (h ^ *p) * 0x100000001b3u;
    return h;
}

static struct store_item **local_store_bucket(struct store *s, uint64_t hash)
{
    return &s->buckets[(hash ^ hash >> 32) & (s->bucket_count - 1)];
}

/* The functions below are called with the lock held. */

static struct store_item *local_store_find(struct store *s, const char *key, uint64_t hash)
{
    struct store_item *item = *local_store_bucket(s, hash);
    while (item && (item->hash != hash || strcmp(item->key, key) != 0))
        item = item->chain;
    return item;
}

static void unlink_use(struct store *s, struct store_item *item)
{
    *(item->newer ? &item->newer->older : &s->newest) = item->older;
    *(item->older ? &item->older->newer : &s->oldest) = item->newer;
}

static void link_newest(struct store *s, struct store_item *item)
{
    item->newer = NULL;
    item->older = s->newest;
    *(s->newest ? &s->newest->newer : &s->oldest) = item;
    s->newest = item;
}

static void unref(struct store *s, struct store_item *item)
{
    if (--item->refs)
        return;
    s->counts.used_bytes -= item->charge;
    free(item);
}

static void evict(struct store *s, struct store_item *item)
{
    struct store_item **link = local_store_bucket(s, item->hash);
    while (*link != item)
        link = &(*link)->chain;
    *link = item->chain;
    unlink_use(s, item);
    s->counts.items--;
    s->counts.evictions++;
    unref(s, item);
}

/* Doubles the number of buckets, if there is memory. */
static void local_store_grow(struct store *s)
{
    size_t count = s->bucket_count * 2;
    struct store_item **buckets = calloc(count, sizeof(struct store_item *));
    if (!buckets)
        return;
    free(s->buckets);
    s->buckets = buckets;
    s->bucket_count = count;
    for (struct store_item *item = s->newest; item; item = item->older) {
        struct store_item **bucket = local_store_bucket(s, item->hash);
        item->chain = *bucket;
        *bucket = item;
    }
}

struct store_item *store_get(struct store *s, const char *key)
{
    uint64_t hash = local_store_hash(key);
    pthread_mutex_lock(&s->lock);
    struct store_item *item = local_store_find(s, key, hash);
    if (item) {
        item->refs++;
        unlink_use(s, item);
        link_newest(s, item);
    }
    pthread_mutex_unlock(&s->lock);
    return item;
}

/* The offset of an item's bytes, for a key of that length. */
static size_t data_offset(size_t key_bytes)
{
    size_t at = sizeof(struct store_item) + key_bytes + 1;
    return (at + ALIGNMENT - 1) & ~(size_t)(ALIGNMENT - 1);
}

/* Makes room for an item, and counts it. */
static enum store_result local_store_reserve(struct store *s, const char *key, uint64_t hash,
                                             uint64_t charge)
{
    enum store_result result = STORE_OK;
    pthread_mutex_lock(&s->lock);
    if (local_store_find(s, key, hash))
        result = STORE_EXISTS;
    while (result == STORE_OK && s->counts.used_bytes > s->limit - charge) {
        if (s->oldest)
            evict(s, s->oldest);
        else
            result = STORE_NO_MEMORY;
    }
    if (result == STORE_OK)
        s->counts.used_bytes += charge;
    pthread_mutex_unlock(&s->lock);
    return result;
}

enum store_result store_begin(struct store *s, const char *key, uint64_t bytes,
                              struct store_item **ret)
{
    size_t key_bytes = strlen(key);
    size_t offset = data_offset(key_bytes);
    if (bytes > s->limit || offset > s->limit - bytes)
        return STORE_TOO_LARGE;
    uint64_t charge = offset + bytes;
    uint64_t hash = local_store_hash(key);
    enum store_result result = local_store_reserve(s, key, hash, charge);
    if (result != STORE_OK)
        return result;
    struct store_item *item =
        aligned_alloc(ALIGNMENT, (charge + ALIGNMENT - 1) & ~(uint64_t)(ALIGNMENT - 1));
    if (!item) {
        pthread_mutex_lock(&s->lock);
        s->counts.used_bytes -= charge;
        pthread_mutex_unlock(&s->lock);
        return STORE_NO_MEMORY;
    }
    *item = (struct store_item){.hash = hash, .charge = charge, .bytes = bytes, .refs = 1};
    item->key = (char *)(item + 1);
    item->data = (uint8_t *)item + offset;
    memcpy(item->key, key, key_bytes + 1);
    *ret = item;
    return STORE_OK;
}

enum store_result store_commit(struct store *s, struct store_item *item)
{
    pthread_mutex_lock(&s->lock);
    bool there = local_store_find(s, item->key, item->hash) != NULL;
    if (there) {
        unref(s, item);
    } else {
        if (s->counts.items >= s->bucket_count)
            local_store_grow(s);
        struct store_item **bucket = local_store_bucket(s, item->hash);
        item->chain = *bucket;
        *bucket = item;
        link_newest(s, item);
        s->counts.items++;
    }
    pthread_mutex_unlock(&s->lock);
    return there ? STORE_EXISTS : STORE_OK;
}

void store_put_back(struct store *s, struct store_item *item)
{
    pthread_mutex_lock(&s->lock);
    unref(s, item);
    pthread_mutex_unlock(&s->lock);
}

void store_abandon(struct store *s, struct store_item *item)
{
    store_put_back(s, item);
}

void *store_bytes(struct store_item *item, uint64_t *ret_bytes)
{
    *ret_bytes = item->bytes;
    return item->data;
}

void store_count(struct store *s, struct store_counts *ret)
{
    pthread_mutex_lock(&s->lock);
    *ret = s->counts;
    pthread_mutex_unlock(&s->lock);
}

uint64_t store_limit(const struct store *s)
{
    return s->limit;
}
