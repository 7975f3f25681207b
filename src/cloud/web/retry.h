#pragma once
/* Decides when a failed request is retried, and when it is given up. Pure: time is a parameter. */
#include "os/clock.h"

#include <stdbool.h>
#include <stdint.h>

/* The most attempts without progress, whatever the time. */
#define RETRY_MAX_ATTEMPTS 12u

struct retry {
    time_ns limit;     /* given up after this time without progress */
    time_ns since;     /* the beginning, or the last progress */
    unsigned attempts; /* failed attempts since then */
    unsigned all;      /* all failed attempts */
    uint64_t random;   /* state; never 0 */
};

/* retry_init - seed: any number that differs between clients that try at the same time. */
void retry_init(struct retry *r, time_ns now, time_ns limit, uint64_t seed);

/* retry_progress - something arrived. */
void retry_progress(struct retry *r, time_ns now);

/* retry_next - an attempt failed: retry after 100 ms, then twice as long each time up to 5 s;
 * half of the pause is random.
 * asked_ns  the server's Retry-After; 0 = none
 * ret_at    when to try again
 * returns   false: give up */
bool retry_next(struct retry *r, time_ns now, time_ns asked_ns, time_ns *ret_at);

/* retry_left - how much longer an attempt that begins now may take without progress. */
time_ns retry_left(const struct retry *r, time_ns now);
