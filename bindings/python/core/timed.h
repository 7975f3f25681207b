#pragma once
/* Time that only goes forward, and waiting until a point in it. */
#include <pthread.h>
#include <stdint.h>
#include <time.h>

/* timed_now - in ns. */
uint64_t timed_now(void);

/* timed_after - the time that many ns from now, for pthread_cond_timedwait. */
struct timespec timed_after(uint64_t ns);

/* timed_until - the time that many seconds from now, in ns: now for none and for less, the end of
 * all time for more than a century. */
uint64_t timed_until(double seconds);

/* timed_init - prepare a condition whose waits end at such a time. */
void timed_init(pthread_cond_t *condition);
