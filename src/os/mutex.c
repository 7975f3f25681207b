#include "os/mutex.h"

#include "base/check.h"

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

void mutex_init(struct mutex *m, enum mutex_rank rank)
{
    /* What these locks guard takes less time than putting a thread to sleep: try for a moment first. */
    pthread_mutexattr_t attr;
    CHECK(pthread_mutexattr_init(&attr) == 0);
    CHECK(pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_ADAPTIVE_NP) == 0);
    CHECK(pthread_mutex_init(&m->m, &attr) == 0);
    pthread_mutexattr_destroy(&attr);
    m->rank = rank;
}

void mutex_fini(struct mutex *m)
{
    CHECK(pthread_mutex_destroy(&m->m) == 0);
}

void mutex_lock(struct mutex *m)
{
    note_lock(m);
    CHECK(pthread_mutex_lock(&m->m) == 0);
}

void mutex_unlock(struct mutex *m)
{
    note_unlock(m);
    CHECK(pthread_mutex_unlock(&m->m) == 0);
}

void mutex_cond_init(struct mutex_cond *c)
{
    pthread_condattr_t attr;
    CHECK(pthread_condattr_init(&attr) == 0);
    CHECK(pthread_condattr_setclock(&attr, CLOCK_MONOTONIC) == 0);
    CHECK(pthread_cond_init(&c->c, &attr) == 0);
    pthread_condattr_destroy(&attr);
}

void mutex_cond_fini(struct mutex_cond *c)
{
    CHECK(pthread_cond_destroy(&c->c) == 0);
}

void mutex_cond_signal(struct mutex_cond *c)
{
    pthread_cond_signal(&c->c);
}

void mutex_cond_broadcast(struct mutex_cond *c)
{
    pthread_cond_broadcast(&c->c);
}

void mutex_cond_wait(struct mutex_cond *c, struct mutex *m)
{
    note_unlock(m);
    CHECK(pthread_cond_wait(&c->c, &m->m) == 0);
    note_lock(m);
}

bool mutex_cond_wait_until(struct mutex_cond *c, struct mutex *m, time_ns until)
{
    if (until == TIME_NEVER) {
        mutex_cond_wait(c, m);
        return true;
    }
    struct timespec ts = {.tv_sec = (time_t)(until / 1000000000u),
                          .tv_nsec = (long)(until % 1000000000u)};
    note_unlock(m);
    int rc = pthread_cond_timedwait(&c->c, &m->m, &ts);
    note_lock(m);
    return rc == 0;
}
