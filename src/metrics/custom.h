#pragma once
/* Metrics of plug-ins and applications: the TRITONSERVER_MetricFamily and TRITONSERVER_Metric of
 * the C ABI. They belong to the process, and the metrics page of every server in it shows them.
 * Any thread. */
#include "base/err.h"
#include "base/strbuf.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The most families, and the most distinct metrics of a family. */
#define CUSTOM_MAX_FAMILIES 4096u
#define CUSTOM_MAX_METRICS  65536u
/* The most buckets of a histogram, without +Inf. */
#define CUSTOM_MAX_BUCKETS 1024u

/* Values of TRITONSERVER_MetricKind. */
enum custom_kind {
    CUSTOM_COUNTER = 0,
    CUSTOM_GAUGE = 1,
    CUSTOM_HISTOGRAM = 2,
};

struct custom_family;
struct custom_metric;

struct custom_label {
    const char *name;
    const char *value;
};

/* custom_family_new - make a family, or another handle of the family with this name, which keeps
 * its first help text.
 * errors  INVALID_ARG for an invalid name, a name of the server's own metrics, or a name with
 *         another kind; UNAVAILABLE above the limit */
struct err *custom_family_new(enum custom_kind kind, const char *name, const char *help,
                              struct custom_family **ret);

/* custom_family_free - NULL is fine.
 * errors  INTERNAL if metrics of it exist; the family stays then */
struct err *custom_family_free(struct custom_family *f);

/* custom_metric_new - metrics of a family with equal labels share their value.
 * labels   `count` of them, copied; if two have one name, the last one counts
 * bounds   of a histogram: `bound_count` ascending upper bounds, copied; NULL for other kinds
 * errors   INVALID_ARG for invalid label names, unexpected or missing bounds, or bounds that do
 *          not ascend; UNAVAILABLE above the limit */
struct err *custom_metric_new(struct custom_family *f, const struct custom_label *labels,
                              size_t count, const double *bounds, size_t bound_count,
                              struct custom_metric **ret);
void custom_metric_free(struct custom_metric *m);

enum custom_kind custom_family_kind(const struct custom_family *f);
enum custom_kind custom_metric_kind(const struct custom_metric *m);

/* custom_value, custom_add, custom_set, custom_observe - read or change a metric, as its kind
 * allows.
 * errors  UNSUPPORTED for another kind; INVALID_ARG for a counter that would decrease */
struct err *custom_value(struct custom_metric *m, double *ret);
struct err *custom_add(struct custom_metric *m, double step);
struct err *custom_set(struct custom_metric *m, double value);
struct err *custom_observe(struct custom_metric *m, double value);

/* custom_family_of, custom_metric_of - the object behind an ABI handle; NULL if the handle is
 * none. */
struct custom_family *custom_family_of(void *handle);
struct custom_metric *custom_metric_of(void *handle);

/* custom_render - append every family that has metrics, in order of creation. */
void custom_render(struct strbuf *out);
