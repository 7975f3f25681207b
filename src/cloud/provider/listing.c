#include "cloud/provider/listing.h"

#include "base/mem.h"
#include "os/files/tree.h"

#include <stdlib.h>
#include <string.h>

void listing_init(struct listing *l)
{
    *l = (struct listing){.max = LISTING_MAX_OBJECTS};
    arena_init(&l->arena, NULL, 0);
}

void listing_fini(struct listing *l)
{
    arena_fini(&l->arena);
    mem_free(l->objects);
    l->objects = NULL;
    l->count = l->cap = 0;
}

struct err *listing_add(struct listing *l, const char *name, size_t name_len, uint64_t size,
                        const char *tag, const char *digest)
{
    size_t tag_len = strlen(tag);
    size_t digest_len = digest ? strlen(digest) : 0;
    l->bytes += name_len + tag_len + digest_len;
    l->full = l->full || l->count == l->max || l->bytes > LISTING_MAX_BYTES;
    if (l->bytes > LISTING_MAX_BYTES)
        return err_new(STATUS_INVALID_ARG,
                       "names of more than %zu bytes; name a path that holds model directories "
                       "alone",
                       LISTING_MAX_BYTES);
    if (l->count == l->max)
        return err_new(STATUS_INVALID_ARG,
                       "more than %zu objects; name a path that holds model directories alone",
                       l->max);
    if (memchr(name, '\0', name_len))
        return err_new(STATUS_INVALID_ARG, "the name of an object holds a NUL");
    if (l->count == l->cap) {
        l->cap = l->cap ? l->cap * 2 : 64;
        l->objects = mem_realloc(l->objects, l->cap * sizeof(*l->objects));
    }
    l->objects[l->count++] = (struct listing_object){
        .name = arena_strndup(&l->arena, name, name_len),
        .tag = arena_strndup(&l->arena, tag, tag_len),
        .size = size,
        .digest = digest_len ? arena_strndup(&l->arena, digest, digest_len) : "",
    };
    return NULL;
}

static int listing_by_name(const void *a, const void *b)
{
    const struct listing_object *x = a;
    const struct listing_object *y = b;
    return strcmp(x->name, y->name);
}

void listing_sort(struct listing *l)
{
    if (l->count < 2)
        return;
    qsort(l->objects, l->count, sizeof(*l->objects), listing_by_name);
    size_t kept = 1;
    for (size_t i = 1; i < l->count; i++)
        if (strcmp(l->objects[i].name, l->objects[kept - 1].name) != 0)
            l->objects[kept++] = l->objects[i];
    l->count = kept;
}

bool listing_next_model(const struct listing *l, size_t *at, const char **ret, size_t *ret_len)
{
    for (size_t i = *at; i < l->count; i++) {
        const char *name = l->objects[i].name;
        const char *slash = strchr(name, '/');
        if (!slash || slash == name || *name == '.')
            continue;
        size_t len = (size_t)(slash - name);
        size_t end = i + 1;
        while (end < l->count && strncmp(l->objects[end].name, name, len + 1) == 0)
            end++;
        *at = end;
        *ret = name;
        *ret_len = len;
        return true;
    }
    *at = l->count;
    return false;
}

/* The first object whose name is not less than MODEL/. */
static size_t lower_bound(const struct listing *l, const char *model, size_t len)
{
    size_t low = 0;
    size_t high = l->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const char *name = l->objects[middle].name;
        int order = strncmp(name, model, len);
        if (order < 0 || (order == 0 && (unsigned char)name[len] < '/'))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

void listing_model(const struct listing *l, const char *model, size_t *ret_first, size_t *ret_count)
{
    size_t len = strlen(model);
    size_t first = lower_bound(l, model, len);
    size_t end = first;
    while (end < l->count && strncmp(l->objects[end].name, model, len) == 0 &&
           l->objects[end].name[len] == '/')
        end++;
    *ret_first = first;
    *ret_count = end - first;
}

/* Checks a name. The last slash of a directory marker is ignored; "MODEL/" itself is fine. */
static bool name_ok(const char *name)
{
    size_t len = strlen(name);
    if (len && name[len - 1] != '/')
        return tree_name_ok(name);
    char *copy = mem_strndup(name, len - (len ? 1 : 0));
    bool ok = tree_name_ok(copy);
    mem_free(copy);
    return ok;
}

struct err *listing_check(const struct listing *l, size_t first, size_t count)
{
    for (size_t i = first; i < first + count; i++)
        if (!name_ok(l->objects[i].name))
            return err_new(STATUS_INVALID_ARG,
                           "the object '%s' would not stay within its model's directory: nothing "
                           "of this model is read",
                           l->objects[i].name);
    return NULL;
}

/* The version number in the first component; 0 if it is not a version. */
static int64_t version_of(const char *path)
{
    const char *slash = strchr(path, '/');
    if (!slash || *path < '1' || *path > '9' || slash - path > 18)
        return 0;
    for (const char *c = path; c < slash; c++)
        if (*c < '0' || *c > '9')
            return 0;
    return strtoll(path, NULL, 10);
}

static bool listing_is_config(const char *path)
{
    return strcmp(path, "config.pbtxt") == 0 || strncmp(path, "configs/", 8) == 0;
}

bool listing_in(const char *path, int64_t part)
{
    if (part == LISTING_ALL)
        return true;
    int64_t version = version_of(path);
    if (part >= 0)
        return version == part;
    return version == 0 && listing_is_config(path) == (part == LISTING_CONFIG);
}

static uint64_t listing_mix(uint64_t h, const void *bytes, size_t len)
{
    const unsigned char *b = bytes;
    for (size_t i = 0; i < len; i++)
        h = (h ^ b[i]) * 0x100000001b3u;
    return h ^ (h >> 29);
}

uint64_t listing_stamp(const struct listing *l, size_t first, size_t count, int64_t part)
{
    uint64_t h = 0xcbf29ce484222325u;
    for (size_t i = first; i < first + count; i++) {
        const struct listing_object *o = &l->objects[i];
        const char *path = strchr(o->name, '/');
        if (!path || !listing_in(path + 1, part))
            continue;
        h = listing_mix(h, o->name, strlen(o->name) + 1);
        h = listing_mix(h, o->tag, strlen(o->tag) + 1);
        h = listing_mix(h, &o->size, sizeof(o->size));
    }
    return h ? h : 1;
}
