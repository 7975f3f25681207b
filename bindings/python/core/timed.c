#include "timed.h"

enum { SECOND_NS = 1000000000 };

#define CENTURY_SECONDS 3153600000.0

uint64_t timed_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * SECOND_NS + (uint64_t)now.tv_nsec;
}

struct timespec timed_after(uint64_t ns)
{
    uint64_t at = timed_now() + ns;
    return (struct timespec){.tv_sec = (time_t)(at / SECOND_NS), .tv_nsec = (long)(at % SECOND_NS)};
}

uint64_t timed_until(double seconds)
{
    if (seconds > CENTURY_SECONDS)
        return UINT64_MAX;
    return timed_now() + (seconds > 0 ? (uint64_t)(seconds * SECOND_NS) : 0);
}

void timed_init(pthread_cond_t *condition)
{
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(condition, &attributes);
    pthread_condattr_destroy(&attributes);
}
