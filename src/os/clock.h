#pragma once
/* Time: one source, in nanoseconds. Schedulers and parsers take it as a parameter; only shells
 * read it. */
#include <stdint.h>

typedef uint64_t time_ns;

#define TIME_NEVER UINT64_MAX
#define TIME_US(n) ((time_ns)(n)*1000u)
#define TIME_MS(n) ((time_ns)(n)*1000000u)
#define TIME_S(n)  ((time_ns)(n)*1000000000u)

/* clock_now_ns - monotonic time.
 * clock_wall_ns - time since 1970, only for people and statistics.
 * clock_thread_ns - CPU time of the calling thread; a system call, which costs ten times as much
 * as the others. */
time_ns clock_now_ns(void);
time_ns clock_wall_ns(void);
time_ns clock_thread_ns(void);

/* clock_wall_at - the time since 1970 at a monotonic time that was a moment ago; one that is still
 * to come counts as now, or is at most a second late. Reads no clock, except once a second to see
 * how far the two are apart: a step of the wall clock counts that much later. Any thread. */
time_ns clock_wall_at(time_ns monotonic);

/* time_from_us - convert a duration; TIME_NEVER if it is too long. */
static inline time_ns time_from_us(uint64_t us)
{
    return us > (TIME_NEVER - 1) / 1000 ? TIME_NEVER : us * 1000;
}

/* time_sooner - the earlier of two times, or the shorter of two spans. */
static inline time_ns time_sooner(time_ns a, time_ns b)
{
    return a < b ? a : b;
}

/* time_later - t plus a duration; TIME_NEVER if the sum is too large. */
static inline time_ns time_later(time_ns t, time_ns span)
{
    return span >= TIME_NEVER - t ? TIME_NEVER : t + span;
}
