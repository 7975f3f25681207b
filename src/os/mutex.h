#pragma once
/* Locks with a rank: a thread takes locks in rising rank only. Debug builds (NEREID_DEBUG) check
 * this, and which thread holds a lock. */
#include "os/clock.h"

#include <stdatomic.h>
#include <stdbool.h>

/* The ranks of all locks, outermost first. A thread never holds two locks of one rank. */
enum mutex_rank {
    MUTEX_RANK_REPO = 1,  /* desired state of the repository */
    MUTEX_RANK_SNAPSHOT,  /* which snapshot is current */
    MUTEX_RANK_MODEL,     /* life cycle of one model version */
    MUTEX_RANK_SCHEDULER, /* queue and idle instances of one model version */
    MUTEX_RANK_REGISTRY,  /* loaded plug-ins, metric families */
    MUTEX_RANK_THREAD,    /* a thread's own mailbox or hand-off */
    MUTEX_RANK_TRIM,      /* returning the memory of warm buffers */
    MUTEX_RANK_POOL,      /* warm buffers */
    MUTEX_RANK_LEAF,      /* no other lock is taken while it is held, except by others' code */
    MUTEX_RANK_LIBRARIES, /* what stands for the C library's functions in others' code */
};

struct mutex {
    /* the futex that threads sleep on; 0 = free, for the rest see mutex.c. Acquired by who locks,
     * released by who unlocks */
    atomic_uint state;
    enum mutex_rank rank;
    int told_count;    /* how many waiters to wake; guarded by the lock, as the next one */
    atomic_uint *told; /* of a condition: its waiters are woken when the mutex is unlocked */
};

#define MUTEX_INIT(rank_) \
    {                     \
        .rank = (rank_)   \
    }

void mutex_init(struct mutex *m, enum mutex_rank rank);
void mutex_fini(struct mutex *m);
void mutex_lock(struct mutex *m);
void mutex_unlock(struct mutex *m);

/* mutex_assert_held - in debug builds, check that the calling thread holds m. */
void mutex_assert_held(const struct mutex *m);

/* A condition on the monotonic clock, used with one mutex. */
struct mutex_cond {
    unsigned waiting;    /* number of threads; guarded by the mutex, like the fields below */
    struct mutex *mutex; /* the mutex of the waiters */
    /* the futex that waiters sleep on; relaxed, because the mutex orders everything else */
    atomic_uint changes;
};

void mutex_cond_init(struct mutex_cond *c);
void mutex_cond_fini(struct mutex_cond *c);

/* mutex_cond_signal, mutex_cond_broadcast - wake one waiter, or all. The caller holds the mutex,
 * and they are woken when it unlocks the mutex; earlier they would only wait for the lock. */
void mutex_cond_signal(struct mutex_cond *c);
void mutex_cond_broadcast(struct mutex_cond *c);

/* mutex_cond_wait - wait. The caller holds m, and holds it again on return; spurious returns are
 * possible. */
void mutex_cond_wait(struct mutex_cond *c, struct mutex *m);

/* mutex_cond_wait_until - the same, but returns at `until` at the latest (TIME_NEVER = no
 * limit). Returns true if woken, false if the time is over. */
bool mutex_cond_wait_until(struct mutex_cond *c, struct mutex *m, time_ns until);
