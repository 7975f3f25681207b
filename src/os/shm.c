#include "os/shm.h"

#include "base/fault.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

struct err *shm_create(const char *name, size_t bytes, int *ret_fd)
{
    int fd =
        fault_hit() ? (errno = EMFILE, -1) : memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd >= 0 && ftruncate(fd, (off_t)bytes) == 0 && fcntl(fd, F_ADD_SEALS, SEALS) == 0) {
        *ret_fd = fd;
        return NULL;
    }
    struct err *e = err_errno(errno, "making %zu bytes of shared memory", bytes);
    if (fd >= 0)
        close(fd);
    return err_recode(e, STATUS_UNAVAILABLE);
}

bool shm_sealed(int fd, size_t bytes)
{
    struct stat st;
    return (fcntl(fd, F_GET_SEALS) & SEALS) == SEALS && fstat(fd, &st) == 0 &&
           (size_t)st.st_size >= bytes;
}

void *shm_map(int fd, size_t bytes)
{
    void *p = fault_hit()
                  ? MAP_FAILED
                  : mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
    if (p == MAP_FAILED)
        return NULL;
    madvise(p, bytes, MADV_HUGEPAGE); /* if the system allows it for shared memory */
    madvise(p, bytes, MADV_DONTDUMP);
    return p;
}

void shm_unmap(void *p, size_t bytes)
{
    if (p)
        munmap(p, bytes);
}

void shm_forget(int fd, size_t offset, size_t bytes)
{
    (void)fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)offset, (off_t)bytes);
}

void shm_close(int fd)
{
    if (fd >= 0)
        close(fd);
}
