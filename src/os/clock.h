#pragma once
/* Time: one source, in nanoseconds. Schedulers and parsers take it as a parameter; only shells read it. */
#include <stdint.h>

typedef uint64_t time_ns;

#define TIME_NEVER UINT64_MAX
#define TIME_US(n) ((time_ns)(n)*1000u)
#define TIME_MS(n) ((time_ns)(n)*1000000u)
#define TIME_S(n)  ((time_ns)(n)*1000000000u)

/* clock_now_ns - monotonic time. clock_wall_ns - time since 1970, for people and statistics only. */
time_ns clock_now_ns(void);
time_ns clock_wall_ns(void);
