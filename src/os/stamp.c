#include "os/stamp.h"

#include "base/fault.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_DEPTH 16u /* also ends links that go round */

static uint64_t mix(uint64_t h, const void *bytes, size_t len)
{
    const unsigned char *b = bytes;
    for (size_t i = 0; i < len; i++)
        h = (h ^ b[i]) * 0x100000001b3u;
    return h ^ (h >> 29);
}

static uint64_t mix_number(uint64_t h, uint64_t n)
{
    return mix(h, &n, sizeof(n));
}

static uint64_t of_directory(int dir_fd, bool (*skip)(const char *name), unsigned depth);

static uint64_t of_entry(int dir_fd, const char *name, unsigned depth)
{
    struct stat st;
    uint64_t h = mix(0xcbf29ce484222325u, name, strlen(name));
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
    return below < 0 ? h : mix_number(h, of_directory(below, NULL, depth + 1));
}

/* The sum over the entries, so that their order does not count. dir_fd is closed. */
static uint64_t of_directory(int dir_fd, bool (*skip)(const char *name), unsigned depth)
{
    DIR *dir = fdopendir(dir_fd);
    if (!dir) {
        close(dir_fd);
        return 0;
    }
    uint64_t sum = 1;
    const struct dirent *d;
    while ((d = readdir(dir))) {
        if (strcmp(d->d_name, ".") == 0 || strcmp(d->d_name, "..") == 0)
            continue;
        if (!skip || !skip(d->d_name))
            sum += of_entry(dirfd(dir), d->d_name, depth);
    }
    closedir(dir);
    return sum;
}

struct err *stamp_directory(const char *path, bool (*skip)(const char *name), uint64_t *ret)
{
    int fd = fault_hit() ? (errno = EMFILE, -1) : open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return err_errno(errno, "looking at '%s'", path);
    *ret = of_directory(fd, skip, 0);
    return NULL;
}
