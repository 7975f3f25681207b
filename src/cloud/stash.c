#include "cloud/stash.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/strbuf.h"
#include "os/files/disk.h"
#include "os/files/file.h"
#include "os/files/tree.h"
#include "cloud/stash_priv.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define HEX_CHARS  (2u * STASH_HASH_BYTES)
#define READ_BYTES ((size_t)1 << 20)
/* a try fails only if another process commits the same content meanwhile */
#define MAX_TRIES   100u
#define MAX_ENTRIES ((size_t)1 << 20)

static char *below(const struct stash *s, const char *name)
{
    return file_join(s->root, name);
}

char *stash_object_path(const struct stash *s, const char *sha_hex)
{
    struct strbuf path = STRBUF_INIT;
    strbuf_printf(&path, "%s/objects/%.2s/%s", s->root, sha_hex, sha_hex + 2);
    return strbuf_take(&path);
}

char *stash_ref_path(const struct stash *s, const char *id)
{
    struct strbuf path = STRBUF_INIT;
    strbuf_printf(&path, "%s/refs/%s", s->root, id);
    return strbuf_take(&path);
}

static void put_hex(const unsigned char *bytes, char ret[HEX_CHARS + 1])
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < STASH_HASH_BYTES; i++) {
        ret[2 * i] = digits[bytes[i] >> 4];
        ret[2 * i + 1] = digits[bytes[i] & 15];
    }
    ret[HEX_CHARS] = '\0';
}

void stash_id(const struct stash *s, const char *text, char ret[STASH_ID_CHARS + 1])
{
    unsigned char out[STASH_HASH_BYTES];
    void *hash = s->hash.begin();
    s->hash.add(hash, text, strlen(text));
    s->hash.end(hash, out);
    put_hex(out, ret);
}

/* Removes the directories of processes that have ended: nobody holds their lock. */
static void remove_dead(const char *run)
{
    struct file_list l;
    struct err *e = file_list_dir(run, MAX_ENTRIES, &l);
    if (e) {
        err_free(e);
        return;
    }
    for (size_t i = 0; i < l.count; i++) {
        char *dir = file_join(run, l.entries[i].name);
        char *lock = file_join(dir, "lock");
        int fd = -1;
        if (l.entries[i].is_dir)
            err_free(disk_lock(lock, false, &fd));
        if (fd >= 0)
            tree_remove(dir);
        disk_unlock(fd);
        mem_free(lock);
        mem_free(dir);
    }
    file_list_fini(&l);
}

/* Makes and locks this process's directory, while no other process removes unlocked ones. */
static struct err *make_run_dir(struct stash *s)
{
    char *run = below(s, "run");
    char *gate = below(s, "run/.lock");
    int gate_fd;
    struct err *e = disk_make_dirs(run);
    if (!e)
        e = disk_lock(gate, true, &gate_fd);
    if (!e) {
        remove_dead(run);
        e = disk_make_unique(run, &s->run_dir);
        if (!e) {
            char *lock = file_join(s->run_dir, "lock");
            e = disk_lock(lock, true, &s->run_lock);
            mem_free(lock);
        }
        disk_unlock(gate_fd);
    }
    mem_free(gate);
    mem_free(run);
    return e;
}

struct err *stash_open(const char *root, uint64_t max_bytes, const struct stash_hash *hash,
                       struct stash **ret)
{
    struct stash *s = MEM_NEW(struct stash);
    s->root = mem_strdup(root);
    s->max_bytes = max_bytes;
    s->hash = *hash;
    s->run_lock = -1;
    s->bytes = UINT64_MAX; /* not counted yet */
    mutex_init(&s->lock, MUTEX_RANK_LEAF);
    static const char *const folders[] = {"objects", "refs", "parts"};
    struct err *e = disk_make_dirs(root);
    for (size_t i = 0; !e && i < sizeof(folders) / sizeof(folders[0]); i++) {
        char *dir = below(s, folders[i]);
        e = disk_make_dirs(dir);
        mem_free(dir);
    }
    if (!e)
        e = make_run_dir(s);
    if (e) {
        stash_close(s);
        return err_wrap(e, "the cache of cloud repositories");
    }
    *ret = s;
    return NULL;
}

void stash_close(struct stash *s)
{
    if (!s)
        return;
    if (s->run_dir)
        tree_remove(s->run_dir);
    disk_unlock(s->run_lock);
    mutex_fini(&s->lock);
    mem_free(s->run_dir);
    mem_free(s->root);
    mem_free(s);
}

uint64_t stash_max_bytes(const struct stash *s)
{
    return s->max_bytes;
}

struct err *stash_model_dir(struct stash *s, const char *model, char **ret)
{
    if (!tree_name_ok(model) || strchr(model, '/'))
        return err_new(STATUS_INVALID_ARG, "'%s' cannot be the name of a directory", model);
    mutex_lock(&s->lock);
    uint64_t number = s->next_dir++;
    mutex_unlock(&s->lock);
    struct strbuf path = STRBUF_INIT;
    strbuf_printf(&path, "%s/%" PRIu64 "/%s", s->run_dir, number, model);
    struct err *e = disk_make_dirs(strbuf_str(&path));
    if (e)
        strbuf_fini(&path);
    else
        *ret = strbuf_take(&path);
    return e;
}

void stash_drop_model_dir(const char *dir)
{
    char *parent = mem_strdup(dir);
    char *slash = strrchr(parent, '/');
    *slash = '\0';
    tree_remove(parent);
    mem_free(parent);
}

/* Reads the hash in a reference. Returns false if there is no reference for content of this
 * size. */
static bool read_ref(const struct stash *s, const char *id, uint64_t bytes, char ret[HEX_CHARS + 1])
{
    char *path = stash_ref_path(s, id);
    char *text = NULL;
    size_t len = 0;
    struct err *e = file_read(path, 256, &text, &len);
    bool ok = !e && len > HEX_CHARS + 1 && strspn(text, "0123456789abcdef") == HEX_CHARS &&
              text[HEX_CHARS] == ' ' && strtoull(text + HEX_CHARS, NULL, 10) == bytes;
    if (ok) {
        memcpy(ret, text, HEX_CHARS);
        ret[HEX_CHARS] = '\0';
    }
    err_free(e);
    mem_free(text);
    mem_free(path);
    return ok;
}

static struct err *read_all(int fd, void (*add)(void *owner, const void *data, size_t len),
                            void *owner)
{
    char *piece = mem_alloc(READ_BYTES);
    size_t n = 1;
    struct err *e = NULL;
    for (uint64_t at = 0; !e && n; at += n) {
        e = disk_read_at(fd, piece, READ_BYTES, at, &n);
        if (!e && n)
            add(owner, piece, n);
    }
    mem_free(piece);
    return e;
}

/* Checks that a file still has the content that its name says.
 * errors  it cannot be read; NOT_FOUND if it does not exist */
static struct err *check_content(const struct stash *s, const char *path, const char *hex,
                                 uint64_t bytes, bool *ret_same)
{
    int fd;
    struct err *e = disk_open_read(path, &fd);
    if (e)
        return e;
    unsigned char out[STASH_HASH_BYTES];
    char found[HEX_CHARS + 1];
    *ret_same = disk_size(fd) == bytes;
    if (*ret_same) {
        void *hash = s->hash.begin();
        e = read_all(fd, s->hash.add, hash);
        s->hash.end(hash, out);
        put_hex(out, found);
        *ret_same = memcmp(found, hex, HEX_CHARS) == 0;
    }
    disk_close(fd);
    return e;
}

/* Tries once to link the content. Errors: NOT_FOUND: the content disappeared meanwhile. */
static struct err *link_content(struct stash *s, const char *path, const char *hex, uint64_t bytes,
                                const char *to, bool *ret)
{
    bool same = false;
    struct err *e = check_content(s, path, hex, bytes, &same);
    if (!e && same) {
        e = disk_link(path, to);
        *ret = !e;
        disk_use(path);
    } else if (!e) {
        LOG_WARN("the cache file '%s' is not what it was: it is fetched again", path);
        disk_remove(path);
    }
    return e;
}

struct err *stash_link(struct stash *s, const char *id, uint64_t bytes, const char *to, bool *ret)
{
    char hex[HEX_CHARS + 1];
    *ret = false;
    if (!read_ref(s, id, bytes, hex))
        return NULL;
    char *path = stash_object_path(s, hex);
    struct err *e = link_content(s, path, hex, bytes, to, ret);
    /* Another commit of the same content replaced it meanwhile, or it was evicted. */
    for (unsigned tries = 1; e && err_code(e) == STATUS_NOT_FOUND; tries++) {
        err_free(e);
        e = NULL;
        if (tries < MAX_TRIES && file_exists(path))
            e = link_content(s, path, hex, bytes, to, ret);
    }
    mem_free(path);
    return e;
}

struct err *stash_begin(struct stash *s, const char *id, uint64_t bytes, size_t pieces,
                        struct stash_part **ret)
{
    struct stash_part *p = MEM_NEW(struct stash_part);
    memcpy(p->id, id, STASH_ID_CHARS);
    p->fd = p->map_fd = -1;
    p->bytes = bytes;
    struct strbuf path = STRBUF_INIT;
    strbuf_printf(&path, "%s/parts/%s", s->root, id);
    p->path = strbuf_take(&path);
    strbuf_printf(&path, "%s.map", p->path);
    p->map_path = strbuf_take(&path);
    *ret = NULL;
    struct err *e = disk_open_part(p->path, &p->fd);
    if (!e && p->fd >= 0 && pieces > 1)
        e = disk_open_part(p->map_path, &p->map_fd);
    bool known = p->map_fd >= 0 && disk_size(p->map_fd) == pieces;
    if (!e && p->fd >= 0 && (disk_size(p->fd) != bytes || !known)) {
        e = stash_restart(p);
        if (!e && p->map_fd >= 0)
            e = disk_set_size(p->map_fd, pieces);
    }
    if (e || p->fd < 0)
        stash_leave(p);
    else
        *ret = p;
    return e;
}

bool stash_has_piece(const struct stash_part *p, size_t piece)
{
    char mark = 0;
    size_t n = 0;
    if (p->map_fd >= 0)
        err_free(disk_read_at(p->map_fd, &mark, 1, piece, &n));
    return n == 1 && mark == 1;
}

struct err *stash_piece_done(struct stash_part *p, size_t piece)
{
    if (p->map_fd < 0)
        return NULL;
    const char mark = 1;
    struct err *e = disk_sync(p->fd);
    return e ? e : disk_write_at(p->map_fd, &mark, 1, piece);
}

struct err *stash_restart(struct stash_part *p)
{
    uint64_t pieces = p->map_fd >= 0 ? disk_size(p->map_fd) : 0;
    struct err *e = disk_set_size(p->fd, 0);
    if (!e)
        e = disk_set_size(p->fd, p->bytes);
    if (!e && p->map_fd >= 0)
        e = disk_set_size(p->map_fd, 0);
    if (!e && p->map_fd >= 0)
        e = disk_set_size(p->map_fd, pieces);
    return e;
}

struct err *stash_read(const struct stash_part *p,
                       void (*add)(void *owner, const void *data, size_t len), void *owner)
{
    return read_all(p->fd, add, owner);
}

static void count_bytes(struct stash *s, uint64_t bytes)
{
    mutex_lock(&s->lock);
    bool counted = s->bytes != UINT64_MAX;
    if (counted)
        s->bytes += bytes;
    bool over = !counted || s->bytes > s->max_bytes;
    mutex_unlock(&s->lock);
    if (over)
        stash_evict(s, s->max_bytes);
}

struct err *stash_commit(struct stash *s, struct stash_part *p,
                         const unsigned char sha[STASH_HASH_BYTES])
{
    char hex[HEX_CHARS + 1];
    put_hex(sha, hex);
    char *object = stash_object_path(s, hex);
    char *ref = stash_ref_path(s, p->id);
    char *dir = mem_strdup(object);
    *strrchr(dir, '/') = '\0';
    struct strbuf line = STRBUF_INIT;
    strbuf_printf(&line, "%s %" PRIu64 "\n", hex, p->bytes);
    disk_seal(p->fd);
    /* The reference is written first: a process that finds the part gone then finds the content. */
    struct err *e = disk_make_dirs(dir);
    if (!e)
        e = disk_write(ref, line.data, line.len);
    if (!e)
        e = disk_rename(p->path, object);
    uint64_t bytes = p->bytes;
    if (!e) {
        disk_use(object);
        disk_remove(p->map_path);
    }
    stash_leave(p);
    if (!e)
        count_bytes(s, bytes);
    strbuf_fini(&line);
    mem_free(dir);
    mem_free(ref);
    mem_free(object);
    return e;
}

void stash_drop(struct stash_part *p)
{
    disk_remove(p->map_path);
    disk_remove(p->path);
    stash_leave(p);
}

void stash_leave(struct stash_part *p)
{
    if (!p)
        return;
    disk_close(p->map_fd);
    disk_close(p->fd);
    mem_free(p->map_path);
    mem_free(p->path);
    mem_free(p);
}
