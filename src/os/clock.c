#include "os/clock.h"

#include <time.h>

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

time_ns clock_thread_ns(void)
{
    return read_clock(CLOCK_THREAD_CPUTIME_ID);
}
