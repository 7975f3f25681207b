#include "gpu/gpu_memory.h"

#include "base/buf.h"
#include "base/mem.h"
#include "gpu/gpu.h"
#include "gpu/gpu_pool.h"
#include "gpu/gpu_priv.h"
#include "nereid/cuda_driver.h"
#include "os/mutex.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define PINNED GPU_MAX /* the pool behind those of the GPUs */
#define POOLS  (GPU_MAX + 1)

static struct mutex lock = MUTEX_INIT(MUTEX_RANK_LEAF); /* guards everything below */
static struct gpu_pool pools[POOLS];
static bool limited[POOLS]; /* somebody set the limit */
static bool pinned_asked;
static double load_limits[GPU_MAX]; /* shares of the memory; 0 = none said, and less than 0 = 0 */

/* Where the memory of a pool comes from: pinned memory is for all GPUs, so any context will do. */
static int64_t device_of(size_t pool)
{
    return pool == PINNED ? 0 : (int64_t)pool;
}

static struct gpu_pool *pool_at(size_t at)
{
    struct gpu_pool *p = &pools[at];
    if (!limited[at])
        p->limit = at == PINNED ? GPU_MEMORY_PINNED_BYTES : GPU_MEMORY_DEVICE_BYTES;
    return p;
}

static void gpu_memory_set_limit(size_t at, uint64_t bytes)
{
    mutex_lock(&lock);
    pools[at].limit = bytes;
    limited[at] = true;
    mutex_unlock(&lock);
}

void gpu_memory_limit(int64_t id, uint64_t bytes)
{
    if (id >= 0 && id < GPU_MAX)
        gpu_memory_set_limit((size_t)id, bytes);
}

void gpu_memory_limit_pinned(uint64_t bytes)
{
    gpu_memory_set_limit(PINNED, bytes);
}

static uint64_t limit_at(size_t at)
{
    mutex_lock(&lock);
    uint64_t bytes = pool_at(at)->limit;
    mutex_unlock(&lock);
    return bytes;
}

uint64_t gpu_memory_limit_of(int64_t id)
{
    return id >= 0 && id < GPU_MAX ? limit_at((size_t)id) : 0;
}

uint64_t gpu_memory_pinned_limit(void)
{
    return limit_at(PINNED);
}

void gpu_memory_limit_loads(int64_t id, double fraction)
{
    if (id < 0 || id >= GPU_MAX)
        return;
    mutex_lock(&lock);
    load_limits[id] = fraction > 0 ? fraction : -1;
    mutex_unlock(&lock);
}

bool gpu_memory_allows(int64_t id)
{
    mutex_lock(&lock);
    double fraction = load_limits[id];
    mutex_unlock(&lock);
    struct err *e = fraction != 0 ? gpu_enter(id) : NULL;
    if (fraction == 0 || e) {
        err_free(e);
        return true;
    }
    size_t free_bytes = 0;
    size_t total = 0;
    int rc = gpu_driver()->memory_info(&free_bytes, &total);
    gpu_leave();
    double allowed = fraction > 0 ? (double)total * fraction : 0;
    return rc || (double)(total - free_bytes) <= allowed;
}

/* A new block of the driver's. */
static struct err *make_block(size_t pool, uint64_t size, void **ret)
{
    int64_t id = device_of(pool);
    struct err *e = gpu_enter(id);
    if (e)
        return e;
    cuda_address a = 0;
    int rc = pool == PINNED ? gpu_driver()->host_alloc(ret, size, CUDA_HOST_PORTABLE)
                            : gpu_driver()->memory_alloc(&a, size);
    gpu_leave();
    if (pool != PINNED)
        *ret = (void *)(uintptr_t)a;
    return pool == PINNED ? gpu_check(rc, "allocating %" PRIu64 " bytes of pinned memory", size)
                          : gpu_check(rc, "allocating %" PRIu64 " bytes on GPU %" PRId64, size, id);
}

static void gpu_memory_free_block(size_t pool, void *block)
{
    struct err *e = gpu_enter(device_of(pool));
    if (!e) {
        if (pool == PINNED)
            (void)gpu_driver()->host_free(block);
        else
            (void)gpu_driver()->memory_free((uintptr_t)block);
        gpu_leave();
    }
    err_free(e);
}

/* Gives kept blocks back to the driver until the pool holds no more than its limit, or all of
 * them. */
static void trim(size_t at, bool all)
{
    for (;;) {
        mutex_lock(&lock);
        struct gpu_pool *p = pool_at(at);
        void *block = all || p->held > p->limit ? gpu_pool_drop(p) : NULL;
        mutex_unlock(&lock);
        if (!block)
            return;
        gpu_memory_free_block(at, block);
    }
}

/* The size of the block is 0 if no pool has one for so many bytes. */
static struct err *spent(size_t at, uint64_t bytes, uint64_t size)
{
    char block[64] = "";
    if (size > bytes)
        snprintf(block, sizeof(block), ", which take a block of %" PRIu64 ",", size);
    mutex_lock(&lock);
    uint64_t limit = pool_at(at)->limit;
    uint64_t used = pools[at].used + pools[at].making;
    mutex_unlock(&lock);
    return err_busy("no %" PRIu64 " bytes%s on GPU %zu: its pool has %" PRIu64
                    " bytes, of which %" PRIu64
                    " are in use; --cuda-memory-pool-byte-size=%zu:<bytes> sets its size",
                    bytes, block, at, limit, used, at);
}

static struct err *pool_alloc(size_t at, uint64_t bytes, void **ret)
{
    uint64_t size = gpu_pool_size(bytes);
    if (!size)
        return spent(at, bytes, size);
    mutex_lock(&lock);
    struct gpu_pool *p = pool_at(at);
    void *block = gpu_pool_take(p, size);
    bool room = block || gpu_pool_reserve(p, size);
    mutex_unlock(&lock);
    if (!room)
        return spent(at, bytes, size);
    if (!block) {
        trim(at, false);
        struct err *e = make_block(at, size, &block);
        if (e && err_code(e) == STATUS_UNAVAILABLE) {
            trim(at, true); /* what is kept may be what others lack */
            err_free(e);
            e = make_block(at, size, &block);
        }
        mutex_lock(&lock);
        if (e)
            gpu_pool_unreserve(p, size);
        else
            gpu_pool_add(p, block, size);
        mutex_unlock(&lock);
        if (e)
            return e;
    }
    *ret = block;
    return NULL;
}

struct err *gpu_memory_alloc(int64_t id, uint64_t bytes, void **ret)
{
    if (!gpu_at(id)) {
        const char *why = gpu_look()->absence;
        return err_new(STATUS_UNSUPPORTED, "there is no GPU %" PRId64 " to get memory of%s%s", id,
                       why ? ": " : "", why ? why : "");
    }
    return pool_alloc((size_t)id, bytes, ret);
}

struct err *gpu_memory_free(int64_t id, void *p)
{
    mutex_lock(&lock);
    bool known = id >= 0 && id < GPU_MAX && gpu_pool_give(&pools[id], p);
    mutex_unlock(&lock);
    return known ? NULL
                 : err_new(STATUS_INVALID_ARG,
                           "memory of GPU %" PRId64
                           " to be freed was not allocated by the memory manager as such",
                           id);
}

static void free_buf(struct buf *b)
{
    err_free(gpu_memory_free(b->device, b->data));
    mem_free(b);
}

struct err *gpu_memory_buf(int64_t id, uint64_t bytes, struct buf **ret)
{
    void *p;
    struct err *e = gpu_memory_alloc(id, bytes, &p);
    if (e)
        return e;
    struct buf *b = MEM_NEW(struct buf);
    buf_init(b, p, bytes, free_buf);
    b->memory = BUF_MEMORY_GPU;
    b->device = id;
    *ret = b;
    return NULL;
}

void *gpu_memory_pinned(uint64_t bytes)
{
    void *p = NULL;
    if (!gpu_driver())
        return NULL;
    mutex_lock(&lock);
    pinned_asked = true;
    mutex_unlock(&lock);
    err_free(pool_alloc(PINNED, bytes, &p));
    return p;
}

void gpu_memory_unpin(void *p)
{
    mutex_lock(&lock);
    (void)gpu_pool_give(&pools[PINNED], p);
    mutex_unlock(&lock);
}

void gpu_memory_pinned_pool(uint64_t *ret_bytes, uint64_t *ret_used)
{
    mutex_lock(&lock);
    *ret_bytes = pinned_asked ? pool_at(PINNED)->limit : 0;
    *ret_used = pools[PINNED].used;
    mutex_unlock(&lock);
}

/* The next block of a pool that is going away, whether it was given back or not. */
static void *take_any(size_t at)
{
    mutex_lock(&lock);
    void *block = gpu_pool_drop(&pools[at]);
    if (!block)
        block = gpu_pool_lose(&pools[at]);
    mutex_unlock(&lock);
    return block;
}

void gpu_memory_close(void)
{
    for (size_t i = 0; i < POOLS; i++)
        for (void *block = take_any(i); block; block = take_any(i))
            gpu_memory_free_block(i, block);
    mutex_lock(&lock);
    for (size_t i = 0; i < POOLS; i++)
        limited[i] = false;
    pinned_asked = false;
    memset(load_limits, 0, sizeof(load_limits));
    mutex_unlock(&lock);
}
