#include "os/clock.h"

#include <stdatomic.h>
#include <time.h>

#define APART_HOLDS TIME_S(1)
#define APART_LOOKS 8
#define APART_ERROR TIME_US(1)

static time_ns read_clock(clockid_t id)
{
    struct timespec ts;
    clock_gettime(id, &ts);
    return (time_ns)ts.tv_sec * 1000000000u + (time_ns)ts.tv_nsec;
}

time_ns clock_now_ns(void)
{
    return read_clock(CLOCK_MONOTONIC);
}

time_ns clock_wall_ns(void)
{
    return read_clock(CLOCK_REALTIME);
}

/* How far the wall clock is ahead; relaxed, because whoever sees an old value has one that held a
 * moment ago. */
static _Atomic(time_ns) apart;
static _Atomic(time_ns) apart_until;

/* A thread that is preempted between the two clocks looks again. Returns the time now. */
static time_ns look_how_far_apart(void)
{
    time_ns wall, before, after;
    unsigned looks = 0;
    do {
        before = clock_now_ns();
        wall = clock_wall_ns();
        after = clock_now_ns();
    } while (after - before > APART_ERROR && ++looks < APART_LOOKS);
    atomic_store_explicit(&apart, wall - before, memory_order_relaxed);
    atomic_store_explicit(&apart_until, after + APART_HOLDS, memory_order_release);
    return after;
}

time_ns clock_wall_at(time_ns monotonic)
{
    if (monotonic >= atomic_load_explicit(&apart_until, memory_order_acquire))
        monotonic = time_sooner(monotonic, look_how_far_apart());
    return monotonic + atomic_load_explicit(&apart, memory_order_relaxed);
}

time_ns clock_thread_ns(void)
{
    return read_clock(CLOCK_THREAD_CPUTIME_ID);
}
