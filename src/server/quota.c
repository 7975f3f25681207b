#include "server/quota.h"

#include "os/mutex.h"
#include "os/process/process.h"

#include <stdatomic.h>

#define SHARES 8

static struct mutex lock = MUTEX_INIT(MUTEX_RANK_LEAF); /* guards all but left */
static unsigned listeners;
static int64_t total;
static int64_t kept_all; /* of total: the places that are kept for listeners */
static uint64_t files;   /* that the process may open */

/* Shared places that are not taken. Relaxed: only a limit. Below 0 while connections are being
 * refused. */
static _Atomic(int64_t) left;

static int64_t places_there_are(void)
{
    struct process_fds fds = process_fds();
    files = fds.max;
    if (fds.max > UINT32_MAX)
        return UINT32_MAX;
    int64_t room = (int64_t)fds.max - (int64_t)fds.open;
    if (room < 0)
        room = 0;
    return room > 2 * (int64_t)QUOTA_RESERVE ? room - QUOTA_RESERVE : room / 2;
}

uint32_t quota_open(void)
{
    mutex_lock(&lock);
    if (listeners++ == 0) {
        total = places_there_are();
        atomic_store_explicit(&left, total, memory_order_relaxed);
    }
    int64_t kept = total / SHARES;
    int64_t most = atomic_load_explicit(&left, memory_order_relaxed);
    if (kept > most)
        kept = most > 0 ? most : 0;
    atomic_fetch_sub_explicit(&left, kept, memory_order_relaxed);
    kept_all += kept;
    mutex_unlock(&lock);
    return (uint32_t)kept;
}

void quota_close(uint32_t kept)
{
    mutex_lock(&lock);
    listeners--;
    kept_all -= kept;
    atomic_fetch_add_explicit(&left, kept, memory_order_relaxed);
    mutex_unlock(&lock);
}

uint64_t quota_places(void)
{
    mutex_lock(&lock);
    int64_t places = listeners ? total : 0;
    mutex_unlock(&lock);
    return (uint64_t)places;
}

void quota_shared(uint64_t *ret_taken, uint64_t *ret_limit)
{
    mutex_lock(&lock);
    int64_t limit = listeners ? total - kept_all : 0;
    int64_t free_now = atomic_load_explicit(&left, memory_order_relaxed);
    mutex_unlock(&lock);
    int64_t taken = limit - (free_now > 0 ? free_now : 0);
    *ret_taken = taken > 0 ? (uint64_t)taken : 0;
    *ret_limit = (uint64_t)limit;
}

uint64_t quota_files(void)
{
    mutex_lock(&lock);
    uint64_t most = files;
    mutex_unlock(&lock);
    return most;
}

bool quota_take(uint32_t kept, uint32_t before)
{
    return before < kept || atomic_fetch_sub_explicit(&left, 1, memory_order_relaxed) > 0;
}

void quota_give(uint32_t kept, uint32_t before)
{
    if (before > kept)
        atomic_fetch_add_explicit(&left, 1, memory_order_relaxed);
}
