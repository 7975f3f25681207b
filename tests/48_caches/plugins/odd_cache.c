/* A response cache that breaks one rule, named by its setting "mode". It keeps one entry. */
#include "triton/core/tritoncache.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct TRITONCACHE_Cache {
    char mode[64];
    char gate[512]; /* of mode "waits": look-ups wait until somebody opens this pipe to write */
    char key[256];
    void *data;
    size_t size;
};

static TRITONCACHE_Allocator *stale;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards that and the cache */

static TRITONSERVER_Error *fail(const char *what)
{
    return TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_INTERNAL, what);
}

/* The text of a member of the JSON object, which has no escapes. */
static void member(const char *json, const char *name, char *ret, size_t size)
{
    char begin[80];
    snprintf(begin, sizeof(begin), "\"%s\":\"", name);
    const char *at = strstr(json, begin);
    if (!at)
        return;
    at += strlen(begin);
    snprintf(ret, size, "%.*s", (int)strcspn(at, "\""), at);
}

static bool is(const TRITONCACHE_Cache *c, const char *mode)
{
    return strcmp(c->mode, mode) == 0;
}

TRITONCACHE_ISPEC TRITONSERVER_Error *TRITONCACHE_CacheInitialize(TRITONCACHE_Cache **cache,
                                                                  const char *config)
{
    TRITONCACHE_Cache *c = calloc(1, sizeof(*c));
    member(config, "mode", c->mode, sizeof(c->mode));
    member(config, "gate", c->gate, sizeof(c->gate));
    uint32_t major, minor;
    TRITONSERVER_Error *err = TRITONCACHE_ApiVersion(&major, &minor);
    if (!err && is(c, "newer") && major < 9)
        err = TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_UNSUPPORTED,
                                    "odd cache: the cache API of the server is too old for it");
    if (!err && is(c, "no_initialize"))
        err = fail("odd cache: not today");
    *cache = is(c, "null") ? NULL : c;
    if (!*cache)
        free(c); /* what it shows with an error, it expects to be finalised */
    return err;
}

TRITONCACHE_ISPEC TRITONSERVER_Error *TRITONCACHE_CacheFinalize(TRITONCACHE_Cache *c)
{
    TRITONSERVER_Error *err = is(c, "no_finalize") ? fail("odd cache: it stays") : NULL;
    TRITONSERVER_Error *told =
        TRITONSERVER_LogMessage(TRITONSERVER_LOG_INFO, __FILE__, __LINE__, "odd cache: FINALIZED");
    TRITONSERVER_ErrorDelete(told);
    free(c->data);
    free(c);
    return err;
}

static TRITONSERVER_Error *show(TRITONCACHE_CacheEntry *entry, void *base, size_t size,
                                TRITONSERVER_MemoryType memory)
{
    TRITONSERVER_BufferAttributes *a;
    TRITONSERVER_Error *err = TRITONSERVER_BufferAttributesNew(&a);
    if (!err)
        err = TRITONSERVER_BufferAttributesSetByteSize(a, size);
    if (!err)
        err = TRITONSERVER_BufferAttributesSetMemoryType(a, memory);
    if (!err)
        err = TRITONCACHE_CacheEntryAddBuffer(entry, base, a);
    TRITONSERVER_BufferAttributesDelete(a);
    return err;
}

/* Bytes that it did not get from the server. */
static TRITONSERVER_Error *show_wrong(const TRITONCACHE_Cache *c, TRITONCACHE_CacheEntry *entry)
{
    static char rubbish[256];
    memset(rubbish, 0xee, sizeof(rubbish));
    if (is(c, "rubbish"))
        return show(entry, rubbish, sizeof(rubbish), TRITONSERVER_MEMORY_CPU);
    if (is(c, "short"))
        return show(entry, c->data, c->size - 1, TRITONSERVER_MEMORY_CPU);
    if (is(c, "device"))
        return show(entry, c->data, c->size, TRITONSERVER_MEMORY_GPU);
    if (is(c, "many"))
        TRITONSERVER_ErrorDelete(show(entry, rubbish, 1, TRITONSERVER_MEMORY_CPU));
    return show(entry, c->data, c->size, TRITONSERVER_MEMORY_CPU);
}

static TRITONSERVER_Error *look_up(TRITONCACHE_Cache *c, const char *key,
                                   TRITONCACHE_CacheEntry *entry, TRITONCACHE_Allocator *allocator)
{
    if (is(c, "no_lookup"))
        return fail("odd cache: cannot look");
    if (is(c, "silent_lookup"))
        return NULL;
    if (is(c, "late") && stale)
        TRITONSERVER_ErrorDelete(TRITONCACHE_Copy(stale, entry));
    stale = allocator;
    if (is(c, "copies_nothing")) {
        TRITONSERVER_Error *refused = TRITONCACHE_Copy(allocator, entry);
        return refused ? refused : fail("odd cache: an entry without a buffer was taken");
    }
    if (!c->data || strcmp(key, c->key) != 0)
        return TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_NOT_FOUND, "odd cache: not here");
    TRITONSERVER_Error *err = show_wrong(c, entry);
    if (!err)
        err = TRITONCACHE_Copy(allocator, entry);
    if (!err && is(c, "twice"))
        err = TRITONCACHE_Copy(allocator, entry);
    if (!err && is(c, "changes_its_mind"))
        err = fail("odd cache: it was a mistake");
    return err;
}

TRITONCACHE_ISPEC TRITONSERVER_Error *
#ifdef ODD_WITHOUT_LOOKUP
no_lookup
#else
TRITONCACHE_CacheLookup
#endif
    (TRITONCACHE_Cache *c, const char *key, TRITONCACHE_CacheEntry *entry,
     TRITONCACHE_Allocator *allocator)
{
    if (is(c, "waits")) {
        char begun[sizeof(c->gate) + 8]; /* a file that tells that somebody waits */
        snprintf(begun, sizeof(begun), "%s.begun", c->gate);
        close(open(begun, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
        int gate = open(c->gate, O_RDONLY | O_CLOEXEC); /* a pipe that nobody writes to yet */
        if (gate >= 0)
            close(gate);
    }
    pthread_mutex_lock(&lock);
    TRITONSERVER_Error *err = look_up(c, key, entry, allocator);
    pthread_mutex_unlock(&lock);
    return err;
}

static TRITONSERVER_Error *insert(TRITONCACHE_Cache *c, const char *key,
                                  TRITONCACHE_CacheEntry *entry, TRITONCACHE_Allocator *allocator)
{
    if (is(c, "no_insert"))
        return fail("odd cache: no room");
    if (is(c, "silent_insert"))
        return NULL;
    if (is(c, "copies_at_once"))
        return TRITONCACHE_Copy(allocator, entry);
    TRITONSERVER_BufferAttributes *a;
    void *base;
    TRITONSERVER_Error *err = TRITONSERVER_BufferAttributesNew(&a);
    if (err)
        return err;
    err = TRITONCACHE_CacheEntryGetBuffer(entry, 0, &base, a);
    size_t size = 0;
    if (!err)
        err = TRITONSERVER_BufferAttributesByteSize(a, &size);
    TRITONSERVER_BufferAttributesDelete(a);
    if (err)
        return err;
    free(c->data);
    c->data = malloc(size);
    c->size = size;
    snprintf(c->key, sizeof(c->key), "%s", key);
    err = TRITONCACHE_CacheEntrySetBuffer(entry, 0, c->data, NULL);
    return err ? err : TRITONCACHE_Copy(allocator, entry);
}

TRITONCACHE_ISPEC TRITONSERVER_Error *TRITONCACHE_CacheInsert(TRITONCACHE_Cache *c, const char *key,
                                                              TRITONCACHE_CacheEntry *entry,
                                                              TRITONCACHE_Allocator *allocator)
{
    pthread_mutex_lock(&lock);
    TRITONSERVER_Error *err = insert(c, key, entry, allocator);
    pthread_mutex_unlock(&lock);
    return err;
}
