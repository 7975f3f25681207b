/* TRITONSERVER_MetricFamily and TRITONSERVER_Metric functions. */
#include "plugin/handle.h"
#include "base/mem.h"
#include "abi/parameter.h"
#include "metrics/custom.h"

#include <string.h>

#define ARGS_MAGIC 0x4d415247u
#define MAX_LABELS 64u

static const char family_type[] = "TRITONSERVER_MetricFamily";
static const char metric_type[] = "TRITONSERVER_Metric";
static const char args_type[] = "TRITONSERVER_MetricArgs";

/* The TRITONSERVER_MetricArgs: empty, or the buckets of a histogram. */
struct metric_args {
    uint32_t magic;
    double *bounds; /* NULL = not set */
    size_t count;
};

static struct metric_args *args_of(const TRITONSERVER_MetricArgs *handle)
{
    struct metric_args *a = (struct metric_args *)(uintptr_t)handle;
    return a && a->magic == ARGS_MAGIC ? a : NULL;
}

TRITONSERVER_Error *TRITONSERVER_MetricFamilyNew(TRITONSERVER_MetricFamily **family,
                                                 const TRITONSERVER_MetricKind kind,
                                                 const char *name, const char *description)
{
    if (!name)
        return HANDLE_NULL("name");
    struct custom_family *f;
    struct err *e =
        custom_family_new((enum custom_kind)kind, name, description ? description : "", &f);
    if (!e)
        *family = (TRITONSERVER_MetricFamily *)f;
    return handle_error(e);
}

TRITONSERVER_Error *TRITONSERVER_MetricFamilyDelete(TRITONSERVER_MetricFamily *family)
{
    struct custom_family *f = custom_family_of(family);
    if (family && !f)
        return handle_invalid(family_type);
    return handle_error(custom_family_free(f));
}

TRITONSERVER_Error *TRITONSERVER_GetMetricFamilyKind(TRITONSERVER_MetricFamily *family,
                                                     TRITONSERVER_MetricKind *kind)
{
    const struct custom_family *f = custom_family_of(family);
    if (!f)
        return handle_invalid(family_type);
    *kind = (TRITONSERVER_MetricKind)custom_family_kind(f);
    return NULL;
}

TRITONSERVER_Error *TRITONSERVER_MetricArgsNew(TRITONSERVER_MetricArgs **args)
{
    struct metric_args *a = MEM_NEW(struct metric_args);
    a->magic = ARGS_MAGIC;
    *args = (TRITONSERVER_MetricArgs *)a;
    return NULL;
}

TRITONSERVER_Error *TRITONSERVER_MetricArgsSetHistogram(TRITONSERVER_MetricArgs *args,
                                                        const double *buckets,
                                                        const uint64_t buckets_count)
{
    struct metric_args *a = args_of(args);
    if (!a)
        return handle_invalid(args_type);
    if (!buckets && buckets_count)
        return HANDLE_NULL("buckets");
    if (buckets_count > CUSTOM_MAX_BUCKETS)
        return handle_error(
            err_new(STATUS_INVALID_ARG, "expected at most %u buckets", CUSTOM_MAX_BUCKETS));
    mem_free(a->bounds);
    a->bounds = mem_alloc((buckets_count + 1) * sizeof(*a->bounds));
    a->count = buckets_count;
    if (buckets_count)
        memcpy(a->bounds, buckets, buckets_count * sizeof(*buckets));
    return NULL;
}

TRITONSERVER_Error *TRITONSERVER_MetricArgsDelete(TRITONSERVER_MetricArgs *args)
{
    struct metric_args *a = args_of(args);
    if (args && !a)
        return handle_invalid(args_type);
    if (a) {
        a->magic = 0;
        mem_free(a->bounds);
        mem_free(a);
    }
    return NULL;
}

TRITONSERVER_Error *TRITONSERVER_MetricNew(TRITONSERVER_Metric **metric,
                                           TRITONSERVER_MetricFamily *family,
                                           const TRITONSERVER_Parameter **labels,
                                           const uint64_t label_count)
{
    return TRITONSERVER_MetricNewWithArgs(metric, family, labels, label_count, NULL);
}

static struct err *read_labels(const TRITONSERVER_Parameter **labels, uint64_t count,
                               struct custom_label *ret)
{
    if (count > MAX_LABELS)
        return err_new(STATUS_INVALID_ARG, "expected at most %u labels", MAX_LABELS);
    for (uint64_t i = 0; i < count; i++) {
        const struct parameter *p = parameter_of(labels[i]);
        if (!p)
            return err_new(STATUS_INVALID_ARG, "label %d is not a TRITONSERVER_Parameter", (int)i);
        if (p->p.type != PARAM_STRING)
            return err_new(STATUS_INVALID_ARG,
                           "label '%s': expected a parameter of type TRITONSERVER_PARAMETER_STRING",
                           p->p.name);
        ret[i] = (struct custom_label){.name = p->p.name, .value = p->p.bytes.data};
    }
    return NULL;
}

TRITONSERVER_Error *TRITONSERVER_MetricNewWithArgs(TRITONSERVER_Metric **metric,
                                                   TRITONSERVER_MetricFamily *family,
                                                   const TRITONSERVER_Parameter **labels,
                                                   const uint64_t label_count,
                                                   const TRITONSERVER_MetricArgs *args)
{
    struct custom_family *f = custom_family_of(family);
    const struct metric_args *a = args_of(args);
    if (!f)
        return handle_invalid(family_type);
    if (args && !a)
        return handle_invalid(args_type);
    if (!labels && label_count)
        return HANDLE_NULL("labels");
    if (a && !a->bounds)
        return handle_error(err_new(STATUS_INVALID_ARG, "the metric's arguments were not set"));
    struct custom_label copies[MAX_LABELS];
    struct err *e = read_labels(labels, label_count, copies);
    struct custom_metric *m;
    if (!e)
        e = custom_metric_new(f, copies, label_count, a ? a->bounds : NULL, a ? a->count : 0, &m);
    if (!e)
        *metric = (TRITONSERVER_Metric *)m;
    return handle_error(e);
}

TRITONSERVER_Error *TRITONSERVER_MetricDelete(TRITONSERVER_Metric *metric)
{
    struct custom_metric *m = custom_metric_of(metric);
    if (metric && !m)
        return handle_invalid(metric_type);
    custom_metric_free(m);
    return NULL;
}

TRITONSERVER_Error *TRITONSERVER_MetricValue(TRITONSERVER_Metric *metric, double *value)
{
    struct custom_metric *m = custom_metric_of(metric);
    return m ? handle_error(custom_value(m, value)) : handle_invalid(metric_type);
}

TRITONSERVER_Error *TRITONSERVER_MetricIncrement(TRITONSERVER_Metric *metric, double value)
{
    struct custom_metric *m = custom_metric_of(metric);
    return m ? handle_error(custom_add(m, value)) : handle_invalid(metric_type);
}

TRITONSERVER_Error *TRITONSERVER_MetricSet(TRITONSERVER_Metric *metric, double value)
{
    struct custom_metric *m = custom_metric_of(metric);
    return m ? handle_error(custom_set(m, value)) : handle_invalid(metric_type);
}

TRITONSERVER_Error *TRITONSERVER_MetricObserve(TRITONSERVER_Metric *metric, double value)
{
    struct custom_metric *m = custom_metric_of(metric);
    return m ? handle_error(custom_observe(m, value)) : handle_invalid(metric_type);
}

TRITONSERVER_Error *TRITONSERVER_GetMetricKind(TRITONSERVER_Metric *metric,
                                               TRITONSERVER_MetricKind *kind)
{
    const struct custom_metric *m = custom_metric_of(metric);
    if (!m)
        return handle_invalid(metric_type);
    *kind = (TRITONSERVER_MetricKind)custom_metric_kind(m);
    return NULL;
}
