#include "metrics.h"

#include <stdlib.h>
#include <string.h>

#include "calls.h"
#include "common/berr.h"

/* What a stub has: families and their metrics, by number. A family goes when it was deleted and
 * has no
 * metric left. */
struct family {
    TRITONSERVER_MetricFamily *handle; /* NULL = a free slot */
    size_t metrics;
    bool deleted;
};

struct own_metric {
    TRITONSERVER_Metric *handle; /* NULL = a free slot */
    size_t family;
};

/* Which numbers are free: those that were given back, then those that never were in use. */
struct numbers {
    size_t *free;
    size_t free_count, count;
};

struct metrics {
    struct family *families;
    struct numbers family_numbers;
    struct own_metric *all;
    struct numbers numbers;
};

enum { METRICS_MAX = 1 << 16 };

static struct metrics *own_metrics(struct host *host)
{
    if (!host->metrics)
        host->metrics = calloc(1, sizeof *host->metrics);
    return host->metrics;
}

/* Makes room for one more slot. It is taken by numbers_take.
 * slots    their place, which may move
 * ret      the slot's number */
static TRITONSERVER_Error *numbers_next(struct numbers *numbers, void **slots, size_t bytes,
                                        const char *what, size_t *ret)
{
    if (numbers->free_count) {
        *ret = numbers->free[numbers->free_count - 1];
        return NULL;
    }
    if (numbers->count == METRICS_MAX)
        return berr_new(TRITONSERVER_ERROR_UNAVAILABLE, "too many %s: %d are there", what,
                        METRICS_MAX);
    size_t room = numbers->count + 1;
    size_t *free_ones = realloc(numbers->free, room * sizeof *free_ones);
    if (free_ones)
        numbers->free = free_ones;
    void *moved = free_ones ? realloc(*slots, room * bytes) : NULL;
    if (!moved)
        return berr_no_memory();
    *slots = moved;
    *ret = numbers->count;
    return NULL;
}

static void numbers_take(struct numbers *numbers)
{
    if (numbers->free_count)
        numbers->free_count--;
    else
        numbers->count++;
}

static void numbers_give(struct numbers *numbers, size_t number)
{
    numbers->free[numbers->free_count++] = number;
}

static struct family *metrics_family(struct host *host, const struct asked_value *value)
{
    struct metrics *m = own_metrics(host);
    bool there = m && value->kind == CALL_INT && value->number >= 0 &&
                 (size_t)value->number < m->family_numbers.count &&
                 m->families[value->number].handle;
    return there ? &m->families[value->number] : NULL;
}

static struct own_metric *metrics_find(struct host *host, const struct asked_value *value)
{
    struct metrics *m = own_metrics(host);
    bool there = m && value->kind == CALL_INT && value->number >= 0 &&
                 (size_t)value->number < m->numbers.count && m->all[value->number].handle;
    return there ? &m->all[value->number] : NULL;
}

static TRITONSERVER_Error *metrics_new_family(struct host *host, const struct asked_value *values,
                                              size_t count, int64_t *ret_number)
{
    struct metrics *m = own_metrics(host);
    if (count != 3 || values[2].number < 0 || values[2].number > TRITONSERVER_METRIC_KIND_HISTOGRAM)
        return berr_new(TRITONSERVER_ERROR_INVALID_ARG, "Unknown metric kind");
    if (!m)
        return berr_no_memory();
    size_t number;
    void *slots = m->families;
    TRITONSERVER_Error *err =
        numbers_next(&m->family_numbers, &slots, sizeof *m->families, "metric families", &number);
    if (err)
        return err;
    m->families = slots;
    struct family *made = &m->families[number];
    *made = (struct family){0};
    err = TRITONSERVER_MetricFamilyNew(&made->handle, (TRITONSERVER_MetricKind)values[2].number,
                                       values[0].text, values[1].text);
    if (err)
        return err;
    numbers_take(&m->family_numbers);
    *ret_number = (int64_t)number;
    return NULL;
}

static void metrics_end_family(struct metrics *m, struct family *family)
{
    if (family->metrics || !family->deleted)
        return;
    berr_log(TRITONSERVER_MetricFamilyDelete(family->handle), "deleting metric family");
    family->handle = NULL;
    numbers_give(&m->family_numbers, (size_t)(family - m->families));
}

static void metrics_delete(struct metrics *m, struct own_metric *metric)
{
    struct family *family = &m->families[metric->family];
    berr_log(TRITONSERVER_MetricDelete(metric->handle), "deleting metric");
    metric->handle = NULL;
    numbers_give(&m->numbers, (size_t)(metric - m->all));
    family->metrics--;
    metrics_end_family(m, family);
}

/* Whether all labels are texts, and whole ones. */
static bool metrics_are_texts(const struct asked_value *labels, size_t count)
{
    bool well = true;
    for (size_t i = 0; i < 2 * count; i++)
        well = well && labels[i].kind == CALL_TEXT && strlen(labels[i].text) == labels[i].length;
    return well;
}

/* Makes a metric with labels, and bounds where it is a histogram. */
static TRITONSERVER_Error *metrics_make(struct family *family, const struct asked_value *labels,
                                        size_t label_count, const struct asked_value *bounds,
                                        size_t bound_count, TRITONSERVER_Metric **ret_metric)
{
    TRITONSERVER_MetricArgs *args = NULL;
    TRITONSERVER_Error *err = NULL;
    const TRITONSERVER_Parameter **parameters = calloc(label_count + 1, sizeof *parameters);
    double *limits = calloc(bound_count + 1, sizeof *limits);
    for (size_t i = 0; parameters && i < label_count; i++)
        parameters[i] = TRITONSERVER_ParameterNew(labels[2 * i].text, TRITONSERVER_PARAMETER_STRING,
                                                  labels[2 * i + 1].text);
    for (size_t i = 0; limits && i < bound_count; i++)
        limits[i] = bounds[i].real;
    if (!parameters || !limits)
        err = berr_no_memory();
    if (!err && bound_count)
        err = TRITONSERVER_MetricArgsNew(&args);
    if (!err && bound_count)
        err = TRITONSERVER_MetricArgsSetHistogram(args, limits, bound_count);
    if (!err)
        err = TRITONSERVER_MetricNewWithArgs(ret_metric, family->handle, parameters, label_count,
                                             args);
    if (args)
        berr_drop(TRITONSERVER_MetricArgsDelete(args));
    for (size_t i = 0; parameters && i < label_count; i++)
        TRITONSERVER_ParameterDelete((TRITONSERVER_Parameter *)(uintptr_t)parameters[i]);
    free(parameters);
    free(limits);
    return err;
}

static TRITONSERVER_Error *metrics_new(struct host *host, const struct asked_value *values,
                                       size_t count, int64_t *ret_number)
{
    struct metrics *m = own_metrics(host);
    struct family *family = count >= 2 ? metrics_family(host, &values[0]) : NULL;
    size_t labels = count >= 2 && values[1].number >= 0 ? (size_t)values[1].number : count;
    if (!family || labels > (count - 2) / 2)
        return berr_new(TRITONSERVER_ERROR_INVALID_ARG, "there is no such metric family");
    if (!metrics_are_texts(values + 2, labels))
        return berr_new(TRITONSERVER_ERROR_INVALID_ARG, "labels are texts without a zero byte");
    size_t number;
    void *slots = m->all;
    TRITONSERVER_Error *err = numbers_next(&m->numbers, &slots, sizeof *m->all, "metrics", &number);
    if (err)
        return err;
    m->all = slots;
    struct own_metric *made = &m->all[number];
    *made = (struct own_metric){.family = (size_t)values[0].number};
    const struct asked_value *bounds = values + 2 + 2 * labels;
    err = metrics_make(family, values + 2, labels, bounds, count - 2 - 2 * labels, &made->handle);
    if (err)
        return err;
    numbers_take(&m->numbers);
    family->metrics++;
    *ret_number = (int64_t)number;
    return NULL;
}

TRITONSERVER_Error *metrics_do(struct host *host, uint32_t op, const struct asked_value *values,
                               size_t count, int64_t *ret_number, double *ret_real)
{
    if (op == CALL_FAMILY_NEW)
        return metrics_new_family(host, values, count, ret_number);
    if (op == CALL_METRIC_NEW)
        return metrics_new(host, values, count, ret_number);
    if (op == CALL_FAMILY_DELETE) {
        struct family *family = count == 1 ? metrics_family(host, &values[0]) : NULL;
        if (family) {
            family->deleted = true;
            metrics_end_family(host->metrics, family);
        }
        return NULL;
    }
    struct own_metric *metric = count >= 1 ? metrics_find(host, &values[0]) : NULL;
    if (!metric || (op != CALL_METRIC_VALUE && op != CALL_METRIC_DELETE && count != 2))
        return berr_new(TRITONSERVER_ERROR_INVALID_ARG, "there is no such metric");
    switch (op) {
    case CALL_METRIC_DELETE:
        metrics_delete(host->metrics, metric);
        return NULL;
    case CALL_METRIC_INCREMENT:
        return TRITONSERVER_MetricIncrement(metric->handle, values[1].real);
    case CALL_METRIC_SET:
        return TRITONSERVER_MetricSet(metric->handle, values[1].real);
    case CALL_METRIC_OBSERVE:
        return TRITONSERVER_MetricObserve(metric->handle, values[1].real);
    default:
        return TRITONSERVER_MetricValue(metric->handle, ret_real);
    }
}

void metrics_free(struct host *host)
{
    struct metrics *m = host->metrics;
    if (!m)
        return;
    for (size_t i = 0; i < m->numbers.count; i++) {
        if (m->all[i].handle)
            metrics_delete(m, &m->all[i]);
    }
    for (size_t i = 0; i < m->family_numbers.count; i++) {
        m->families[i].deleted = true;
        if (m->families[i].handle)
            metrics_end_family(m, &m->families[i]);
    }
    free(m->families);
    free(m->family_numbers.free);
    free(m->numbers.free);
    free(m->all);
    free(m);
    host->metrics = NULL;
}
