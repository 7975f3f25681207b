/* Memory: blocks of devices behind addresses that cannot be touched, pinned memory, handles. */
#include "standin.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define ALIGN 512u

/* Block of device memory. Its address is reserved and can never be touched; its bytes lie in a
 * file without a name, which another process can open by a handle. */
struct standin_block {
    struct standin_block *next;
    struct standin_device *device;
    cuda_address address;
    size_t bytes;    /* as asked for */
    size_t reserved; /* of addresses, whole pages and one more that is never reached */
    uint8_t *shadow; /* the bytes */
    int file;
    int uses;        /* operations that are queued */
    unsigned opened; /* how often, by a handle; 0 = it was allocated here */
};

/* Pinned memory. */
struct pinned {
    struct pinned *next;
    void *p;
    size_t bytes;
};

/* What a handle says. */
struct handle {
    int pid;
    int file;
    int device;
    size_t bytes;
};

static struct standin_block *blocks;
static struct pinned *pinned;

static size_t whole_pages(size_t bytes)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    return (bytes + page - 1) / page * page;
}

static struct standin_block *map_block(struct standin_device *d, int file, size_t bytes)
{
    struct standin_block *b = calloc(1, sizeof(*b));
    *b = (struct standin_block){.device = d, .bytes = bytes, .file = file};
    b->reserved = whole_pages(bytes) + whole_pages(1);
    b->shadow = mmap(NULL, whole_pages(bytes), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    void *address =
        mmap(NULL, b->reserved, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (b->shadow == MAP_FAILED || address == MAP_FAILED)
        abort();
    b->address = (uintptr_t)address;
    b->next = blocks;
    blocks = b;
    return b;
}

/* The addresses stay reserved, so that no later block has them and a late use is noticed. */
static void unmap_block(struct standin_block *b)
{
    struct standin_block **at = &blocks;
    while (*at != b)
        at = &(*at)->next;
    *at = b->next;
    if (b->uses)
        standin_wrong(0, "memory of device %d is freed while an operation waits that uses it",
                      standin_device_id(b->device));
    munmap(b->shadow, whole_pages(b->bytes));
    close(b->file);
    free(b);
}

static struct standin_block *block_at(cuda_address a)
{
    for (struct standin_block *b = blocks; b; b = b->next)
        if (a >= b->address && a < b->address + b->reserved)
            return b;
    return NULL;
}

void *standin_resolve(cuda_address a, size_t bytes, struct standin_block **ret_block)
{
    struct standin_block *b = *ret_block = block_at(a);
    if (!b)
        return (void *)(uintptr_t)a;
    size_t offset = (size_t)(a - b->address);
    if (offset > b->bytes || bytes > b->bytes - offset) {
        standin_wrong(0, "%zu bytes at %zu of a block of %zu bytes", bytes, offset, b->bytes);
        return NULL;
    }
    return b->shadow + offset;
}

void standin_block_use(struct standin_block *b, int change)
{
    if (b)
        b->uses += change;
}

int cuMemGetInfo_v2(size_t *ret_free, size_t *ret_total)
{
    int rc = standin_begin(STANDIN_cuMemGetInfo_v2);
    if (rc)
        return rc;
    struct standin_device *d = standin_current(&rc);
    if (!d)
        return standin_end(rc);
    *ret_free = d->bytes - d->used;
    *ret_total = d->bytes;
    return standin_end(CUDA_SUCCESS);
}

int cuMemAlloc_v2(cuda_address *ret, size_t bytes)
{
    int rc = standin_begin(STANDIN_cuMemAlloc_v2);
    if (rc)
        return rc;
    rc = standin_recording();
    if (rc)
        return standin_end(rc);
    struct standin_device *d = standin_current(&rc);
    if (!d || !bytes)
        return standin_end(d ? CUDA_ERROR_INVALID_VALUE : rc);
    if (bytes > d->bytes - d->used)
        return standin_end(CUDA_ERROR_OUT_OF_MEMORY);
    int file = memfd_create("stand-in", MFD_CLOEXEC);
    if (file < 0 || ftruncate(file, (off_t)whole_pages(bytes)) != 0)
        abort();
    struct standin_block *b = map_block(d, file, bytes);
    memset(b->shadow, 0xa5, bytes);
    d->used += bytes;
    standin_live(STANDIN_MEMORY, 1);
    *ret = b->address;
    return standin_end(CUDA_SUCCESS);
}

int cuMemFree_v2(cuda_address a)
{
    int rc = standin_begin(STANDIN_cuMemFree_v2);
    if (rc)
        return rc;
    rc = standin_recording();
    if (rc)
        return standin_end(rc);
    struct standin_device *d = standin_current(&rc);
    struct standin_block *b = block_at(a);
    if (!d)
        return standin_end(rc);
    if (!b || b->address != a || b->opened)
        return standin_end(
            standin_wrong(CUDA_ERROR_INVALID_VALUE,
                          "memory is freed that was not allocated, or was freed before"));
    b->device->used -= b->bytes;
    unmap_block(b);
    standin_live(STANDIN_MEMORY, -1);
    return standin_end(CUDA_SUCCESS);
}

int cuMemGetAddressRange_v2(cuda_address *ret_base, size_t *ret_bytes, cuda_address a)
{
    int rc = standin_begin(STANDIN_cuMemGetAddressRange_v2);
    if (rc)
        return rc;
    struct standin_block *b = block_at(a);
    if (b) {
        *ret_base = b->address;
        *ret_bytes = b->bytes;
    }
    return standin_end(b ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
}

int cuMemHostAlloc(void **ret, size_t bytes, unsigned flags)
{
    int rc = standin_begin(STANDIN_cuMemHostAlloc);
    if (rc)
        return rc;
    rc = standin_recording();
    if (rc)
        return standin_end(rc);
    (void)flags;
    if (!standin_current(&rc) || !bytes)
        return standin_end(rc ? rc : CUDA_ERROR_INVALID_VALUE);
    struct pinned *p = calloc(1, sizeof(*p));
    p->bytes = whole_pages(bytes);
    p->p = mmap(NULL, p->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p->p == MAP_FAILED)
        abort();
    p->next = pinned;
    pinned = p;
    standin_live(STANDIN_HOST, 1);
    *ret = p->p;
    return standin_end(CUDA_SUCCESS);
}

int cuMemFreeHost(void *p)
{
    int rc = standin_begin(STANDIN_cuMemFreeHost);
    if (rc)
        return rc;
    rc = standin_recording();
    if (rc)
        return standin_end(rc);
    struct pinned **at = &pinned;
    while (*at && (*at)->p != p)
        at = &(*at)->next;
    if (!*at)
        return standin_end(standin_wrong(CUDA_ERROR_INVALID_VALUE,
                                         "pinned memory is freed that was not allocated"));
    struct pinned *found = *at;
    *at = found->next;
    munmap(found->p, found->bytes);
    free(found);
    standin_live(STANDIN_HOST, -1);
    return standin_end(CUDA_SUCCESS);
}

int cuIpcGetMemHandle(struct cuda_ipc_handle *ret, cuda_address a)
{
    int rc = standin_begin(STANDIN_cuIpcGetMemHandle);
    if (rc)
        return rc;
    struct standin_block *b = block_at(a);
    if (!b || b->opened)
        return standin_end(CUDA_ERROR_INVALID_VALUE);
    struct handle h = {getpid(), b->file, standin_device_id(b->device), b->bytes};
    memset(ret, 0, sizeof(*ret));
    memcpy(ret->bytes, &h, sizeof(h));
    return standin_end(CUDA_SUCCESS);
}

/* The file of another process's memory; -1 = there is none, or the handle is none. */
static int open_file(const struct handle *h)
{
    char path[64];
    snprintf(path, sizeof(path), "/proc/%d/fd/%d", h->pid, h->file);
    int file = h->pid > 0 && h->bytes ? open(path, O_RDWR | O_CLOEXEC) : -1;
    if (file >= 0 && lseek(file, 0, SEEK_END) != (off_t)whole_pages(h->bytes)) {
        close(file);
        return -1;
    }
    return file;
}

/* The block that was opened of this file; NULL if none was. */
static struct standin_block *opened_of(int file)
{
    struct stat wanted, known;
    if (fstat(file, &wanted) != 0)
        abort();
    for (struct standin_block *b = blocks; b; b = b->next)
        if (b->opened && fstat(b->file, &known) == 0 && known.st_dev == wanted.st_dev &&
            known.st_ino == wanted.st_ino)
            return b;
    return NULL;
}

/* As in CUDA, a process cannot open what is its own; what it opens again has the address that it
 * had, and stays until it was closed as often. */
int cuIpcOpenMemHandle_v2(cuda_address *ret, struct cuda_ipc_handle wanted, unsigned flags)
{
    int rc = standin_begin(STANDIN_cuIpcOpenMemHandle_v2);
    if (rc)
        return rc;
    struct standin_device *current = standin_current(&rc);
    if (!current)
        return standin_end(rc);
    struct handle h;
    memcpy(&h, wanted.bytes, sizeof(h));
    if (h.pid == getpid())
        return standin_end(CUDA_ERROR_INVALID_CONTEXT);
    bool fits = standin_device(h.device) == current && flags == CUDA_IPC_LAZY_PEER_ACCESS;
    int file = fits ? open_file(&h) : -1;
    if (file < 0)
        return standin_end(CUDA_ERROR_INVALID_VALUE);
    struct standin_block *b = opened_of(file);
    if (b)
        close(file);
    else
        b = map_block(current, file, h.bytes);
    b->opened++;
    standin_live(STANDIN_IPC, 1);
    *ret = b->address;
    return standin_end(CUDA_SUCCESS);
}

int cuIpcCloseMemHandle(cuda_address a)
{
    int rc = standin_begin(STANDIN_cuIpcCloseMemHandle);
    if (rc)
        return rc;
    if (!standin_current(&rc))
        return standin_end(rc);
    struct standin_block *b = block_at(a);
    if (!b || b->address != a || !b->opened)
        return standin_end(standin_wrong(CUDA_ERROR_INVALID_VALUE,
                                         "a handle's memory is closed that is not open"));
    if (--b->opened == 0)
        unmap_block(b);
    standin_live(STANDIN_IPC, -1);
    return standin_end(CUDA_SUCCESS);
}
