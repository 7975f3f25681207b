#pragma once
/* When a request that failed is tried again, and when it is given up. Pure: the time is a
 * parameter. */
#include "os/clock.h"

#include <stdbool.h>
#include <stdint.h>

/* Without progress so often, whatever the time. */
#define RETRY_MAX_ATTEMPTS 12u

struct retry {
    time_ns limit;     /* without progress for so long, it is given up */
    time_ns since;     /* the beginning, or the last progress */
    unsigned attempts; /* all that failed since then */
    unsigned all;      /* that failed at all */
    uint64_t random;   /* state; never 0 */
};

/* retry_init - seed: anything that differs between those who try at the same time. */
void retry_init(struct retry *r, time_ns now, time_ns limit, uint64_t seed);

/* retry_progress - something arrived. */
void retry_progress(struct retry *r, time_ns now);

/* retry_next - an attempt failed. After 100 ms, then twice as long each time up to 5 s, of which
 * a half is left to chance.
 * asked_ns  what the server wants (Retry-After); 0 = it says nothing
 * ret_at    when to try again
 * returns   false: it is given up */
bool retry_next(struct retry *r, time_ns now, time_ns asked_ns, time_ns *ret_at);

/* retry_left - how much longer an attempt that begins now may take without progress. */
time_ns retry_left(const struct retry *r, time_ns now);
