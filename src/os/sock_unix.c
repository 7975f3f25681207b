#include "os/sock_unix.h"

#include "base/fault.h"
#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define BACKLOG 4096

_Static_assert(sizeof(((struct sockaddr_un *)0)->sun_path) == SOCK_UNIX_PATH_BYTES + 1,
               "the longest path and its end");

struct sock_unix_file {
    dev_t dev;
    ino_t ino;
    char path[SOCK_UNIX_PATH_BYTES + 1];
};

const char *sock_unix_path(const char *address)
{
    return strncmp(address, "unix:", 5) == 0 ? address + 5 : NULL;
}

bool sock_unix_path_ok(const char *path)
{
    return *path && strlen(path) <= SOCK_UNIX_PATH_BYTES;
}

static struct sockaddr_un address_of(const char *path)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    memcpy(to.sun_path, path, strlen(path) + 1);
    return to;
}

static int sock_unix_new_socket(void)
{
    return fault_hit() ? (errno = EMFILE, -1)
                       : socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
}

/* True if nobody listens there any more. Only a refused connection proves that. */
static bool is_stale(const struct sockaddr_un *at)
{
    int fd = sock_unix_new_socket();
    if (fd < 0)
        return false;
    bool refused =
        connect(fd, (const struct sockaddr *)at, sizeof(*at)) != 0 && errno == ECONNREFUSED;
    close(fd);
    return refused;
}

static struct err *not_a_socket(const char *path)
{
    return err_new(STATUS_INVALID_ARG,
                   "cannot listen on unix:%s: something lies there that is no socket", path);
}

static struct err *cannot_listen(const char *path)
{
    return err_recode(err_errno(errno, "cannot listen on unix:%s", path), STATUS_UNAVAILABLE);
}

static struct err *no_path(const char *path)
{
    return err_new(STATUS_INVALID_ARG, "cannot listen on unix:%s: expected a path of 1 to %d bytes",
                   path, SOCK_UNIX_PATH_BYTES);
}

/* Removes the socket file of a dead server, so that bind succeeds. */
static struct err *make_way(const struct sockaddr_un *at)
{
    struct stat before, now;
    if (lstat(at->sun_path, &before) != 0)
        return NULL; /* bind reports the problem, if there is one */
    if (!S_ISSOCK(before.st_mode))
        return not_a_socket(at->sun_path);
    if (is_stale(at) && lstat(at->sun_path, &now) == 0 && now.st_dev == before.st_dev &&
        now.st_ino == before.st_ino)
        unlink(at->sun_path);
    return NULL;
}

static struct err *listen_at(const struct sockaddr_un *at, int *ret_fd)
{
    struct err *e = make_way(at);
    if (e)
        return e;
    int fd = sock_unix_new_socket();
    if (fd >= 0 && bind(fd, (const struct sockaddr *)at, sizeof(*at)) == 0 &&
        listen(fd, BACKLOG) == 0) {
        *ret_fd = fd;
        return NULL;
    }
    e = cannot_listen(at->sun_path);
    if (fd >= 0)
        close(fd);
    return e;
}

/* Takes the lock of a path: a file that lies beside it while a server looks at what is there and
 * takes its place. Returns -1 with EADDRINUSE if another server does so, -1 with another number
 * where no such file can be made. Where files have no locks all take it. */
static int sock_unix_lock(const char *lock)
{
    struct stat st;
    int fd = open(lock, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return -1;
    bool taken = flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
    if (!taken && fstat(fd, &st) == 0 && st.st_nlink)
        return fd;
    close(fd);
    errno = EADDRINUSE;
    return -1;
}

struct err *sock_unix_listen(const char *path, int *ret_fd)
{
    if (!sock_unix_path_ok(path))
        return no_path(path);
    struct sockaddr_un at = address_of(path);
    char beside[SOCK_UNIX_PATH_BYTES + sizeof(".lock")];
    snprintf(beside, sizeof(beside), "%s.lock", path);
    int lock = sock_unix_lock(beside);
    if (lock < 0 && errno == EADDRINUSE)
        return cannot_listen(path);
    struct err *e = listen_at(&at, ret_fd);
    if (lock >= 0) {
        unlink(beside);
        close(lock);
    }
    return e;
}

struct err *sock_unix_look(const char *path)
{
    if (!sock_unix_path_ok(path))
        return no_path(path);
    struct sockaddr_un at = address_of(path);
    struct stat st;
    if (lstat(path, &st) == 0) {
        if (!S_ISSOCK(st.st_mode))
            return not_a_socket(path);
        errno = EADDRINUSE;
        return is_stale(&at) ? NULL : cannot_listen(path);
    }
    char directory[SOCK_UNIX_PATH_BYTES + 1];
    memcpy(directory, path, strlen(path) + 1);
    char *slash = strrchr(directory, '/');
    if (slash)
        slash[slash == directory] = '\0';
    bool made = access(slash ? directory : ".", W_OK | X_OK) == 0;
    return made ? NULL : cannot_listen(path);
}

struct sock_unix_file *sock_unix_file(int listen_fd)
{
    struct sockaddr_un at = {0};
    socklen_t len = sizeof(at);
    struct stat st;
    if (getsockname(listen_fd, (struct sockaddr *)&at, &len) != 0 || at.sun_family != AF_UNIX ||
        lstat(at.sun_path, &st) != 0)
        return NULL;
    struct sock_unix_file *f = MEM_NEW(struct sock_unix_file);
    f->dev = st.st_dev;
    f->ino = st.st_ino;
    memcpy(f->path, at.sun_path, sizeof(f->path));
    return f;
}

void sock_unix_remove(struct sock_unix_file *f)
{
    struct stat st;
    if (f && lstat(f->path, &st) == 0 && st.st_dev == f->dev && st.st_ino == f->ino)
        unlink(f->path);
    mem_free(f);
}

struct err *sock_unix_connect(const char *path, int *ret_fd)
{
    if (!sock_unix_path_ok(path))
        return err_new(STATUS_INVALID_ARG, "expected a path of at most %d bytes, found '%s'",
                       SOCK_UNIX_PATH_BYTES, path);
    struct sockaddr_un at = address_of(path);
    int fd = sock_unix_new_socket();
    if (fd >= 0 && connect(fd, (struct sockaddr *)&at, sizeof(at)) == 0) {
        *ret_fd = fd;
        return NULL;
    }
    int number = errno;
    struct err *e = err_recode(err_errno(number, "cannot connect to unix:%s", path),
                               number == EMFILE ? STATUS_INTERNAL : STATUS_UNAVAILABLE);
    if (fd >= 0)
        close(fd);
    return e;
}
