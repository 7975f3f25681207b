#include "os/mutex.h"

#include "base/check.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#ifdef NEREID_DEBUG
#define MAX_HELD 8
static _Thread_local const struct mutex *held[MAX_HELD];
static _Thread_local unsigned held_count;

static void note_lock(const struct mutex *m)
{
    CHECK(held_count < MAX_HELD);
    CHECK(held_count == 0 || held[held_count - 1]->rank < m->rank);
    held[held_count++] = m;
}

static void note_unlock(const struct mutex *m)
{
    CHECK(held_count > 0 && held[held_count - 1] == m);
    held_count--;
}

void mutex_assert_held(const struct mutex *m)
{
    for (unsigned i = 0; i < held_count; i++)
        if (held[i] == m)
            return;
    CHECK(!"lock is not held");
}
#else
static void note_lock(const struct mutex *m)
{
    (void)m;
}

static void note_unlock(const struct mutex *m)
{
    (void)m;
}

void mutex_assert_held(const struct mutex *m)
{
    (void)m;
}
#endif

#define FREE    0u
#define HELD    1u /* nobody sleeps */
#define AWAITED 2u /* held, and somebody may sleep until it is not */

/* The work under these locks is shorter than putting a thread to sleep, so it looks so often
 * first. */
#define LOOKS 100

void mutex_init(struct mutex *m, enum mutex_rank rank)
{
    *m = (struct mutex)MUTEX_INIT(rank);
}

void mutex_fini(struct mutex *m)
{
    CHECK(atomic_load_explicit(&m->state, memory_order_relaxed) == FREE);
}

static bool try_to_hold(struct mutex *m)
{
    unsigned expected = FREE;
    return atomic_compare_exchange_strong_explicit(&m->state, &expected, HELD, memory_order_acquire,
                                                   memory_order_relaxed);
}

static void pause_for_a_moment(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* Whoever slept does not know who else sleeps, so the next unlock wakes one more. */
__attribute__((noinline)) static void wait_to_hold(struct mutex *m)
{
    for (int i = 0; i < LOOKS; i++) {
        if (atomic_load_explicit(&m->state, memory_order_relaxed) == FREE && try_to_hold(m))
            return;
        pause_for_a_moment();
    }
    int before = errno; /* callers lock between a call and their look at its error */
    while (atomic_exchange_explicit(&m->state, AWAITED, memory_order_acquire) != FREE)
        syscall(SYS_futex, &m->state, FUTEX_WAIT_PRIVATE, AWAITED, NULL, NULL, 0);
    errno = before;
}

void mutex_lock(struct mutex *m)
{
    note_lock(m);
    if (!try_to_hold(m))
        wait_to_hold(m);
}

/* Wakes waiters. The address is only a name for the kernel: the condition or the mutex may
 * already be freed, or another waiter may sleep there, which checks its condition again. */
__attribute__((noinline)) static void wake(const atomic_uint *changes, int count)
{
    int before = errno;
    syscall(SYS_futex, changes, FUTEX_WAKE_PRIVATE, count, NULL, NULL, 0);
    errno = before;
}

void mutex_unlock(struct mutex *m)
{
    note_unlock(m);
    const atomic_uint *told = m->told;
    int count = m->told_count;
    if (told)
        m->told = NULL;
    unsigned was = atomic_exchange_explicit(&m->state, FREE, memory_order_release);
    if (was == AWAITED)
        wake(&m->state, 1);
    if (told)
        wake(told, count);
}

void mutex_cond_init(struct mutex_cond *c)
{
    *c = (struct mutex_cond){0};
}

void mutex_cond_fini(struct mutex_cond *c)
{
    (void)c;
}

/* Notes which waiters to wake at unlock. A thread that is about to sleep sees that `changes` has
 * changed and does not sleep. Caller holds the mutex. */
static void mutex_tell(struct mutex_cond *c, int count)
{
    if (!c->waiting)
        return;
    struct mutex *m = c->mutex;
    mutex_assert_held(m);
    atomic_fetch_add_explicit(&c->changes, 1, memory_order_relaxed);
    if (m->told == &c->changes) {
        m->told_count = count > INT_MAX - m->told_count ? INT_MAX : m->told_count + count;
        return;
    }
    if (m->told) /* set by another condition, which is rare */
        wake(m->told, m->told_count);
    m->told = &c->changes;
    m->told_count = count;
}

void mutex_cond_signal(struct mutex_cond *c)
{
    mutex_tell(c, 1);
}

void mutex_cond_broadcast(struct mutex_cond *c)
{
    mutex_tell(c, INT_MAX);
}

void mutex_cond_wait(struct mutex_cond *c, struct mutex *m)
{
    mutex_cond_wait_until(c, m, TIME_NEVER);
}

bool mutex_cond_wait_until(struct mutex_cond *c, struct mutex *m, time_ns until)
{
    struct timespec ts = {.tv_sec = (time_t)(until / 1000000000u),
                          .tv_nsec = (long)(until % 1000000000u)};
    unsigned seen = atomic_load_explicit(&c->changes, memory_order_relaxed);
    c->mutex = m;
    c->waiting++;
    mutex_unlock(m);
    long rc = syscall(SYS_futex, &c->changes, FUTEX_WAIT_BITSET_PRIVATE, seen,
                      until == TIME_NEVER ? NULL : &ts, NULL, FUTEX_BITSET_MATCH_ANY);
    bool in_time = rc == 0 || errno != ETIMEDOUT;
    mutex_lock(m);
    c->waiting--;
    return in_time;
}
