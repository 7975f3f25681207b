#include "os/files/beneath.h"

#include "base/fault.h"
#include "base/strbuf.h"
#include "os/files/file.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define FLAGS     (O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)
#define MAX_DEPTH 64u

/* Opens the file by a walk of the kernel's, so that moving directories meanwhile cannot trick
 * it. Returns -1 with errno. */
static int open_by_kernel(int dir, const char *name)
{
    struct open_how how = {.flags = FLAGS, .resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS};
    long fd;
    do
        fd = syscall(SYS_openat2, dir, name, &how, sizeof(how));
    while (fd < 0 && (errno == EINTR || errno == EAGAIN));
    return (int)fd;
}

int beneath_open_by_steps(int dir, const char *name)
{
    int at = dup(dir);
    for (unsigned depth = 0; at >= 0; depth++) {
        char part[256];
        size_t len = strcspn(name, "/");
        bool climbs = len == 2 && memcmp(name, "..", 2) == 0;
        if (len == 0 || len >= sizeof(part) || climbs || depth == MAX_DEPTH) {
            close(at);
            errno = EXDEV;
            return -1;
        }
        memcpy(part, name, len);
        part[len] = '\0';
        bool last = name[len] == '\0';
        int next = openat(at, part, FLAGS | O_NOFOLLOW | (last ? 0 : O_DIRECTORY));
        int why = errno;
        close(at);
        errno = why;
        if (last || next < 0)
            return next;
        at = next;
        name += len + 1;
    }
    return -1;
}

static int open_beneath(int dir, const char *name)
{
    int fd = open_by_kernel(dir, name);
    if (fd < 0 && (errno == ENOSYS || errno == EPERM))
        fd = beneath_open_by_steps(dir, name);
    return fd;
}

/* Opens a file of any kind below a directory. */
static struct err *open_file(const char *dir, const char *name, const char *path, int *ret_fd)
{
    int root = fault_hit() ? (errno = EMFILE, -1) : open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (root < 0)
        return err_errno(errno, "opening '%s'", dir);
    int fd = fault_hit() ? (errno = EMFILE, -1) : open_beneath(root, name);
    int why = errno;
    close(root);
    if (fd >= 0) {
        *ret_fd = fd;
        return NULL;
    }
    if (why == EXDEV || why == ELOOP)
        return err_new(STATUS_INVALID_ARG,
                       "'%s' leads out of '%s', or round in circles; expected a file in it", name,
                       dir);
    if (why == ENXIO || why == ENODEV) /* a socket, or a device without a driver */
        return err_new(STATUS_INVALID_ARG, "'%s' is not a regular file", path);
    return err_errno(why, "opening '%s'", path);
}

struct err *beneath_read(const char *dir, const char *name, size_t max, char **ret, size_t *ret_len)
{
    struct strbuf path = STRBUF_INIT;
    int fd;
    strbuf_printf(&path, "%s/%s", dir, name);
    struct err *e = open_file(dir, name, strbuf_str(&path), &fd);
    if (!e) {
        e = file_read_fd(fd, strbuf_str(&path), max, ret, ret_len);
        close(fd);
    }
    strbuf_fini(&path);
    return e;
}

struct err *beneath_check(const char *dir, const char *name)
{
    struct strbuf path = STRBUF_INIT;
    struct stat st;
    int fd;
    strbuf_printf(&path, "%s/%s", dir, name);
    struct err *e = open_file(dir, name, strbuf_str(&path), &fd);
    if (!e) {
        if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode))
            e = err_new(STATUS_INVALID_ARG, "'%s' is not a regular file", strbuf_str(&path));
        close(fd);
    }
    strbuf_fini(&path);
    return e;
}
