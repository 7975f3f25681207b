#include "os/shm_named.h"

#include "base/fault.h"
#include "os/shm_guard.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#define LINE_BYTES 512 /* of the list of mappings, as far as it is read */

/* Without the slashes in front; NULL when that is no name. */
static const char *bare_name(const char *key)
{
    key += strspn(key, "/");
    size_t len = strlen(key);
    if (len == 0 || len > NAME_MAX || strchr(key, '/') || strcmp(key, ".") == 0 ||
        strcmp(key, "..") == 0)
        return NULL;
    return key;
}

int shm_named_open(const char *key, struct shm_named *ret)
{
    const char *name = bare_name(key);
    if (!name)
        return -1;
    /* A link is not followed, and a pipe of that name does not wait. */
    int fd = fault_hit() ? -1 : shm_open(name, O_RDWR | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC, 0);
    struct stat st;
    if (fd < 0)
        return -1;
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode) || st.st_size < 0) {
        close(fd);
        return -1;
    }
    *ret = (struct shm_named){(uint64_t)st.st_size, st.st_dev, st.st_ino};
    return fd;
}

struct err *shm_named_create(const char *key, uint64_t bytes, int *ret_fd)
{
    int fd = fault_hit() ? (errno = EMFILE, -1)
                         : shm_open(key, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, S_IRUSR | S_IWUSR);
    int number = fd < 0 ? errno : posix_fallocate(fd, 0, (off_t)(bytes ? bytes : 1));
    if (number == 0) {
        *ret_fd = fd;
        return NULL;
    }
    if (fd >= 0) {
        shm_unlink(key);
        close(fd);
    }
    return err_recode(err_errno(number, "making shared memory '%s'", key), STATUS_UNAVAILABLE);
}

void shm_named_remove(const char *key)
{
    shm_unlink(key);
}

/* A line of the list: "start-end rights offset major:minor inode path". */
static bool line_is_of(const char *line, const struct shm_named *m, uintptr_t *ret_start)
{
    char *at;
    *ret_start = strtoull(line, &at, 16);
    for (int fields = 0; fields < 3 && *at; fields++) {
        at += strcspn(at, " ");
        at += strspn(at, " ");
    }
    unsigned major = (unsigned)strtoul(at, &at, 16);
    unsigned minor = *at == ':' ? (unsigned)strtoul(at + 1, &at, 16) : 0;
    return makedev(major, minor) == m->device && strtoull(at, NULL, 10) == m->inode;
}

bool shm_named_is_ours(const struct shm_named *m)
{
    FILE *f = fopen("/proc/self/maps", "re");
    bool ours = !f; /* what cannot be known is refused */
    char line[LINE_BYTES];
    bool begun = false; /* a line that is longer than the buffer goes on */
    while (!ours && fgets(line, sizeof(line), f)) {
        uintptr_t start;
        if (!begun && line_is_of(line, m, &start))
            ours = !shm_guard_covers((const void *)start);
        begun = !strchr(line, '\n');
    }
    if (f)
        fclose(f);
    return ours;
}

void *shm_named_map(int fd, uint64_t offset, size_t bytes)
{
    if (fault_hit()) {
        errno = ENOMEM;
        return NULL;
    }
    void *p =
        mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, (off_t)offset);
    if (p == MAP_FAILED)
        return NULL;
    madvise(p, bytes, MADV_DONTDUMP);
    return p;
}
