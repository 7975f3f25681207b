#pragma once
/* Statistics of one model version. Counters are per thread slot, added with relaxed atomics and
 * summed when read, so that a request touches only cache lines of its own slot. A slot's memory
 * is allocated when one of its threads records for the first time: an unused model costs
 * nothing, a model served by two threads about 4 KiB.
 *
 * source  the statistics extension of the protocol; TRITONBACKEND_ModelInstanceReportStatistics
 *         and ...ReportBatchStatistics */
#include "metrics/histogram.h"
#include "os/clock.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct response_stats;
struct stats;

/* Why a request failed: the label `reason` of nv_inference_request_failure, in the order of the
 * metrics page. */
enum stats_reason {
    STATS_REJECTED = 0, /* by the queue: full, or timed out */
    STATS_CANCELED,     /* nobody waited for the answer any more */
    STATS_BACKEND,      /* the backend reported it */
    STATS_OTHER,
    STATS_REASONS,
};

/* stats_reason_name - "REJECTED", "CANCELED", "BACKEND", "OTHER". */
const char *stats_reason_name(enum stats_reason reason);

/* The four times that a backend reports, monotonic ns, ascending. A pair in the wrong order, or 31
 * years apart, counts as 0 ns. */
struct stats_compute {
    time_ns start;        /* execution began: inputs are gathered */
    time_ns input_end;    /* the model runs */
    time_ns output_start; /* the model is done: outputs are written */
    time_ns end;
};

/* A count and the sum of its durations. */
struct stats_duration {
    uint64_t count;
    uint64_t ns;
};

/* Durations of successful requests whose distribution is kept. */
enum stats_hist_kind {
    STATS_HIST_REQUEST, /* from request start to the report */
    STATS_HIST_QUEUE,   /* from queue start to compute start */
    STATS_HIST_COMPUTE, /* from compute start to compute end */
    STATS_HIST_INPUT,   /* the parts of compute; kept only after stats_keep_parts */
    STATS_HIST_INFER,
    STATS_HIST_OUTPUT,
    /* looking up an answer that was found; kept only after stats_keep_parts */
    STATS_HIST_CACHE_HIT,
    /* looking up an answer that was not found, and inserting the computed one */
    STATS_HIST_CACHE_MISS,
    STATS_HISTS,
};

/* What stats_sum returns. */
struct stats_sums {
    uint64_t inference_count;      /* rows of successful requests */
    uint64_t execution_count;      /* executions of the model: batches */
    uint64_t last_inference_ms;    /* since 1970; 0 = never */
    struct stats_duration success; /* ns: from request start to the backend's report */
    struct stats_duration fail;
    struct stats_duration queue;
    struct stats_duration compute_input;
    struct stats_duration compute_infer;
    struct stats_duration compute_output;
    struct stats_duration cache_hit;
    struct stats_duration cache_miss;
    uint64_t failures[STATS_REASONS];
    /* The sums of success, queue and compute_* in microseconds, as the metrics page shows them. */
    uint64_t request_us, queue_us, compute_input_us, compute_infer_us, compute_output_us;
};

/* One entry of batch_stats: all executions with one batch size. */
struct stats_batch_sums {
    uint64_t batch_size;
    struct stats_duration compute_input;
    struct stats_duration compute_infer;
    struct stats_duration compute_output;
};

/* stats_keep_parts - from now on also keep the distributions of the parts of compute, and of the
 * cache, for every model of the process. */
void stats_keep_parts(void);

/* stats_new - never NULL.
 * stats_free - free it; no thread may record any more. NULL is fine. */
struct stats *stats_new(void);
void stats_free(struct stats *s);

/* stats_success - count a request that the backend reported as a success. Any thread; costs some
 * tens of ns.
 * request_start, queue_start  from the request's times; 0 = count no duration
 * c           as reported, borrowed
 * now         when the backend reported it: the end of the request
 * batch_size  rows of the request; 0 counts as 1 */
void stats_success(struct stats *s, time_ns request_start, time_ns queue_start,
                   const struct stats_compute *c, time_ns now, uint32_t batch_size);

/* stats_failure - count a request that failed. Any thread. */
void stats_failure(struct stats *s, enum stats_reason reason, time_ns request_start, time_ns now);

/* stats_batch - count one execution of a batch. Any thread.
 * batch_size  rows; 0 counts as 1
 * wall_ns     when it ended, since 1970; the latest is kept as last_inference */
void stats_batch(struct stats *s, uint32_t batch_size, const struct stats_compute *c,
                 time_ns wall_ns);

/* stats_ended - when an execution ended that a backend reports: c->end, so that the clock need not
 * be read; now, if c->end is older than the statistics or from another clock. Monotonic ns. */
time_ns stats_ended(const struct stats *s, const struct stats_compute *c);

/* stats_cache_hit - count a request that the response cache answered: a success without compute.
 * stats_cache_miss - add the time for lookup and insertion of a request that was not in the
 * cache; stats_success counts its success. */
void stats_cache_hit(struct stats *s, time_ns request_start, time_ns queue_start,
                     time_ns lookup_start, uint64_t hit_ns, time_ns now);
void stats_cache_miss(struct stats *s, uint64_t miss_ns);

/* stats_responses - the statistics of single responses. If nothing was reported yet, they are
 * made if `make` is true, else NULL is returned. Any thread. */
struct response_stats *stats_responses(struct stats *s, bool make);

/* stats_absorb - add all counters of `from`, except the statistics of single responses. Any
 * thread. */
void stats_absorb(struct stats *into, const struct stats *from);

/* stats_sum - the sums of all slots. Any thread; a request that is recorded at the same time may
 * be counted in part. */
void stats_sum(const struct stats *s, struct stats_sums *ret);

/* stats_sum_hist - the distribution and the sum of one kind of duration; both outputs are
 * overwritten. Any thread. */
void stats_sum_hist(const struct stats *s, enum stats_hist_kind kind, struct histogram_counts *ret,
                    uint64_t *ret_sum_ns);

/* stats_sum_batches - executions by batch size, ascending.
 * ret      array that the caller frees (mem_free); NULL if there were none
 * returns  its length. Any thread */
size_t stats_sum_batches(const struct stats *s, struct stats_batch_sums **ret);
