#pragma once
/* Locks with a rank: a thread takes locks in rising rank only. Debug builds (NEREID_DEBUG) check
 * it and who holds what. */
#include "os/clock.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

/* Every lock of the server, outermost first. Two locks of one rank are never held together. */
enum mutex_rank {
    MUTEX_RANK_REPO = 1,  /* desired state of the repository */
    MUTEX_RANK_SNAPSHOT,  /* which snapshot is current */
    MUTEX_RANK_MODEL,     /* life cycle of one model version */
    MUTEX_RANK_SCHEDULER, /* queue and idle instances of one model version */
    MUTEX_RANK_REGISTRY,  /* loaded plug-ins, metric families */
    MUTEX_RANK_THREAD,    /* a thread's own mailbox or hand-off */
    MUTEX_RANK_TRIM,      /* memory of warm buffers on its way back */
    MUTEX_RANK_POOL,      /* warm buffers */
    MUTEX_RANK_LEAF,      /* nothing is taken under it */
};

struct mutex {
    pthread_mutex_t m;
    enum mutex_rank rank;
    atomic_uint *told; /* of a condition: whose waiters wake up when m is unlocked; guarded by m */
    int told_count;    /* how many of them; guarded by m */
};

#define MUTEX_INIT(rank_)                               \
    {                                                   \
        .m = PTHREAD_MUTEX_INITIALIZER, .rank = (rank_) \
    }

void mutex_init(struct mutex *m, enum mutex_rank rank);
void mutex_fini(struct mutex *m);
void mutex_lock(struct mutex *m);
void mutex_unlock(struct mutex *m);

/* mutex_assert_held - debug builds: the calling thread holds it. */
void mutex_assert_held(const struct mutex *m);

/* A condition on the monotonic clock, used with one mutex. */
struct mutex_cond {
    unsigned waiting;    /* threads; guarded by the mutex, like what follows */
    struct mutex *mutex; /* theirs */
    atomic_uint changes; /* what they sleep on; relaxed: the mutex orders what it tells of */
};

void mutex_cond_init(struct mutex_cond *c);
void mutex_cond_fini(struct mutex_cond *c);

/* mutex_cond_signal, mutex_cond_broadcast - one of those who wait, or all of them, wake up when
 * the caller, who holds the mutex, unlocks it: earlier they would only run into the lock. */
void mutex_cond_signal(struct mutex_cond *c);
void mutex_cond_broadcast(struct mutex_cond *c);

/* mutex_cond_wait - m is held by the caller and again on return; spurious returns happen. */
void mutex_cond_wait(struct mutex_cond *c, struct mutex *m);

/* mutex_cond_wait_until - as above, also returns at `until` (TIME_NEVER = no limit); true when
 * woken, false when time is up. */
bool mutex_cond_wait_until(struct mutex_cond *c, struct mutex *m, time_ns until);
