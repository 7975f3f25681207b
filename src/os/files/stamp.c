#include "os/files/stamp.h"

#include "base/fault.h"
#include "os/files/dir.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_DEPTH 16u /* also ends links that go round */

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

static uint64_t of_all(int dir_fd, unsigned depth);

static uint64_t of_entry(int dir_fd, const char *name, unsigned depth)
{
    struct stat st;
    uint64_t h = stamp_mix(0xcbf29ce484222325u, name, strlen(name));
    if (name[0] == '.' || fstatat(dir_fd, name, &st, 0) != 0)
        return h;
    h = mix_number(h, (uint64_t)st.st_mode & S_IFMT);
    h = mix_number(h, (uint64_t)st.st_ino);
    if (!S_ISDIR(st.st_mode)) {
        h = mix_number(h, (uint64_t)st.st_size);
        h = mix_number(h, (uint64_t)st.st_mtim.tv_sec);
        return mix_number(h, (uint64_t)st.st_mtim.tv_nsec);
    }
    int below = depth < MAX_DEPTH ? openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    return below < 0 ? h : mix_number(h, of_all(below, depth + 1));
}

/* The sum over the entries, so that their order does not count. dir_fd is closed. */
static uint64_t of_all(int dir_fd, unsigned depth)
{
    uint64_t sum = 1;
    struct dir dir;
    dir_init(&dir, dir_fd);
    for (const struct dirent64 *d; (d = dir_next(&dir));)
        sum += of_entry(dir_fd, d->d_name, depth);
    close(dir_fd);
    return sum;
}

static struct err *open_directory(const char *path, int *ret_fd)
{
    int fd = fault_hit() ? (errno = EMFILE, -1) : open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return err_errno(errno, "looking at '%s'", path);
    *ret_fd = fd;
    return NULL;
}

struct err *stamp_directory(const char *path, uint64_t *ret)
{
    int fd;
    struct err *e = open_directory(path, &fd);
    if (!e)
        *ret = of_all(fd, 0);
    return e;
}

struct err *stamp_parts(const char *path, stamp_part_fn *part_of, void *owner)
{
    int fd;
    struct err *e = open_directory(path, &fd);
    if (e)
        return e;
    struct dir dir;
    dir_init(&dir, fd);
    for (const struct dirent64 *d; (d = dir_next(&dir));) {
        uint64_t *part = part_of(owner, d->d_name, dir_entry_is_dir(&dir, d));
        if (part)
            *part += of_entry(fd, d->d_name, 0);
    }
    close(fd);
    return NULL;
}
