#include "os/shm_guard.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

/* A number that is taken has an owner; `changes` is odd while the ends change, so that a handler,
 * which takes no lock, never puts the end of one mapping to the start of another. */
struct watched {
    atomic_bool taken;
    atomic_bool cut;
    atomic_uint changes; /* release and acquire: order it with the ends */
    _Atomic(uintptr_t) start;
    _Atomic(uintptr_t) end;
};

static struct watched mappings[SHM_GUARD_MAPPINGS];

/* Numbers from here on were never taken: nobody has to look at them. Relaxed: who is asked about
 * an address of a mapping knows of the mapping, by whatever way it learnt the address. */
static atomic_int most_taken;

static uintptr_t page_bytes(void)
{
    return (uintptr_t)sysconf(_SC_PAGESIZE);
}

static void set_ends(struct watched *m, uintptr_t start, uintptr_t end)
{
    atomic_fetch_add_explicit(&m->changes, 1, memory_order_acq_rel);
    atomic_store_explicit(&m->start, start, memory_order_relaxed);
    atomic_store_explicit(&m->end, end, memory_order_relaxed);
    atomic_fetch_add_explicit(&m->changes, 1, memory_order_release);
}

static void note_most(int count)
{
    int most = atomic_load(&most_taken);
    while (most < count && !atomic_compare_exchange_weak(&most_taken, &most, count))
        continue;
}

int shm_guard_add(void *start, size_t bytes)
{
    uintptr_t page = page_bytes();
    uintptr_t first = (uintptr_t)start;
    for (int i = 0; i < SHM_GUARD_MAPPINGS; i++) {
        struct watched *m = &mappings[i];
        if (atomic_exchange(&m->taken, true))
            continue;
        atomic_store(&m->cut, false);
        set_ends(m, first, (first + bytes + page - 1) & ~(page - 1));
        note_most(i + 1);
        return i;
    }
    return -1;
}

void shm_guard_remove(int number)
{
    set_ends(&mappings[number], 0, 0);
    atomic_store(&mappings[number].taken, false);
}

bool shm_guard_cut(int number)
{
    return atomic_load(&mappings[number].cut);
}

/* The mapping that an address lies in, with its ends; NULL = none. */
static struct watched *mapping_of(uintptr_t address, uintptr_t *ret_start, uintptr_t *ret_end)
{
    int most = atomic_load(&most_taken);
    for (int i = 0; i < most; i++) {
        struct watched *m = &mappings[i];
        unsigned before = atomic_load_explicit(&m->changes, memory_order_acquire);
        *ret_start = atomic_load_explicit(&m->start, memory_order_relaxed);
        *ret_end = atomic_load_explicit(&m->end, memory_order_relaxed);
        atomic_thread_fence(memory_order_acquire);
        bool whole = before == atomic_load_explicit(&m->changes, memory_order_relaxed);
        if (whole && before % 2 == 0 && address >= *ret_start && address < *ret_end)
            return m;
    }
    return NULL;
}

bool shm_guard_covers(const void *address)
{
    uintptr_t start, end;
    return mapping_of((uintptr_t)address, &start, &end) != NULL;
}

/* The whole mapping goes at once, with what is still there: nobody believes it any more, and who
 * copies it from its end to its beginning, as memcpy does on some processors, would get a signal
 * for each page. */
bool shm_guard_fault(void *address)
{
    uintptr_t start, end;
    struct watched *m = mapping_of((uintptr_t)address, &start, &end);
    if (!m)
        return false;
    int kept = errno;
    atomic_store(&m->cut, true);
    bool mapped =
        mmap((void *)start, end - start, PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0) != MAP_FAILED;
    errno = kept;
    return mapped;
}
