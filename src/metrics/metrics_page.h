#pragma once
/* The metrics page: writes all metric families (metric.def) from numbers that the caller
 * collected. Pure. */
#include "base/strbuf.h"
#include "metrics/histogram.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Upper bounds of the buckets on the page, in us; powers of two, so that the counts are exact.
 * +Inf is added. */
#define METRICS_PAGE_BOUNDS 18
extern const uint64_t metrics_page_bounds_us[METRICS_PAGE_BOUNDS];

/* Reasons of nv_inference_request_failure, in the order of enum stats_reason. */
#define METRICS_PAGE_REASONS 4

/* A distribution for the page. */
struct metrics_hist {
    uint64_t at_most[METRICS_PAGE_BOUNDS];
    uint64_t count;
    uint64_t sum_us;
};

/* The most quantiles of a summary. */
#define METRICS_PAGE_QUANTILES 32u
/* request, queue, compute_input, compute_infer, compute_output; of the cache: hit, miss. As in
 * the reference, a model with a cache does not show the first, and other models do not show the
 * last two. */
#define METRICS_PAGE_SUMMARIES 7

/* The quantiles of a distribution that struct metrics_process asks for. */
struct metrics_summary {
    double us[METRICS_PAGE_QUANTILES];
    uint64_t count;
    uint64_t sum_us;
};

/* A distribution with the model's own buckets; borrowed. */
struct metrics_bounded {
    const double *bounds; /* upper bounds, ascending */
    size_t bound_count;
    /* per bucket, not cumulative; one more than bounds, for larger values; NULL = not shown */
    const uint64_t *counts;
    uint64_t sum;
};

/* Upper bounds of the buckets of batch sizes; +Inf is added. */
#define METRICS_PAGE_BATCH_BOUNDS 11 /* 1, 2, 4 ... 1024 */

struct metrics_batches {
    uint64_t at_most[METRICS_PAGE_BATCH_BOUNDS];
    uint64_t count;
    uint64_t sum;
};

/* A front end; in the order of the page. */
struct metrics_front {
    const char *protocol;
    uint64_t in_flight;
    uint64_t received_bytes;
    uint64_t sent_bytes;
    uint64_t connections;
    uint64_t accepted;
};

/* The requests of one route that were answered with one code. */
struct metrics_requests {
    const char *protocol;
    const char *route;
    const char *model; /* NULL = not about a model */
    char code[24];
    uint64_t count;
};

/* In place of a value that is not known of a GPU. */
#define METRICS_PAGE_UNKNOWN UINT64_MAX

struct metrics_gpu {
    const char *uuid;
    uint64_t busy_ppm;
    uint64_t total_bytes;
    uint64_t used_bytes;
    uint64_t power_mw;
    uint64_t limit_mw;
    uint64_t energy_mj;
};

struct metrics_tag {
    const char *key; /* without the leading "_" */
    const char *value;
};

/* One model version. */
struct metrics_model {
    const char *name;
    const char *space; /* model namespace; NULL = none */
    int64_t version;
    const struct metrics_tag *tags; /* metric_tags of its configuration */
    size_t tag_count;
    uint64_t success;
    uint64_t failures[METRICS_PAGE_REASONS];
    uint64_t inferences;
    uint64_t executions;
    uint64_t request_us;
    uint64_t queue_us;
    uint64_t compute_input_us;
    uint64_t compute_infer_us;
    uint64_t compute_output_us;
    bool cached; /* it has a response cache */
    uint64_t cache_hits;
    uint64_t cache_hit_us;
    uint64_t cache_misses;
    uint64_t cache_miss_us;
    uint64_t pending;
    uint64_t load_ns;
    uint64_t oldest_ns;
    uint64_t instances;
    uint64_t instances_busy;
    struct metrics_batches batches;
    struct metrics_hist hists[3]; /* request, queue, compute */
    struct metrics_summary summaries[METRICS_PAGE_SUMMARIES];
    struct metrics_bounded first_response; /* in ms */
};

/* The process and its machine. Unknown values are 0. */
struct metrics_process {
    const char *server_version;
    bool no_cpu;              /* leave out the families nv_cpu_* */
    bool no_latency_counters; /* leave out the families nv_..._duration_us */
    const double *quantiles;  /* of the summaries; count 0 = no summaries */
    size_t quantile_count;
    const struct metrics_front *fronts;
    size_t front_count;
    const struct metrics_requests *requests;
    size_t request_count;
    const struct metrics_gpu *gpus;
    size_t gpu_count;
    uint64_t pinned_total_bytes;
    uint64_t pinned_used_bytes;
    uint64_t cpu_busy_ppm;
    uint64_t host_total_bytes;
    uint64_t host_used_bytes;
    uint64_t shared_connections;
    uint64_t shared_connections_limit;
    uint64_t budget_used_bytes;
    uint64_t budget_limit_bytes; /* UINT64_MAX = no limit, shown as +Inf */
    uint64_t cpu_ns;
    uint64_t resident_bytes;
    uint64_t virtual_bytes;
    uint64_t threads;
    uint64_t open_fds;
    uint64_t max_fds; /* UINT64_MAX = no limit */
    uint64_t start_wall_ns;
};

/* metrics_page_hist - reduce a reading to what the page shows. sum_ns: the sum of all durations. */
void metrics_page_hist(const struct histogram_counts *c, uint64_t sum_ns, struct metrics_hist *ret);

/* metrics_page_summary - the quantiles of a reading. */
void metrics_page_summary(const struct histogram_counts *c, uint64_t sum_ns,
                          const double *quantiles, size_t count, struct metrics_summary *ret);

/* metrics_page_batch - count `times` runs of a batch of `size`. */
void metrics_page_batch(struct metrics_batches *b, uint64_t size, uint64_t times);

/* metrics_page_render - append the page.
 * models  `count` of them, in the order of the page; families without samples are left out */
void metrics_page_render(struct strbuf *out, const struct metrics_model *models, size_t count,
                         const struct metrics_process *process);
