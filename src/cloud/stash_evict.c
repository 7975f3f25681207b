/* Removes from the cache: content that no model uses, references without content, and downloads
 * that nobody continues. */
#include "cloud/stash_priv.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/strbuf.h"
#include "os/clock.h"
#include "os/files/disk.h"
#include "os/files/file.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define MAX_ENTRIES ((size_t)1 << 20)

/* A download that nobody wrote to for this long is given up. */
#define PART_KEEP_NS TIME_S(7 * 24 * 3600)

struct content {
    char *path;
    uint64_t bytes;
    uint64_t used_ns;
    bool in_use;
};

struct contents {
    struct content *all;
    size_t count;
    uint64_t bytes;
};

static void take_folder(struct contents *c, const char *folder)
{
    struct file_list l;
    struct err *e = file_list_dir(folder, MAX_ENTRIES, &l);
    if (e) {
        err_free(e);
        return;
    }
    for (size_t i = 0; i < l.count && c->count < MAX_ENTRIES; i++) {
        struct disk_age age;
        char *path = file_join(folder, l.entries[i].name);
        if (l.entries[i].is_dir || !disk_look(path, &age)) {
            mem_free(path);
            continue;
        }
        if ((c->count & (c->count - 1)) == 0)
            c->all = mem_realloc(c->all, (c->count ? c->count * 2 : 1) * sizeof(*c->all));
        c->all[c->count++] = (struct content){path, age.bytes, age.used_ns, age.links > 1};
        c->bytes += age.bytes;
    }
    file_list_fini(&l);
}

/* Collects the files in ROOT/NAME/ *, or in ROOT/NAME itself. */
static void take_all(struct contents *c, const char *root, const char *name, bool folders)
{
    char *dir = file_join(root, name);
    struct file_list l;
    struct err *e = folders ? file_list_dir(dir, MAX_ENTRIES, &l) : NULL;
    if (!folders) {
        take_folder(c, dir);
    } else if (!e) {
        for (size_t i = 0; i < l.count; i++) {
            char *folder = file_join(dir, l.entries[i].name);
            take_folder(c, folder);
            mem_free(folder);
        }
        file_list_fini(&l);
    }
    err_free(e);
    mem_free(dir);
}

static void contents_fini(struct contents *c)
{
    for (size_t i = 0; i < c->count; i++)
        mem_free(c->all[i].path);
    mem_free(c->all);
}

static int by_use(const void *a, const void *b)
{
    const struct content *x = a;
    const struct content *y = b;
    return x->used_ns < y->used_ns ? -1 : x->used_ns > y->used_ns;
}

/* True if a reference names existing content. */
static bool stash_evict_leads(const struct stash *s, const char *path)
{
    char *text = NULL;
    size_t len = 0;
    err_free(file_read(path, 256, &text, &len));
    bool found = false;
    if (len > STASH_ID_CHARS) {
        text[STASH_ID_CHARS] = '\0';
        char *object = stash_object_path(s, text);
        found = file_exists(object);
        mem_free(object);
    }
    mem_free(text);
    return found;
}

/* Removes a reference without content. A reference is written before its content appears, by the
 * holder of the part's lock, so it stays while somebody holds that lock. */
static void drop_ref(const struct stash *s, const char *path)
{
    struct strbuf part = STRBUF_INIT;
    int fd = -1;
    strbuf_printf(&part, "%s/parts/%.*s", s->root, (int)STASH_ID_CHARS, strrchr(path, '/') + 1);
    err_free(disk_lock(strbuf_str(&part), false, &fd));
    if (fd >= 0 && !stash_evict_leads(s, path)) /* checked again now that nobody can write it */
        disk_remove(path);
    if (fd >= 0 && disk_size(fd) == 0) /* the lock made this file */
        disk_remove(strbuf_str(&part));
    disk_unlock(fd);
    strbuf_fini(&part);
}

/* Removes the references without content. */
static void drop_refs(const struct stash *s)
{
    struct contents refs = {0};
    take_all(&refs, s->root, "refs", false);
    for (size_t i = 0; i < refs.count; i++)
        if (!stash_evict_leads(s, refs.all[i].path))
            drop_ref(s, refs.all[i].path);
    contents_fini(&refs);
}

static void drop_parts(const struct stash *s)
{
    struct contents parts = {0};
    take_all(&parts, s->root, "parts", false);
    uint64_t now = clock_wall_ns();
    for (size_t i = 0; i < parts.count; i++)
        if (parts.all[i].used_ns + PART_KEEP_NS < now)
            disk_remove(parts.all[i].path);
    contents_fini(&parts);
}

void stash_evict(struct stash *s, uint64_t max_bytes)
{
    struct contents c = {0};
    take_all(&c, s->root, "objects", true);
    /* lower than the limit, so that not every new object evicts */
    uint64_t target = max_bytes - max_bytes / 10;
    uint64_t before = c.bytes;
    if (c.bytes > max_bytes) {
        qsort(c.all, c.count, sizeof(*c.all), by_use);
        for (size_t i = 0; i < c.count && c.bytes > target; i++) {
            if (c.all[i].in_use)
                continue;
            disk_remove(c.all[i].path);
            c.bytes -= c.all[i].bytes;
        }
        drop_refs(s);
        drop_parts(s);
    }
    mutex_lock(&s->lock);
    s->bytes = c.bytes;
    mutex_unlock(&s->lock);
    if (c.bytes != before)
        LOG_INFO("the cache of cloud repositories gave up %" PRIu64 " MiB that no model uses",
                 (before - c.bytes) >> 20);
    contents_fini(&c);
}
