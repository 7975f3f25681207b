#include "infer/first_response.h"

#include "base/log.h"
#include "base/mem.h"
#include "os/thread.h"

#include <math.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define NS_A_MS 1000000u

/* Relaxed, because only the numbers matter. */
typedef atomic_uint_fast64_t counter;

struct first_response_sums {
    counter sum_ms;
    counter counts[]; /* bound_count + 1 */
};

struct first_response {
    double *bounds;
    size_t bound_count;
    /* Published with release, so that readers see zeroed counters. */
    _Atomic(struct first_response_sums *) slots[THREAD_SLOTS];
};

static const double usual_bounds[] = {100, 500, 2000, 5000};

static atomic_bool kept; /* set before the server serves; orders nothing */

void first_response_keep(void)
{
    atomic_store_explicit(&kept, true, memory_order_relaxed);
}

static int by_value(const void *a, const void *b)
{
    const double *x = a;
    const double *y = b;
    return (*x > *y) - (*x < *y);
}

static void set_bounds(struct first_response *f, const double *given, size_t count)
{
    mem_free(f->bounds);
    f->bounds = mem_alloc(count * sizeof(double));
    size_t n = 0;
    for (size_t i = 0; i < count; i++)
        if (isfinite(given[i]))
            f->bounds[n++] = given[i];
    qsort(f->bounds, n, sizeof(double), by_value);
    f->bound_count = 0;
    for (size_t i = 0; i < n; i++)
        if (i == 0 || f->bounds[i] > f->bounds[i - 1])
            f->bounds[f->bound_count++] = f->bounds[i];
}

struct first_response *first_response_new(const Inference__ModelConfig *config)
{
    const Inference__ModelMetrics *m = config->model_metrics;
    bool wanted = atomic_load_explicit(&kept, memory_order_relaxed);
    struct first_response *f = wanted ? MEM_NEW(struct first_response) : NULL;
    if (f)
        set_bounds(f, usual_bounds, sizeof(usual_bounds) / sizeof(*usual_bounds));
    for (size_t i = 0; m && i < m->n_metric_control; i++) {
        const Inference__ModelMetrics__MetricControl *c = m->metric_control[i];
        if (strcmp(c->metric_identifier->family, FIRST_RESPONSE_FAMILY) != 0)
            LOG_WARN("model '%s': Metric family '%s' in 'metric_identifier' is not a "
                     "customizable metric",
                     config->name, c->metric_identifier->family);
        else if (f)
            set_bounds(f, c->histogram_options->buckets, c->histogram_options->n_buckets);
    }
    return f;
}

void first_response_free(struct first_response *f)
{
    if (!f)
        return;
    for (unsigned i = 0; i < THREAD_SLOTS; i++)
        mem_free(atomic_load_explicit(&f->slots[i], memory_order_acquire));
    mem_free(f->bounds);
    mem_free(f);
}

static struct first_response_sums *first_response_my_slot(struct first_response *f)
{
    _Atomic(struct first_response_sums *) *at = &f->slots[thread_slot()];
    struct first_response_sums *there = atomic_load_explicit(at, memory_order_acquire);
    if (there)
        return there;
    struct first_response_sums *fresh =
        mem_zalloc(sizeof(struct first_response_sums) + (f->bound_count + 1) * sizeof(counter));
    if (atomic_compare_exchange_strong_explicit(at, &there, fresh, memory_order_acq_rel,
                                                memory_order_acquire))
        return fresh;
    mem_free(fresh);
    return there;
}

void first_response_record(struct first_response *f, time_ns start, time_ns now)
{
    uint64_t ms = now > start ? (now - start) / NS_A_MS : 0;
    size_t i = 0;
    while (i < f->bound_count && (double)ms > f->bounds[i])
        i++;
    struct first_response_sums *slot = first_response_my_slot(f);
    atomic_fetch_add_explicit(&slot->counts[i], 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&slot->sum_ms, ms, memory_order_relaxed);
}

size_t first_response_bounds(const struct first_response *f, const double **ret)
{
    *ret = f->bounds;
    return f->bound_count;
}

void first_response_read(const struct first_response *f, uint64_t *counts, uint64_t *ret_sum_ms)
{
    memset(counts, 0, (f->bound_count + 1) * sizeof(*counts));
    *ret_sum_ms = 0;
    for (unsigned i = 0; i < THREAD_SLOTS; i++) {
        struct first_response_sums *slot = atomic_load_explicit(&f->slots[i], memory_order_acquire);
        for (size_t k = 0; slot && k <= f->bound_count; k++)
            counts[k] += atomic_load_explicit(&slot->counts[k], memory_order_relaxed);
        if (slot)
            *ret_sum_ms += atomic_load_explicit(&slot->sum_ms, memory_order_relaxed);
    }
}

static bool same_bounds(const struct first_response *a, const struct first_response *b)
{
    return a->bound_count == b->bound_count &&
           memcmp(a->bounds, b->bounds, a->bound_count * sizeof(*a->bounds)) == 0;
}

void first_response_add(const struct first_response *f, const struct first_response *like,
                        uint64_t *counts, uint64_t *sum_ms)
{
    if (!same_bounds(f, like))
        return;
    uint64_t *more = mem_alloc((f->bound_count + 1) * sizeof(*more));
    uint64_t more_ms;
    first_response_read(f, more, &more_ms);
    for (size_t k = 0; k <= f->bound_count; k++)
        counts[k] += more[k];
    *sum_ms += more_ms;
    mem_free(more);
}

void first_response_absorb(struct first_response **into, const struct first_response *from)
{
    if (*into && !same_bounds(*into, from)) {
        first_response_free(*into);
        *into = NULL;
    }
    if (!*into) {
        *into = MEM_NEW(struct first_response);
        set_bounds(*into, from->bounds, from->bound_count);
    }
    uint64_t *counts = mem_alloc((from->bound_count + 1) * sizeof(*counts));
    uint64_t sum_ms;
    struct first_response_sums *slot = first_response_my_slot(*into);
    first_response_read(from, counts, &sum_ms);
    for (size_t k = 0; k <= from->bound_count; k++)
        atomic_fetch_add_explicit(&slot->counts[k], counts[k], memory_order_relaxed);
    atomic_fetch_add_explicit(&slot->sum_ms, sum_ms, memory_order_relaxed);
    mem_free(counts);
}
