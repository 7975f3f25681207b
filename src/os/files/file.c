#include "os/files/file.h"

#include "base/fault.h"
#include "base/mem.h"
#include "os/files/dir.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct err *file_read_fd(int fd, const char *path, size_t max, char **ret, size_t *ret_len)
{
    struct stat st;
    if (fstat(fd, &st) != 0)
        return err_errno(errno, "reading '%s'", path);
    if (!S_ISREG(st.st_mode))
        return err_new(STATUS_INVALID_ARG, "'%s' is not a regular file", path);
    if ((uint64_t)st.st_size > max)
        return err_new(STATUS_INVALID_ARG, "'%s' has %lld bytes; at most %zu are read", path,
                       (long long)st.st_size, max);
    size_t size = (size_t)st.st_size;
    char *text = mem_try_alloc(size + 1, 8);
    if (!text)
        return err_new(STATUS_UNAVAILABLE, "no memory to read '%s' (%zu bytes)", path, size);
    size_t got = 0;
    while (got < size) {
        ssize_t n = fault_hit() ? (errno = EIO, -1) : read(fd, text + got, size - got);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0) {
            struct err *e = err_errno(errno, "reading '%s'", path);
            mem_free(text);
            return e;
        }
        if (n == 0)
            break;
        got += (size_t)n;
    }
    text[got] = '\0';
    *ret = text;
    *ret_len = got;
    return NULL;
}

struct err *file_read(const char *path, size_t max, char **ret, size_t *ret_len)
{
    int fd = fault_hit() ? (errno = EMFILE, -1) : open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return err_errno(errno, "opening '%s'", path);
    struct err *e = file_read_fd(fd, path, max, ret, ret_len);
    close(fd);
    return e;
}

static int file_by_name(const void *a, const void *b)
{
    return strcmp(((const struct file_entry *)a)->name, ((const struct file_entry *)b)->name);
}

struct err *file_list_dir(const char *path, size_t max, struct file_list *ret)
{
    int fd = fault_hit() ? (errno = EMFILE, -1) : open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return err_errno(errno, "listing '%s'", path);
    struct dir dir;
    struct file_list l = {0};
    size_t cap = 0;
    const struct dirent64 *d;
    struct err *e = NULL;
    dir_init(&dir, fd);
    while (!e && (d = dir_next(&dir))) {
        if (d->d_name[0] == '.')
            continue;
        if (l.count == max) {
            e = err_new(STATUS_INVALID_ARG, "'%s' has more than %zu entries", path, max);
            break;
        }
        if (l.count == cap) {
            cap = cap ? cap * 2 : 16;
            l.entries = mem_realloc(l.entries, cap * sizeof(*l.entries));
        }
        l.entries[l.count++] =
            (struct file_entry){mem_strdup(d->d_name), dir_entry_is_dir(&dir, d)};
    }
    close(fd);
    if (e) {
        file_list_fini(&l);
        return e;
    }
    if (l.count)
        qsort(l.entries, l.count, sizeof(*l.entries), file_by_name);
    *ret = l;
    return NULL;
}

void file_list_fini(struct file_list *l)
{
    for (size_t i = 0; i < l->count; i++)
        mem_free(l->entries[i].name);
    mem_free(l->entries);
    *l = (struct file_list){0};
}

bool file_exists(const char *path)
{
    return access(path, F_OK) == 0;
}

bool file_is_dir(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

char *file_join(const char *a, const char *b)
{
    size_t a_len = strlen(a);
    size_t b_len = strlen(b);
    while (a_len > 1 && a[a_len - 1] == '/')
        a_len--;
    char *joined = mem_alloc(a_len + b_len + 2);
    memcpy(joined, a, a_len);
    joined[a_len] = '/';
    memcpy(joined + a_len + 1, b, b_len + 1);
    return joined;
}

char *file_absolute(const char *path)
{
    char resolved[PATH_MAX];
    return mem_strdup(realpath(path, resolved) ? resolved : path);
}

bool file_is_pipe(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISFIFO(st.st_mode);
}

struct err *file_append(const char *path, int *ret_fd)
{
    static const int flags = O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NONBLOCK;
    int fd = fault_hit() ? (errno = EMFILE, -1) : open(path, flags, 0644);
    if (fd < 0 && errno == ENXIO && file_is_pipe(path))
        return err_new(STATUS_INVALID_ARG,
                       "opening '%s': expected a reader of this named pipe, found none: start the "
                       "reader first",
                       path);
    if (fd < 0)
        return err_errno(errno, "opening '%s'", path);
    *ret_fd = fd;
    return NULL;
}

/* True if a file can be made in a directory: one without a name or, where the file system has no
 * such, one that goes at once. */
static bool may_make_file(const char *directory)
{
    int fd = open(directory, O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
    if (fd < 0 && (errno == EOPNOTSUPP || errno == EISDIR)) {
        char *path = file_join(directory, ".nereid-XXXXXX");
        fd = mkostemp(path, O_CLOEXEC);
        if (fd >= 0)
            unlink(path);
        mem_free(path);
    }
    if (fd >= 0)
        close(fd);
    return fd >= 0;
}

/* True if a file that is there can be opened. A pipe is not tried: the end would end its reader. */
static bool may_append(const char *path)
{
    if (file_is_pipe(path))
        return access(path, W_OK) == 0;
    int fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (fd >= 0)
        close(fd);
    return fd >= 0;
}

struct err *file_append_look(const char *path)
{
    bool there = access(path, F_OK) == 0;
    if (!there && errno != ENOENT)
        return err_errno(errno, "opening '%s'", path);
    char *directory = mem_strdup(path);
    char *slash = strrchr(directory, '/');
    if (slash)
        slash[slash == directory] = '\0';
    bool ok = there ? may_append(path) : may_make_file(slash ? directory : ".");
    struct err *e = ok ? NULL : err_errno(errno, "opening '%s'", path);
    mem_free(directory);
    return e;
}

struct err *file_append_anew(const char *path, int fd)
{
    int fresh;
    struct err *e = file_append(path, &fresh);
    if (e)
        return e;
    if (dup3(fresh, fd, O_CLOEXEC) < 0)
        e = err_errno(errno, "opening '%s' anew", path);
    close(fresh);
    return e;
}
