#pragma once
/* One region of shared memory that a client made: memory of the system that the server has mapped,
 * or memory of a GPU that it has opened. That ends with the last reference. What is in it can
 * change at any time; memory of the system can be cut short as well: os/shm_guard.h. */
#include "base/err.h"
#include "base/list.h"
#include "os/crew.h"
#include "os/shm_named.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cuda_ipc_handle;

/* The longest name of a region, and the longest key. */
#define REGION_MAX_NAME 1024u

enum region_kind { REGION_SYSTEM, REGION_CUDA };

/* Why memory is not there that was. */
enum region_lost { REGION_LOST_UNKNOWN, REGION_LOST_CUT, REGION_LOST_NO_ROOM };

struct region {
    enum region_kind kind;
    char *name; /* as the client calls it */
    uint64_t byte_size;
    uint8_t *base;  /* of a GPU: nobody but CUDA can touch it */
    int64_t device; /* the GPU; 0 of memory of the system */
    /* of memory of the system alone */
    struct list node;        /* among those of the process */
    struct shm_named memory; /* as it was when it was opened */
    char *key;               /* of the memory that it lies in, as the client gave it */
    uint64_t offset;
    int guard;         /* see shm_guard_add */
    atomic_int lost;   /* enum region_lost, as region_check found it first */
    atomic_uint refs;  /* the last one acquires what every other holder released */
    atomic_uint users; /* requests that are not answered yet; guarded by the lock of the names */
    /* of memory of a GPU alone */
    struct crew *closer;
    struct crew_job closing; /* of the closer */
};

/* region_open - map byte_size bytes from an offset on.
 * name, key  copied
 * max_bytes  the most that all regions of the process may have together
 * ret        one reference, the caller's
 * errors     INTERNAL when there is no such memory, or none that a client may name; INVALID_ARG
 *            when it is too short, the offset is not of a page, or the key is reserved;
 *            UNAVAILABLE past a limit. In the reference's words where it has some. */
struct err *region_open(const char *name, const char *key, uint64_t offset, uint64_t byte_size,
                        uint64_t max_bytes, struct region **ret);

/* region_open_cuda - open byte_size bytes of a GPU that another process has allocated, from the
 * start of its memory on; the rest as region_open. May wait for the driver.
 * closer  closes it; outlives the region
 * errors  those of region_cuda_open; UNAVAILABLE past a limit */
struct err *region_open_cuda(const char *name, const struct cuda_ipc_handle *handle, int64_t device,
                             uint64_t byte_size, uint64_t max_bytes, struct crew *closer,
                             struct region **ret);

struct region *region_ref(struct region *r);

/* region_unref - NULL is fine. Any thread, no lock held. Does not wait for the driver: memory of a
 *                GPU is closed by its closer.
 * region_unref_waiting - the same for who may wait: with the last reference, the memory was given
 *                        back when this returns. */
void region_unref(struct region *r);
void region_unref_waiting(struct region *r);

/* region_check - whether all of it was there whenever somebody touched it; else what was read of it
 * are zeros, what was written is lost, and that for ever. Memory of a GPU always was.
 * when    of the error's text: when it may have been touched
 * errors  INVALID_ARG when it was cut short; UNAVAILABLE when /dev/shm is full */
struct err *region_check(struct region *r, const char *when);

/* region_mapped_bytes - of all regions of the process. */
uint64_t region_mapped_bytes(void);
