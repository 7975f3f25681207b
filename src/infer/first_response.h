#pragma once
/* How long requests of one model version waited for their first response: the histogram
 * nv_inference_first_response_histogram_ms. The model's configuration may set its bounds.
 * Versions have it only if first_response_keep was called before. Counters are per thread slot,
 * as in infer/stats.h.
 *
 * source  the reference: durations are whole milliseconds, rounded down. Every request counts
 *         once, with the first response that the backend or the server sends for it; an error
 *         counts too */
#include "os/clock.h"
#include "proto/model_config.pb-c.h"

#include <stddef.h>
#include <stdint.h>

struct first_response;

/* The histogram's family, as `model_metrics` names it. */
#define FIRST_RESPONSE_FAMILY "nv_inference_first_response_histogram_ms"

/* first_response_keep - versions of every model that are made from now on have this histogram. */
void first_response_keep(void);

/* first_response_new - make a histogram with the bounds of model_metrics, else 100, 500, 2000
 * and 5000 ms. Bounds are sorted, and duplicates, NaN and infinity are dropped. If model_metrics
 * names a family that has no bounds to set, a warning is logged.
 * returns  NULL unless first_response_keep was called */
struct first_response *first_response_new(const Inference__ModelConfig *config);

/* first_response_free - free it; no thread may record any more. NULL is fine. */
void first_response_free(struct first_response *f);

/* first_response_record - count a request that began at `start` and has its first response now.
 * Any thread. */
void first_response_record(struct first_response *f, time_ns start, time_ns now);

/* first_response_bounds - the upper bounds in ms, ascending, borrowed. Returns their number. */
size_t first_response_bounds(const struct first_response *f, const double **ret);

/* first_response_read - the number of durations in each bucket (not cumulative): one per bound,
 * and one for durations above the last bound. Any thread.
 * counts  room for the number of bounds plus one
 * ret_sum_ms  the sum of all durations */
void first_response_read(const struct first_response *f, uint64_t *counts, uint64_t *ret_sum_ms);

/* first_response_add - add the counts of f to a reading of `like`, if both have the same bounds.
 * Any thread. */
void first_response_add(const struct first_response *f, const struct first_response *like,
                        uint64_t *counts, uint64_t *sum_ms);

/* first_response_absorb - add the counts of `from` to *into. If *into is NULL or has other
 * bounds, it is replaced by an empty histogram first. */
void first_response_absorb(struct first_response **into, const struct first_response *from);
