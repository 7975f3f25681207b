#pragma once
/* How long requests of one model version waited for their first response: the histogram
 * nv_inference_first_response_histogram_ms, whose bounds the model's configuration may set.
 * Opt-in: a version has one only after first_response_keep. Counters per thread slot, as in
 * infer/stats.h.
 *
 * source  the reference's: durations are whole milliseconds, cut off; every request counts once,
 *         by the first response that a backend or the server sends for it, an error included */
#include "os/clock.h"
#include "proto/model_config.pb-c.h"

#include <stddef.h>
#include <stdint.h>

struct first_response;

/* Family of the histogram, as `model_metrics` names it. */
#define FIRST_RESPONSE_FAMILY "nv_inference_first_response_histogram_ms"

/* first_response_keep - versions that are made from now on have one; for every model of the
 * process. */
void first_response_keep(void);

/* first_response_new - with the bounds of model_metrics, else 100, 500, 2000 and 5000 ms. Bounds
 * are put in order, and of equal ones one is kept; what is no number, and infinity, is none. A
 * family that has no bounds to set is warned of.
 * returns  NULL unless they are kept */
struct first_response *first_response_new(const Inference__ModelConfig *config);

/* first_response_free - no thread may record any more; NULL is fine. */
void first_response_free(struct first_response *f);

/* first_response_record - a request that began at `start` has its first response now. Any
 * thread. */
void first_response_record(struct first_response *f, time_ns start, time_ns now);

/* first_response_bounds - the upper bounds in ms, rising, borrowed. returns their number */
size_t first_response_bounds(const struct first_response *f, const double **ret);

/* first_response_read - how many durations fell into each bucket alone: one a bound, and one for
 * those above the last. Any thread.
 * counts  room for the number of bounds and one
 * ret_sum_ms  all of them added up */
void first_response_read(const struct first_response *f, uint64_t *counts, uint64_t *ret_sum_ms);

/* first_response_add - add to a reading of `like`, if the bounds are the same. Any thread. */
void first_response_add(const struct first_response *f, const struct first_response *like,
                        uint64_t *counts, uint64_t *sum_ms);

/* first_response_absorb - add what `from` has to *into, which is made anew where it has other
 * bounds or is NULL. */
void first_response_absorb(struct first_response **into, const struct first_response *from);
