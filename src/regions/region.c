#include "regions/region.h"

#include "base/mem.h"
#include "codec/pb_utf8.h"
#include "os/mutex.h"
#include "os/shm.h"
#include "os/shm_guard.h"
#include "os/shm_named.h"
#include "regions/region_cuda.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

/* Memory of that name is between a Python model and its process. */
#define RESERVED "triton_python_backend_shm_region_"

/* Counted before it is mapped, until it is unmapped. Relaxed: it only bounds. */
static _Atomic(uint64_t) mapped_bytes;

/* Held from the look whether memory is the server's own until it is mapped and guarded, and while
 * both end: what is mapped without a guard is the server's own. */
static struct mutex mapping = MUTEX_INIT(MUTEX_RANK_LEAF);

/* All that are mapped, and how many are open on GPUs; guarded by `mapping`. */
static struct list mapped = {&mapped, &mapped};
static int opened;

uint64_t region_mapped_bytes(void)
{
    return atomic_load_explicit(&mapped_bytes, memory_order_relaxed);
}

static struct err *no_memory(const char *key)
{
    return err_new(STATUS_INTERNAL, "Unable to open shared memory region: '%.*s'",
                   (int)REGION_MAX_NAME, key);
}

static struct err *check_key(const char *name, const char *key)
{
    if (!pb_utf8_valid(key, strlen(key)))
        return err_new(STATUS_INVALID_ARG,
                       "cannot register shared memory region '%s': its key is not UTF-8", name);
    if (strlen(key) > REGION_MAX_NAME)
        return no_memory(key);
    if (strncmp(key + strspn(key, "/"), RESERVED, sizeof(RESERVED) - 1) == 0)
        return err_new(
            STATUS_INVALID_ARG,
            "cannot register shared memory region '%s' with key '%s' as the key contains "
            "the reserved prefix '" RESERVED "'",
            name, key);
    return NULL;
}

static struct err *take_bytes(uint64_t bytes, uint64_t max_bytes)
{
    uint64_t there = atomic_fetch_add_explicit(&mapped_bytes, bytes, memory_order_relaxed);
    if (bytes <= max_bytes && there <= max_bytes - bytes)
        return NULL;
    atomic_fetch_sub_explicit(&mapped_bytes, bytes, memory_order_relaxed);
    return err_new(STATUS_UNAVAILABLE,
                   "no room for a shared memory region of %" PRIu64 " bytes: regions have %" PRIu64
                   " of %" PRIu64 " bytes; unregister others, or raise --client-shm-byte-size",
                   bytes, there, max_bytes);
}

static struct err *too_many(const char *name)
{
    return err_new(
        STATUS_UNAVAILABLE,
        "no room for shared memory region '%s': %d are registered, and that is the most; "
        "unregister others",
        name, SHM_GUARD_MAPPINGS);
}

/* Its bytes were taken; they go with it. */
static struct err *region_map(struct region *r, int fd)
{
    r->base = shm_named_map(fd, r->offset, r->byte_size);
    if (!r->base)
        return err_new(STATUS_INVALID_ARG,
                       "failed to register shared memory region '%s': unable to process address "
                       "space%s",
                       r->name, strerrordesc_np(errno));
    r->guard = shm_guard_add(r->base, r->byte_size);
    return r->guard >= 0 ? NULL : too_many(r->name);
}

/* Clients may name memory that is not the server's own. What has a region was looked at already:
 * the list of all mappings is not read again, which has a line a region. */
static bool region_may_name(const struct shm_named *m)
{
    LIST_EACH (it, &mapped) {
        const struct shm_named *known = &LIST_ITEM(it, struct region, node)->memory;
        if (known->inode == m->inode && known->device == m->device)
            return true;
    }
    return !shm_named_is_ours(m);
}

static struct region *region_new(enum region_kind kind, const char *name, uint64_t byte_size)
{
    struct region *r = MEM_NEW(struct region);
    r->kind = kind;
    r->name = mem_strdup(name);
    r->byte_size = byte_size;
    r->guard = -1;
    atomic_init(&r->lost, REGION_LOST_UNKNOWN);
    atomic_init(&r->refs, 1);
    return r;
}

/* The caller gives *ret back also where it fails. */
static struct err *region_make(int fd, const struct shm_named *m, const char *name, const char *key,
                               uint64_t offset, uint64_t byte_size, uint64_t max_bytes,
                               struct region **ret)
{
    struct err *e = take_bytes(byte_size, max_bytes);
    if (e)
        return e;
    struct region *r = region_new(REGION_SYSTEM, name, byte_size);
    r->key = mem_strdup(key);
    r->memory = *m;
    r->offset = offset;
    list_append(&mapped, &r->node);
    *ret = r;
    return region_map(r, fd);
}

struct err *region_open(const char *name, const char *key, uint64_t offset, uint64_t byte_size,
                        uint64_t max_bytes, struct region **ret)
{
    struct err *e = check_key(name, key);
    if (e)
        return e;
    struct shm_named m;
    uint64_t end;
    int fd = shm_named_open(key, &m);
    if (fd < 0)
        return no_memory(key);
    struct region *r = NULL;
    mutex_lock(&mapping);
    if (!region_may_name(&m)) /* nobody learns that there is such memory */
        e = no_memory(key);
    else if (__builtin_add_overflow(offset, byte_size, &end) || end > m.bytes)
        e = err_new(STATUS_INVALID_ARG,
                    "failed to register shared memory region '%s': invalid args", name);
    else
        e = region_make(fd, &m, name, key, offset, byte_size, max_bytes, &r);
    mutex_unlock(&mapping);
    if (e)
        region_unref(r);
    else
        *ret = r;
    shm_close(fd);
    return e;
}

static void region_unmap(struct region *r)
{
    mutex_lock(&mapping);
    if (r->guard >= 0)
        shm_guard_remove(r->guard);
    shm_unmap(r->base, r->byte_size);
    list_remove(&r->node);
    mutex_unlock(&mapping);
}

static void region_give_place(void)
{
    mutex_lock(&mapping);
    opened--;
    mutex_unlock(&mapping);
}

/* Nobody has it any more. */
static void region_end(struct region *r)
{
    if (r->kind == REGION_CUDA) {
        region_cuda_close(r->name, r->device, r->base);
        region_give_place();
    } else {
        region_unmap(r);
    }
    atomic_fetch_sub_explicit(&mapped_bytes, r->byte_size, memory_order_relaxed);
    mem_free(r->name);
    mem_free(r->key);
    mem_free(r);
}

static void region_closing(struct crew_job *job, void *own)
{
    (void)own;
    region_end(LIST_ITEM(job, struct region, closing));
}

/* A place among those that are open on GPUs. */
static struct err *region_take_place(const char *name)
{
    mutex_lock(&mapping);
    bool room = opened < SHM_GUARD_MAPPINGS;
    opened += room;
    mutex_unlock(&mapping);
    return room ? NULL : too_many(name);
}

struct err *region_open_cuda(const char *name, const struct cuda_ipc_handle *handle, int64_t device,
                             uint64_t byte_size, uint64_t max_bytes, struct crew *closer,
                             struct region **ret)
{
    struct err *e = region_take_place(name);
    if (e)
        return e;
    uint8_t *base;
    e = region_cuda_open(name, handle, device, byte_size, &base);
    if (!e) {
        e = take_bytes(byte_size, max_bytes);
        if (e)
            region_cuda_close(name, device, base);
    }
    if (e) {
        region_give_place();
        return e;
    }
    struct region *r = region_new(REGION_CUDA, name, byte_size);
    r->base = base;
    r->device = device;
    r->closer = closer;
    r->closing.run = region_closing;
    *ret = r;
    return NULL;
}

struct region *region_ref(struct region *r)
{
    atomic_fetch_add_explicit(&r->refs, 1, memory_order_relaxed);
    return r;
}

static bool region_was_last(struct region *r)
{
    return r && atomic_fetch_sub_explicit(&r->refs, 1, memory_order_acq_rel) == 1;
}

void region_unref(struct region *r)
{
    if (!region_was_last(r))
        return;
    if (r->kind == REGION_CUDA)
        crew_do(r->closer, &r->closing);
    else
        region_end(r);
}

void region_unref_waiting(struct region *r)
{
    if (region_was_last(r))
        region_end(r);
}

/* Whether the memory is as long as it was: then it was not cut, and what was missing is room for
 * its pages, which the system gives when they are touched. */
static bool region_whole(const struct region *r)
{
    struct shm_named m;
    int fd = shm_named_open(r->key, &m);
    if (fd < 0)
        return false;
    shm_close(fd);
    return m.bytes >= r->offset + r->byte_size;
}

struct err *region_check(struct region *r, const char *when)
{
    if (r->kind == REGION_CUDA || !shm_guard_cut(r->guard))
        return NULL;
    /* Once: its client may make it long again, and what was lost does not come back. */
    int lost = REGION_LOST_UNKNOWN, found = region_whole(r) ? REGION_LOST_NO_ROOM : REGION_LOST_CUT;
    if (atomic_compare_exchange_strong(&r->lost, &lost, found))
        lost = found;
    if (lost == REGION_LOST_NO_ROOM)
        return err_new(STATUS_UNAVAILABLE,
                       "the system had no room for shared memory region '%s' %s: make room in "
                       "/dev/shm, unregister the region, and register it again",
                       r->name, when);
    return err_new(STATUS_INVALID_ARG,
                   "shared memory region '%s' was cut short %s: unregister it, make it again, and "
                   "register it",
                   r->name, when);
}
