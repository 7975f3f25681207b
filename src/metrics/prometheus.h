#pragma once
/* Writing the Prometheus text exposition format, version 0.0.4. Pure.
 * source  https://prometheus.io/docs/instrumenting/exposition_formats/ */
#include "base/strbuf.h"

#include <stddef.h>
#include <stdint.h>

/* prometheus_family - write the lines "# HELP" and "# TYPE", before the samples of a family. */
void prometheus_family(struct strbuf *out, const char *name, const char *type, const char *help);

/* prometheus_label - append name="value" to a set of labels, after a comma unless the set is
 * empty. The value is escaped, and bytes that are not UTF-8 become U+FFFD. name must be a valid
 * label name (prometheus_label_name). */
void prometheus_label(struct strbuf *labels, const char *name, const char *value);

/* prometheus_label_name - append `name` as (the rest of) a label name: invalid characters become
 * '_'. */
void prometheus_label_name(struct strbuf *out, const char *name);

/* prometheus_sample - write a line: name, suffix ("" or for example "_bucket"), the labels in
 * braces unless "", and the value. */
void prometheus_sample(struct strbuf *out, const char *name, const char *suffix, const char *labels,
                       uint64_t value);

/* prometheus_parts - write `whole` + `part` / `scale` as a decimal number without trailing
 * zeros; scale is a power of ten. */
void prometheus_parts(struct strbuf *out, uint64_t whole, uint64_t part, uint64_t scale);

/* prometheus_sample_parts - as prometheus_sample, with the value `whole` + `part` / `scale`;
 * scale is a power of ten. */
void prometheus_sample_parts(struct strbuf *out, const char *name, const char *suffix,
                             const char *labels, uint64_t whole, uint64_t part, uint64_t scale);
