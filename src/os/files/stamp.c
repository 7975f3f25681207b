#include "os/files/stamp.h"

#include "base/fault.h"
#include "os/files/dir.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_DEPTH 16u

/* A pass over everything below a directory. */
struct stamp_look {
    size_t left;    /* how many more entries it may look at */
    unsigned depth; /* depth of the current directory */
    struct stamp_dir {
        dev_t dev;
        ino_t ino;
    } way[MAX_DEPTH + 1]; /* the directories from the top to the current one */
};

static uint64_t stamp_mix(uint64_t h, const void *bytes, size_t len)
{
    const unsigned char *b = bytes;
    for (size_t i = 0; i < len; i++)
        h = (h ^ b[i]) * 0x100000001b3u;
    return h ^ (h >> 29);
}

static uint64_t mix_number(uint64_t h, uint64_t n)
{
    return stamp_mix(h, &n, sizeof(n));
}

static uint64_t stamp_of_file(uint64_t h, const struct stat *st)
{
    h = mix_number(h, (uint64_t)st->st_mode & S_IFMT);
    h = mix_number(h, (uint64_t)st->st_ino);
    h = mix_number(h, (uint64_t)st->st_size);
    h = mix_number(h, (uint64_t)st->st_mtim.tv_sec);
    return mix_number(h, (uint64_t)st->st_mtim.tv_nsec);
}

static uint64_t of_all(struct stamp_look *l, int dir_fd);

/* True if the directory is the current one or a parent: a link leads in a circle. */
static bool is_on_way(const struct stamp_look *l, const struct stat *dir)
{
    for (unsigned i = 0; i <= l->depth; i++)
        if (l->way[i].dev == dir->st_dev && l->way[i].ino == dir->st_ino)
            return true;
    return false;
}

static uint64_t of_below(struct stamp_look *l, int dir_fd, const char *name, const struct stat *st)
{
    if (l->depth == MAX_DEPTH || is_on_way(l, st))
        return 0;
    int below = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (below < 0)
        return 0;
    l->way[++l->depth] = (struct stamp_dir){st->st_dev, st->st_ino};
    uint64_t sum = of_all(l, below);
    l->depth--;
    return sum;
}

static uint64_t of_entry(struct stamp_look *l, int dir_fd, const char *name)
{
    struct stat st;
    uint64_t h = stamp_mix(0xcbf29ce484222325u, name, strlen(name));
    if (!l->left)
        return 0;
    l->left--;
    if (name[0] == '.' || fstatat(dir_fd, name, &st, 0) != 0)
        return h;
    if (!S_ISDIR(st.st_mode))
        return stamp_of_file(h, &st);
    h = mix_number(h, (uint64_t)st.st_mode & S_IFMT);
    h = mix_number(h, (uint64_t)st.st_ino);
    uint64_t below = of_below(l, dir_fd, name, &st);
    return below ? mix_number(h, below) : h;
}

/* Sums over the entries, so that their order does not matter. Closes dir_fd. */
static uint64_t of_all(struct stamp_look *l, int dir_fd)
{
    uint64_t sum = 1;
    struct dir dir;
    dir_init(&dir, dir_fd);
    for (const struct dirent64 *d; l->left && (d = dir_next(&dir));)
        sum += of_entry(l, dir_fd, d->d_name);
    close(dir_fd);
    return sum;
}

/* Opens the directory and begins a pass. */
static struct err *look_begin(const char *path, struct stamp_look *ret, int *ret_fd)
{
    struct stat st;
    int fd = fault_hit() ? (errno = EMFILE, -1) : open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) != 0) {
        struct err *e = err_errno(errno, "looking at '%s'", path);
        if (fd >= 0)
            close(fd);
        return e;
    }
    *ret = (struct stamp_look){.left = STAMP_MAX_ENTRIES + 1};
    ret->way[0] = (struct stamp_dir){st.st_dev, st.st_ino};
    *ret_fd = fd;
    return NULL;
}

static struct err *look_end(const struct stamp_look *l, const char *path)
{
    if (l->left)
        return NULL;
    return err_new(STATUS_INVALID_ARG,
                   "'%s' has too many files: expected at most %u, and links to directories are "
                   "followed; take out those that lead to the same files many times",
                   path, STAMP_MAX_ENTRIES);
}

struct err *stamp_directory(const char *path, uint64_t *ret)
{
    struct stamp_look look;
    int fd;
    struct err *e = look_begin(path, &look, &fd);
    if (e)
        return e;
    uint64_t sum = of_all(&look, fd);
    e = look_end(&look, path);
    if (!e)
        *ret = sum;
    return e;
}

struct err *stamp_parts(const char *path, stamp_part_fn *part_of, void *owner)
{
    struct stamp_look look;
    int fd;
    struct err *e = look_begin(path, &look, &fd);
    if (e)
        return e;
    struct dir dir;
    dir_init(&dir, fd);
    for (const struct dirent64 *d; look.left && (d = dir_next(&dir));) {
        uint64_t *part = part_of(owner, d->d_name, dir_entry_is_dir(&dir, d));
        if (part)
            *part += of_entry(&look, fd, d->d_name);
    }
    close(fd);
    return look_end(&look, path);
}

uint64_t stamp_file(const char *path)
{
    struct stat st;
    if (stat(path, &st) != 0)
        return 0;
    uint64_t h = mix_number(stamp_of_file(1, &st), (uint64_t)st.st_ctim.tv_sec);
    return mix_number(h, (uint64_t)st.st_ctim.tv_nsec); /* changes with the owner and the mode */
}

bool stamp_watch_due(struct stamp_watch *w, uint64_t stamp, bool now)
{
    bool at_rest = stamp == w->seen;
    w->seen = stamp;
    if (!now && (!at_rest || (stamp == w->used && !w->told)))
        return false;
    w->used = stamp;
    return true;
}

bool stamp_watch_read(struct stamp_watch *w, const struct err *e)
{
    uint64_t before = w->told;
    const char *text = e ? err_message(e) : "";
    w->told = e ? stamp_mix(1, text, strlen(text)) | 1 : 0;
    return e && w->told != before;
}
