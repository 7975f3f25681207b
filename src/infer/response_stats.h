#pragma once
/* Statistics of the single responses of requests that have several, as backends report them:
 * durations by the index of the response within its request. Any thread. */
#include "base/err.h"
#include "infer/stats.h"
#include "os/clock.h"

#include <stddef.h>
#include <stdint.h>

/* Responses with this index and above are counted together. */
#define RESPONSE_STATS_MAX_INDEX 1023u

struct response_stats;

enum response_stats_outcome {
    RESPONSE_STATS_SUCCESS,
    RESPONSE_STATS_EMPTY, /* no outputs */
    RESPONSE_STATS_FAIL,
    RESPONSE_STATS_CANCEL,
};

/* Times of a response; monotonic ns. output_start 0 = no outputs were written. */
struct response_stats_times {
    time_ns start;
    time_ns output_start;
    time_ns end;
};

/* One row of what response_stats_sum returns. */
struct response_stats_row {
    uint32_t index;
    struct stats_duration compute_infer;
    struct stats_duration compute_output;
    struct stats_duration success;
    struct stats_duration fail;
    struct stats_duration empty_response;
    struct stats_duration cancel;
};

struct response_stats *response_stats_new(void);
void response_stats_free(struct response_stats *s);

/* response_stats_add - count one response.
 * index   the index of the response among those of its request, from 0
 * errors  INVALID_ARG for times in the wrong order, in the reference's words */
struct err *response_stats_add(struct response_stats *s, uint32_t index,
                               enum response_stats_outcome outcome,
                               const struct response_stats_times *t);

/* response_stats_sum - a copy of all rows by ascending index; the caller frees it (mem_free).
 * returns  the number of rows */
size_t response_stats_sum(struct response_stats *s, struct response_stats_row **ret);
