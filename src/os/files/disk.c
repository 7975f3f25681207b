#include "os/files/disk.h"

#include "base/fault.h"
#include "base/mem.h"
#include "base/strbuf.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define COPY_BYTES ((size_t)1 << 20)

static int open_at(const char *path, int flags)
{
    if (fault_hit()) {
        errno = EMFILE;
        return -1;
    }
    return open(path, flags | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
}

struct err *disk_make_dirs(const char *path)
{
    char *copy = mem_strdup(path);
    struct err *e = NULL;
    for (char *at = copy + 1; !e; at++) {
        if (*at && *at != '/')
            continue;
        bool last = !*at;
        *at = '\0';
        if (fault_hit() ? (errno = ENOSPC, true) : mkdir(copy, 0700) != 0 && errno != EEXIST)
            e = err_errno(errno, "making the directory '%s'", copy);
        if (last)
            break;
        *at = '/';
    }
    mem_free(copy);
    struct stat st;
    if (!e && stat(path, &st) != 0)
        e = err_errno(errno, "looking at the directory '%s'", path);
    if (!e && (!S_ISDIR(st.st_mode) || st.st_uid != geteuid()))
        e = err_new(STATUS_INVALID_ARG, "'%s' is not a directory of this user", path);
    return e;
}

struct err *disk_make_unique(const char *below, char **ret)
{
    struct strbuf path = STRBUF_INIT;
    strbuf_printf(&path, "%s/XXXXXX", below);
    char *made = strbuf_take(&path);
    if (fault_hit() ? (errno = ENOSPC, true) : !mkdtemp(made)) {
        struct err *e = err_errno(errno, "making a directory in '%s'", below);
        mem_free(made);
        return e;
    }
    *ret = made;
    return NULL;
}

/* Opens and locks a file. It may have been removed between the two, so this is repeated. */
static struct err *open_locked(const char *path, bool wait, int *ret_fd)
{
    *ret_fd = -1;
    for (;;) {
        struct stat named;
        struct stat locked;
        int fd = open_at(path, O_RDWR | O_CREAT);
        if (fd < 0)
            return err_errno(errno, "opening '%s'", path);
        while (flock(fd, wait ? LOCK_EX : LOCK_EX | LOCK_NB) != 0) {
            if (errno == EINTR)
                continue;
            int why = errno;
            close(fd);
            return why == EWOULDBLOCK ? NULL : err_errno(why, "locking '%s'", path);
        }
        if (fstat(fd, &locked) == 0 && lstat(path, &named) == 0 && named.st_ino == locked.st_ino) {
            if (!S_ISREG(locked.st_mode)) {
                close(fd);
                return err_new(STATUS_INVALID_ARG, "'%s' is not a regular file", path);
            }
            *ret_fd = fd;
            return NULL;
        }
        close(fd);
    }
}

struct err *disk_lock(const char *path, bool wait, int *ret_fd)
{
    return open_locked(path, wait, ret_fd);
}

void disk_unlock(int fd)
{
    if (fd >= 0)
        close(fd);
}

struct err *disk_write(const char *path, const void *data, size_t len)
{
    struct strbuf other = STRBUF_INIT;
    strbuf_printf(&other, "%s.XXXXXX", path);
    char *name = strbuf_take(&other);
    int fd = fault_hit() ? (errno = ENOSPC, -1) : mkostemp(name, O_CLOEXEC);
    struct err *e = NULL;
    if (fd < 0) {
        e = err_errno(errno, "making '%s'", name);
    } else {
        e = disk_write_at(fd, data, len, 0);
        close(fd);
        if (!e)
            e = disk_rename(name, path);
        if (e)
            unlink(name);
    }
    mem_free(name);
    return e;
}

void disk_remove(const char *path)
{
    unlink(path);
}

struct err *disk_rename(const char *from, const char *to)
{
    if (fault_hit() ? (errno = ENOSPC, true) : rename(from, to) != 0)
        return err_errno(errno, "renaming '%s' to '%s'", from, to);
    return NULL;
}

static struct err *disk_copy_file(const char *from, const char *to)
{
    int in;
    struct err *e = disk_open_read(from, &in);
    if (e)
        return e;
    int out = open_at(to, O_WRONLY | O_CREAT | O_EXCL);
    char *piece = out < 0 ? NULL : mem_alloc(COPY_BYTES);
    if (out < 0)
        e = err_errno(errno, "making '%s'", to);
    size_t n = 1;
    for (uint64_t at = 0; !e && n; at += n) {
        e = disk_read_at(in, piece, COPY_BYTES, at, &n);
        if (!e && n)
            e = disk_write_at(out, piece, n, at);
    }
    mem_free(piece);
    disk_close(in);
    disk_close(out);
    if (e && out >= 0)
        unlink(to);
    return e;
}

static bool disk_is_file(const char *path)
{
    struct stat st;
    return lstat(path, &st) == 0 && S_ISREG(st.st_mode);
}

struct err *disk_link(const char *from, const char *to)
{
    if (link(from, to) == 0)
        return NULL;
    if (errno == ENOENT)
        return err_errno(errno, "linking '%s' to '%s'", from, to);
    return errno == EEXIST && disk_is_file(to) ? NULL : disk_copy_file(from, to);
}

struct err *disk_open_part(const char *path, int *ret_fd)
{
    return open_locked(path, false, ret_fd);
}

void disk_close(int fd)
{
    if (fd >= 0)
        close(fd);
}

uint64_t disk_size(int fd)
{
    struct stat st;
    return fstat(fd, &st) == 0 ? (uint64_t)st.st_size : 0;
}

struct err *disk_set_size(int fd, uint64_t bytes)
{
    if (fault_hit() ? (errno = ENOSPC, true) : ftruncate(fd, (off_t)bytes) != 0)
        return err_errno(errno, "setting the size of a file to %llu", (unsigned long long)bytes);
    return NULL;
}

struct err *disk_write_at(int fd, const void *data, size_t len, uint64_t at)
{
    const char *from = data;
    while (len) {
        ssize_t n = fault_hit() ? (errno = ENOSPC, -1) : pwrite(fd, from, len, (off_t)at);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return err_errno(errno, "writing a file");
        from += n;
        at += (uint64_t)n;
        len -= (size_t)n;
    }
    return NULL;
}

struct err *disk_read_at(int fd, void *data, size_t len, uint64_t at, size_t *ret_len)
{
    char *to = data;
    size_t got = 0;
    while (got < len) {
        ssize_t n =
            fault_hit() ? (errno = EIO, -1) : pread(fd, to + got, len - got, (off_t)(at + got));
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return err_errno(errno, "reading a file");
        if (n == 0)
            break;
        got += (size_t)n;
    }
    *ret_len = got;
    return NULL;
}

struct err *disk_sync(int fd)
{
    if (fdatasync(fd) != 0)
        return err_errno(errno, "writing a file to its disk");
    return NULL;
}

struct err *disk_hide(int fd)
{
    struct stat st;
    bool known = fstat(fd, &st) == 0;
    if (known && (st.st_uid != geteuid() || !(st.st_mode & 077)))
        return NULL;
    if (fault_hit() ? (errno = EIO, true) : !known || fchmod(fd, 0600) != 0)
        return err_errno(errno, "keeping a file from other users");
    return NULL;
}

void disk_seal(int fd)
{
    (void)!fchmod(fd, 0400);
}

struct err *disk_open_read(const char *path, int *ret_fd)
{
    *ret_fd = open_at(path, O_RDONLY);
    return *ret_fd < 0 ? err_errno(errno, "opening '%s'", path) : NULL;
}

void disk_use(const char *path)
{
    const struct timespec times[2] = {{.tv_nsec = UTIME_NOW}, {.tv_nsec = UTIME_OMIT}};
    utimensat(AT_FDCWD, path, times, AT_SYMLINK_NOFOLLOW);
}

bool disk_look(const char *path, struct disk_age *ret)
{
    struct stat st;
    if (lstat(path, &st) != 0)
        return false;
    *ret = (struct disk_age){
        .bytes = (uint64_t)st.st_size,
        .links = (uint64_t)st.st_nlink,
        .used_ns = (uint64_t)st.st_atim.tv_sec * 1000000000u + (uint64_t)st.st_atim.tv_nsec,
    };
    return true;
}
