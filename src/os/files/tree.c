#include "os/files/tree.h"

#include "base/fault.h"
#include "base/mem.h"
#include "base/strbuf.h"
#include "os/files/dir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_COMPONENT 255u

bool tree_name_ok(const char *name)
{
    unsigned depth = 0;
    for (;;) {
        size_t len = strcspn(name, "/");
        bool dots = (len == 1 && name[0] == '.') || (len == 2 && name[0] == '.' && name[1] == '.');
        if (len == 0 || len > MAX_COMPONENT || dots || ++depth > TREE_MAX_DEPTH)
            return false;
        if (name[len] == '\0')
            return true;
        name += len + 1;
    }
}

struct err *tree_make(const char *prefix, char **ret)
{
    const char *base = getenv("TMPDIR");
    struct strbuf path = STRBUF_INIT;
    strbuf_printf(&path, "%s/%s-XXXXXX", base && *base == '/' ? base : "/tmp", prefix);
    char *made = strbuf_take(&path);
    if (fault_hit() ? (errno = ENOSPC, true) : !mkdtemp(made)) {
        struct err *e = err_errno(errno, "making the directory '%s'", made);
        mem_free(made);
        return err_recode(e, STATUS_INTERNAL);
    }
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
    int dir = fault_hit() ? (errno = EMFILE, -1)
                          : open(root, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (dir < 0)
        return err_errno(errno, "opening '%s'", root);
    const char *part = name;
    for (const char *slash; (slash = strchr(part, '/')); part = slash + 1) {
        char component[MAX_COMPONENT + 1];
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
    int fd = open(root, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
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

void tree_remove(const char *root)
{
    int fd = open(root, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd >= 0)
        empty(fd, 0);
    rmdir(root);
}
