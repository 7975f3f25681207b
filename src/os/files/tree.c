#include "os/files/tree.h"

#include "base/fault.h"
#include "base/mem.h"
#include "base/strbuf.h"
#include "os/files/dir.h"
#include "os/mutex.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

bool tree_name_ok(const char *name)
{
    unsigned depth = 0;
    for (;;) {
        size_t len = strcspn(name, "/");
        bool dots = (len == 1 && name[0] == '.') || (len == 2 && name[0] == '.' && name[1] == '.');
        if (len == 0 || len > TREE_MAX_PART || dots || ++depth > TREE_MAX_DEPTH)
            return false;
        if (name[len] == '\0')
            return true;
        name += len + 1;
    }
}

/* A tree of this process, and the descriptor that holds its lock. */
struct tree {
    struct tree *next;
    char *root;
    int fd;
};

static struct mutex trees_lock = MUTEX_INIT(MUTEX_RANK_LEAF);
static struct tree *trees; /* guarded by trees_lock */

static const char *tree_base(void)
{
    const char *base = getenv("TMPDIR");
    return base && *base == '/' ? base : "/tmp";
}

static int open_root(const char *root)
{
    return open(root, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

/* Locks the open directory. False if somebody else has locked it, or if the path no longer leads
 * to it: between making and locking it, or opening and locking it, it may have been removed. Where
 * a file system has no locks, who does not wait gets none, so nothing is swept there. */
static bool lock_root(int fd, const char *root, bool wait)
{
    struct stat locked;
    struct stat named;
    int failed;
    while ((failed = flock(fd, wait ? LOCK_EX : LOCK_EX | LOCK_NB)) != 0 && errno == EINTR)
        ;
    return (wait || !failed) && fstat(fd, &locked) == 0 && lstat(root, &named) == 0 &&
           locked.st_ino == named.st_ino && locked.st_dev == named.st_dev;
}

/* Makes and locks a directory. Another process that sweeps may be quicker to lock it, and removes
 * it; then the next one is tried. Returns -1 with errno. */
static int make_locked(char *root, size_t len)
{
    for (;;) {
        memcpy(root + len - 6, "XXXXXX", 6);
        if (fault_hit() ? (errno = ENOSPC, true) : !mkdtemp(root))
            return -1;
        int fd = fault_hit() ? (errno = EMFILE, -1) : open_root(root);
        if (fd >= 0 && lock_root(fd, root, true))
            return fd;
        if (fd >= 0) {
            close(fd);
        } else if (errno != ENOENT) {
            int why = errno;
            rmdir(root);
            errno = why;
            return -1;
        }
    }
}

struct err *tree_make(const char *prefix, char **ret)
{
    struct strbuf path = STRBUF_INIT;
    strbuf_printf(&path, "%s/%s-XXXXXX", tree_base(), prefix);
    size_t len = path.len;
    char *made = strbuf_take(&path);
    int fd = make_locked(made, len);
    if (fd < 0) {
        struct err *e = err_errno(errno, "making the directory '%s'", made);
        mem_free(made);
        return err_recode(e, STATUS_INTERNAL);
    }
    struct tree *t = MEM_NEW(struct tree);
    *t = (struct tree){.root = mem_strdup(made), .fd = fd};
    mutex_lock(&trees_lock);
    t->next = trees;
    trees = t;
    mutex_unlock(&trees_lock);
    *ret = made;
    return NULL;
}

static struct err *tree_write_all(int fd, const char *name, const char *data, size_t len)
{
    while (len) {
        ssize_t n = fault_hit() ? (errno = ENOSPC, -1) : write(fd, data, len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return err_errno(errno, "writing '%s'", name);
        data += n;
        len -= (size_t)n;
    }
    return NULL;
}

static struct err *tree_failed(const char *name)
{
    struct err *e = err_errno(errno, "making '%s'", name);
    return errno == EEXIST || errno == ENOTDIR || errno == ELOOP || errno == EISDIR
               ? err_recode(e, STATUS_INVALID_ARG)
               : err_recode(e, STATUS_INTERNAL);
}

/* Opens the directory `part` of dir_fd; makes it if it does not exist. Closes dir_fd. Returns -1
 * with errno. */
static int enter(int dir_fd, const char *part)
{
    int fd = -1;
    if (fault_hit())
        errno = EMFILE;
    else if (mkdirat(dir_fd, part, 0700) == 0 || errno == EEXIST)
        fd = openat(dir_fd, part, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    int why = errno;
    close(dir_fd);
    errno = why;
    return fd;
}

struct err *tree_write(const char *root, const char *name, const void *data, size_t len)
{
    if (!tree_name_ok(name))
        return err_new(STATUS_INVALID_ARG, "'%s' does not stay within its directory", name);
    int dir = fault_hit() ? (errno = EMFILE, -1) : open_root(root);
    if (dir < 0)
        return err_errno(errno, "opening '%s'", root);
    const char *part = name;
    for (const char *slash; (slash = strchr(part, '/')); part = slash + 1) {
        char component[TREE_MAX_PART + 1];
        size_t n = (size_t)(slash - part);
        memcpy(component, part, n);
        component[n] = '\0';
        dir = enter(dir, component);
        if (dir < 0)
            return tree_failed(name);
    }
    int fd = fault_hit()
                 ? (errno = ENOSPC, -1)
                 : openat(dir, part, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    struct err *e = fd < 0 ? tree_failed(name) : NULL;
    close(dir);
    if (e)
        return e;
    e = tree_write_all(fd, name, data, len);
    close(fd);
    return e;
}

/* Shares an open file or directory, and everything below it. Closes fd. Returns false with
 * errno. */
static bool share_open(int fd, gid_t group, unsigned depth)
{
    struct stat st;
    bool failed = fd >= 0 && fault_hit() && (errno = EPERM);
    bool shared = fd >= 0 && !failed && fstat(fd, &st) == 0 && fchown(fd, (uid_t)-1, group) == 0 &&
                  fchmod(fd, S_ISDIR(st.st_mode) ? 0750 : 0640) == 0;
    if (shared && S_ISDIR(st.st_mode) && depth <= TREE_MAX_DEPTH) {
        struct dir dir;
        dir_init(&dir, fd);
        for (const struct dirent64 *d; shared && (d = dir_next(&dir));)
            shared = share_open(openat(fd, d->d_name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC), group,
                                depth + 1);
    }
    int why = errno;
    if (fd >= 0)
        close(fd);
    errno = why;
    return shared;
}

struct err *tree_share(const char *root, uint32_t group)
{
    int fd = open_root(root);
    if (share_open(fd, group, 0))
        return NULL;
    return err_recode(err_errno(errno,
                                "giving the files of the load request in '%s' to group %u, which "
                                "needs the capability CAP_CHOWN",
                                root, group),
                      STATUS_UNSUPPORTED);
}

/* Removes the contents of a directory, and closes it. */
static void empty(int dir_fd, unsigned depth)
{
    DIR *dir = fdopendir(dir_fd);
    if (!dir) {
        close(dir_fd);
        return;
    }
    const struct dirent *d;
    while ((d = readdir(dir))) {
        if (strcmp(d->d_name, ".") == 0 || strcmp(d->d_name, "..") == 0)
            continue;
        if (unlinkat(dirfd(dir), d->d_name, 0) == 0 || depth > TREE_MAX_DEPTH * 4)
            continue;
        int below = openat(dirfd(dir), d->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (below >= 0)
            empty(below, depth + 1);
        unlinkat(dirfd(dir), d->d_name, AT_REMOVEDIR);
    }
    closedir(dir);
}

static void remove_root(const char *root)
{
    int fd = open_root(root);
    if (fd >= 0)
        empty(fd, 0);
    rmdir(root);
}

/* Takes a tree out of the list; root: which one, NULL = any. NULL if there is none. */
static struct tree *take_tree(const char *root)
{
    mutex_lock(&trees_lock);
    struct tree **at = &trees;
    while (*at && root && strcmp((*at)->root, root) != 0)
        at = &(*at)->next;
    struct tree *t = *at;
    if (t)
        *at = t->next;
    mutex_unlock(&trees_lock);
    return t;
}

static void free_tree(struct tree *t)
{
    if (!t)
        return;
    close(t->fd);
    mem_free(t->root);
    mem_free(t);
}

void tree_remove(const char *root)
{
    remove_root(root);
    free_tree(take_tree(root));
}

void tree_remove_all(void)
{
    struct tree *t;
    while ((t = take_tree(NULL))) {
        remove_root(t->root);
        free_tree(t);
    }
}

static void sweep_root(const char *root)
{
    struct stat st;
    int fd = open_root(root);
    if (fd >= 0 && fstat(fd, &st) == 0 && st.st_uid == geteuid() && lock_root(fd, root, false))
        remove_root(root);
    if (fd >= 0)
        close(fd);
}

/* True if tree_make may have made the name, with one of these prefixes. */
static bool tree_may_have_made(const char *name, const char *const *prefixes)
{
    for (; *prefixes; prefixes++) {
        size_t len = strlen(*prefixes);
        if (strlen(name) == len + 7 && strncmp(name, *prefixes, len) == 0 && name[len] == '-')
            return true;
    }
    return false;
}

void tree_sweep(const char *const *prefixes)
{
    DIR *dir = opendir(tree_base());
    const struct dirent *d;
    while (dir && (d = readdir(dir))) {
        if (!tree_may_have_made(d->d_name, prefixes))
            continue;
        struct strbuf root = STRBUF_INIT;
        strbuf_printf(&root, "%s/%s", tree_base(), d->d_name);
        sweep_root(strbuf_str(&root));
        strbuf_fini(&root);
    }
    if (dir)
        closedir(dir);
}
